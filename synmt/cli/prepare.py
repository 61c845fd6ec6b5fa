"""`synmt prepare`: text and trees to a binary training set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.corpora import Corpus
    from synmt.encoding import Progress


def prepare(
    recipe: Annotated[Path, typer.Argument(help="A recipe, such as recipes/quickstart.yaml.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Values that differ from the recipe's.")
    ] = None,
    data: Annotated[Path, typer.Option(help="Where prepared corpora lie.")] = Path("data"),
) -> None:
    """Prepare the training set of a recipe: filter, cut into pieces, add trees; prints its folder.

    What is there already is not made again; after an interruption the same command goes on.

    Example: [bold]synmt prepare recipes/quickstart.yaml[/]
    """
    from synmt.corpora import resolve_corpus
    from synmt.corpus import PreparedCorpus
    from synmt.corpus_table import COLUMNS, corpus_table
    from synmt.preparing import prepare, prepared_folder
    from synmt.recipe_file import load_recipe

    loaded = load_recipe(recipe, overrides or [])
    corpus = resolve_corpus(loaded.corpus, loaded.source, loaded.target)
    folder = prepared_folder(data / "prepared", loaded, corpus)
    show(prepare(loaded, corpus, folder))
    trees = _annotate_given(corpus, folder)
    console.table(
        f"{corpus.name}, {corpus.source}-{corpus.target}", COLUMNS, corpus_table(PreparedCorpus.open(folder), trees)
    )
    print(folder)


def show(steps: Iterator[Progress]) -> None:
    """Run the stages, with a bar for each."""
    from itertools import chain, groupby

    for stage, records in groupby(steps, key=lambda step: step.stage):
        first = next(records)
        done = 0
        with console.progress(stage, first.total, "lines") as advance:
            for step in chain([first], records):
                advance(step.done - done)
                done = step.done


def _annotate_given(corpus: Corpus, folder: Path) -> str | None:
    """Add the trees that lie beside the text; those of a parser are made by `synmt train`."""
    from synmt.annotating import annotate, annotation_name, describe_files

    parses = {name: files.source_parses for name, files in (("train", corpus.train), ("valid", corpus.valid))}
    given = {name: path for name, path in parses.items() if path is not None}
    if len(given) < len(parses):
        return None
    parser = describe_files(given)
    show(annotate(folder, corpus, given, parser=parser))
    return annotation_name("source", parser)
