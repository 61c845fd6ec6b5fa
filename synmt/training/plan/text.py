"""The text of a recipe: which steps are done, and what would be downloaded and built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import TextEstimate, estimates, find_corpus, stated_counts
from synmt.errors import SynmtError
from synmt.recipe.schema import Recipe
from synmt.training.plan.step import PlannedStep


@dataclass(frozen=True)
class PlannedText:
    """The text of a recipe.

    corpus: None as long as a file is missing.
    valid: the name of the split that is the validation text.
    counts: lines of each split, as far as they are known without the text.
    """

    corpus: Corpus | None = None
    steps: list[PlannedStep] = field(default_factory=list)
    valid: str = "valid"
    counts: Mapping[str, int] = field(default_factory=dict)


def plan_text(recipe: Recipe) -> PlannedText:
    """Find the text of a recipe, or plan what makes it."""
    where = (recipe.corpus, recipe.source, recipe.target)
    try:
        if corpus := find_corpus(*where):
            return PlannedText(corpus, [PlannedStep(f"find the text: {corpus.train.source.parent}", "done")])
        steps = [PlannedStep(step.what, step.state, _amount(step), problem=step.problem) for step in estimates(*where)]
    except SynmtError as error:
        return PlannedText(steps=[PlannedStep("find the text", "missing", problem=error)])
    return PlannedText(None, steps, counts=stated_counts(recipe.corpus))


def _amount(step: TextEstimate) -> str:
    if step.what.startswith("download"):
        return _bytes(step.size)
    return f"about {step.pairs:,} pairs to train on" if step.pairs else ""


def _bytes(size: int | None) -> str:
    if size is None:
        return "size unknown"
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
