"""`synmt prepare`: from text and trees to binary training data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from synmt.cli import console
from synmt.cli.command import ClusterAddress, DataFolder, DryRun, Overrides, RecipeFile, loading
from synmt.errors import SynmtError, all_in_one, listed

if TYPE_CHECKING:
    from synmt.corpora.progress import Progress
    from synmt.reporting.progress import Advance
    from synmt.training.plan.step import PlannedStep
    from synmt.training.stages import Prepared

    T = TypeVar("T")


def prepare(
    recipe: RecipeFile,
    overrides: Overrides = None,
    data: DataFolder = Path("data"),
    trees: Annotated[
        bool, typer.Option("--trees", help="Parse the source even if no variant of the recipe reads its trees.")
    ] = False,
    cluster: ClusterAddress = None,
    dry_run: DryRun = False,
) -> None:
    """Prepare the training data of a recipe: filter, segment into subwords, parse; print the folder.

    Existing results are reused; after an interruption, the same command continues. `synmt train` prepares its data
    by itself.

    Example: [bold]synmt prepare quickstart[/]
    """
    if dry_run:
        from synmt.training.plan.recipe import plan_preparation

        show_plan(plan_preparation(recipe, overrides or (), data=data, source_trees=trees))
        return
    from synmt.parallel.engine import using_cluster
    from synmt.training import pipeline

    records = pipeline.prepare(recipe, overrides or (), data=data, source_trees=trees)
    with using_cluster(cluster), closing(records):
        for prepared in draw_progress(records):
            console.show(str(prepared.folder))


def show_plan(steps: Sequence[PlannedStep]) -> None:
    """Print the steps as a table; raise all problems that would stop the command, in one error."""
    console.table("", ["step", "state", "amount"], [step.row() for step in steps], to_stdout=True)
    for remark in dict.fromkeys(step.remark for step in steps if step.remark):
        console.show(f"\n{remark}")
    problems = {str(step.problem): step.problem for step in steps if step.problem}
    if problems:
        sys.stdout.flush()
        raise all_in_one(list(problems.values()))


def show_recipes(words: Sequence[str]) -> None:
    """Print a table of the shipped recipes that match all words."""
    from synmt.training.recipe_list import COLUMNS, list_recipes

    entries = list_recipes(words)
    if not entries:
        raise SynmtError(f"no shipped recipe contains {listed(words)}", do="`synmt train --list` shows all")
    console.table("", COLUMNS, [entry.row() for entry in entries], to_stdout=True)
    console.remark(
        "reported BLEU: on the paper's test sets; valid: on its validation text; "
        "−: difference from the recipe it changes\n"
        "text: local, if it is on this machine; if it is missing, `synmt train` downloads or builds it"
    )


def show_keys(words: Sequence[str]) -> None:
    """Print the keys of a recipe and the options of variants that match all words: default, values and meaning."""
    from synmt.recipe.keys import list_keys

    with loading():
        from synmt.model.variant_keys import list_options

    found = [*list_keys(words), *list_options(words)]
    if not found:
        raise SynmtError(f"no key of a recipe contains {listed(words)}", do="`synmt train --keys` shows all")
    print("\n".join(key.text() for key in found))


def draw_progress(records: Iterable[Progress | Prepared | T], *, new_only: bool = False) -> Iterator[Prepared | T]:
    """Draw a bar for each stage and the table of the prepared corpus; pass on all other records.

    new_only: draw no table of a corpus that was there already.
    """
    from synmt.corpora.progress import Progress
    from synmt.training.stages import Prepared

    with ExitStack() as bar:
        last, advance, made = None, None, False
        for record in records:
            made = made or isinstance(record, Progress)
            if not isinstance(record, Progress):
                bar.close()
                last = None
                if isinstance(record, Prepared) and (made or not new_only):
                    _show_corpus(record)
                yield record
                continue
            if last is None or advance is None or record.stage != last.stage or record.done < last.done:
                bar.close()
                last, advance = None, bar.enter_context(_bar(record))
            advance((record.done - (last.done if last else 0)) * _scale(record))
            last = record


def _bar(record: Progress) -> AbstractContextManager[Advance]:
    total = None if record.total is None else record.total * _scale(record)
    return console.progress(record.stage, total, "MB" if record.unit == "bytes" else record.unit)


def _scale(record: Progress) -> float:
    return 1e-6 if record.unit == "bytes" else 1


def _show_corpus(prepared: Prepared) -> None:
    from synmt.data.corpus import PreparedCorpus
    from synmt.data.summary import corpus_table

    corpus = prepared.corpus
    title = f"{corpus.name}, {corpus.source}-{corpus.target}: {prepared.folder}"
    data = PreparedCorpus.open(prepared.folder)
    console.show_aside(corpus_table(data, tuple(prepared.trees.values()), corpus.parts, title=title))
