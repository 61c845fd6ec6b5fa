"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RecipeFile = Annotated[Path, typer.Argument(help="A recipe, such as recipes/quickstart.yaml.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Values that differ from the recipe's.")
]
DataFolder = Annotated[Path, typer.Option(help="Where trees and prepared corpora lie.")]
