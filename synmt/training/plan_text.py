"""The text of a recipe: what is there, and what would be downloaded or has to be put there by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from synmt.corpora.resolve import Corpus, find_corpus
from synmt.errors import SynmtError
from synmt.recipe.schema import Recipe
from synmt.training.planned import PlannedStep, TextSize


@dataclass(frozen=True)
class PlannedText:
    """The text of a recipe.

    corpus: None as long as a file is missing.
    lines: of the splits whose size is known without their text.
    """

    corpus: Corpus | None
    steps: list[PlannedStep] = field(default_factory=list)
    lines: Mapping[str, int] = field(default_factory=dict)

    def size(self, split: str) -> TextSize:
        """Estimate the size of a split that is not there."""
        return TextSize(self.lines.get(split))


def plan_text(recipe: Recipe) -> PlannedText:
    """Find the text of a recipe, or plan what makes it; nothing is downloaded or generated."""
    where = (recipe.corpus, recipe.source, recipe.target)
    try:
        corpus = find_corpus(*where)
    except SynmtError as error:
        return PlannedText(None, [PlannedStep("find the text", "missing", problem=error)])
    if corpus is not None:
        return PlannedText(corpus, [PlannedStep(f"find the text: {corpus.train.source.parent}", "there")])
    return PlannedText(None, [PlannedStep("generate the text", "to do")])
