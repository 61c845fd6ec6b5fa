"""`synmt prepare`: text and trees to a binary training set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from synmt.cli.arguments import DataFolder, Overrides, RecipeFile


def prepare(
    recipe: RecipeFile,
    overrides: Overrides = None,
    data: DataFolder = Path("data"),
    trees: Annotated[
        bool, typer.Option("--trees", help="Add the source's trees, also where no variant of the recipe reads them.")
    ] = False,
) -> None:
    """Prepare the training set of a recipe: filter, cut into pieces, parse, add trees; prints its folder.

    What is there already is not made again; after an interruption the same command goes on. `synmt train` does
    the same by itself.

    Example: [bold]synmt prepare recipes/quickstart.yaml[/]
    """
    from synmt.cli.stages import prepare_for
    from synmt.errors import naming
    from synmt.recipe.load import load_recipe
    from synmt.training.tree_requirements import tree_requirements

    loaded = load_recipe(recipe, overrides or [])
    with naming(recipe):
        tree_requirements(loaded)
    print(prepare_for(loaded, data, source_trees=trees).folder)
