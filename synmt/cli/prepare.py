"""`synmt prepare`: from text and trees to binary training data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from synmt.cli import console
from synmt.cli.command import WHICH_RECIPE, Cluster, Data, DryRun, loading
from synmt.cli.options import command
from synmt.errors import SynmtError, all_in_one, listed
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.corpora.resolve import Estimate
    from synmt.training.preparation import Prepared


@dataclass(frozen=True, kw_only=True)
class PrepareArguments:
    """What `synmt prepare` is given."""

    recipe: Annotated[Path, Option(WHICH_RECIPE, metavar="RECIPE", is_argument=True)]
    overrides: Annotated[
        Sequence[str],
        Option("Values that replace those of the recipe.", metavar="KEY=VALUE", is_argument=True),
    ] = ()
    data: Data = Path("data")
    trees: Annotated[
        bool, Option("Parse the source even if no variant of the recipe reads its trees.")
    ] = False
    cluster: Cluster = None
    dry_run: DryRun = False


@command
def prepare(options: PrepareArguments) -> None:
    """Prepare the training data of a recipe: filter, segment into subwords, parse; print the
    folder.

    Existing results are reused; after an interruption, the same command continues. `synmt train`
    prepares its data by itself.

    Example: [bold]synmt prepare quickstart[/]
    """
    from synmt.parallel.engine import using_cluster
    from synmt.training import pipeline

    recipe, overrides, data, trees = options.recipe, options.overrides, options.data, options.trees
    if options.dry_run:
        show_plan(pipeline.plan_preparation(recipe, overrides, data=data, source_trees=trees))
        return
    with using_cluster(options.cluster):
        for prepared in pipeline.prepare(recipe, overrides, data=data, source_trees=trees):
            show_corpus(prepared)
            console.show(str(prepared.folder))


def show_plan(steps: Sequence[Estimate]) -> None:
    """Print the steps as a table; raise all problems that would stop the command, in one error."""
    from synmt.reporting.values import Report
    from synmt.training.stages import steps_table

    console.show_reports({"plan": Report(title="", parts=[steps_table(steps)])})
    problems = {str(step.problem): step.problem for step in steps if step.problem}
    if problems:
        sys.stdout.flush()
        raise all_in_one(list(problems.values()))


def show_recipes(words: Sequence[str]) -> None:
    """Print a table of the shipped recipes that match all words."""
    from synmt.reporting.values import Report
    from synmt.training.recipe_list import recipe_table

    table = recipe_table(words)
    if not table.rows:
        raise SynmtError(
            f"no shipped recipe contains {listed(words)}", do="`synmt train --list` shows all"
        )
    console.show_reports({"recipes": Report(title="", parts=[table])})


def show_keys(words: Sequence[str]) -> None:
    """Print the keys of a recipe and the options of variants that match all words: default, values
    and meaning."""
    from synmt.recipe.keys import list_keys

    with loading():
        from synmt.model.variant_keys import list_options

    keys = [*list_keys(words), *list_options(words)]
    if not keys:
        raise SynmtError(
            f"no key of a recipe contains {listed(words)}", do="`synmt train --keys` shows all"
        )
    print("\n".join(key.text() for key in keys))


def show_corpus(prepared: Prepared) -> None:
    from synmt.data.corpus import PreparedCorpus
    from synmt.data.summary import corpus_table

    corpus = prepared.corpus
    console.show_aside(
        corpus_table(
            PreparedCorpus.open(prepared.folder),
            tuple(prepared.trees.values()),
            title=f"{corpus.name}, {corpus.source}-{corpus.target}: {prepared.folder}",
        )
    )
