"""A score for every group of test sentences, for one system or two.

    score(group) = aggregate( Σ statistics[n] for n in group )

A `Grouping` says which sentences belong to each group; it may be made from lengths, trees or labels, and all of them
are scored in the same way. Groups may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.evaluation.metrics import Metric, Score, score_counted
from synmt.evaluation.significance import Comparison, paired_bootstrap

FEW_SENTENCES = 10
"""A smaller group gets no interval: its resamples are too similar to show any uncertainty."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of sentences.

    by: what the groups are made from, such as `source length`.
    unit: unit of the values in the group names, which are then in order; empty for labels and relations.
    names: names of the G groups, in display order.
    members: (G, N) which sentences belong to each group; a sentence may be in several groups, or in none.
    sizes: (N,) the amount of text in each sentence, in units of `counted`.
    about: explanation of the groups for the legend; empty if the names explain themselves.
    exact: whether to report exact matches with the reference, as on test sets for one phenomenon.
    """

    by: str
    unit: str
    names: list[str]
    members: BoolArray
    sizes: IntArray
    counted: str = "words"
    about: str = ""
    exact: bool = False

    @property
    def overlapping(self) -> bool:
        """Tell whether some sentence is in several groups."""
        return bool((self.members.sum(0) > 1).any())


@dataclass(frozen=True)
class SentenceScores:
    """The statistics of each sentence for one system, and (N,) whether its translation equals the reference."""

    score: Score
    exact: BoolArray

    def select(self, members: BoolArray) -> SentenceScores:
        """Keep some of the sentences: (N,)."""
        return SentenceScores(score_counted(self.score.metric, self.score.statistics[members]), self.exact[members])


@dataclass(frozen=True)
class GroupScore:
    """Results of one system on one group.

    score: by the metric of the table.
    accuracy: share of translations that equal their reference, 0 to 1.
    """

    score: float
    accuracy: float


@dataclass(frozen=True)
class GroupRow:
    """One group; `system` is None for an empty group, and `baseline` also without a baseline.

    count: number of sentences in the group.
    share: their share of all sentences, 0 to 1.
    text_share: their share of all words, or of the unit that the grouping counts, 0 to 1.
    comparison: difference to the baseline with its interval; None for fewer than FEW_SENTENCES.
    """

    group: str
    count: int
    share: float
    text_share: float
    system: GroupScore | None
    baseline: GroupScore | None = None
    comparison: Comparison | None = None

    @property
    def difference(self) -> GroupScore | None:
        """The system's results minus the baseline's."""
        if self.system is None or self.baseline is None:
            return None
        return GroupScore(self.system.score - self.baseline.score, self.system.accuracy - self.baseline.accuracy)

    @property
    def few(self) -> bool:
        """Tell whether the group has sentences, but too few for an interval."""
        return 0 < self.count < FEW_SENTENCES

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        scores = {"system": self.system, "baseline": self.baseline, "difference": self.difference}
        return {
            "group": self.group,
            "sentences": self.count,
            "share": self.share,
            "text_share": self.text_share,
            **{name: one and asdict(one) for name, one in scores.items()},
            "comparison": self.comparison and asdict(self.comparison),
        }


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A row for each group, and a total for all sentences."""

    grouping: Grouping
    metric: Metric
    rows: list[GroupRow]
    total: GroupRow

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain values."""
        grouping = self.grouping
        return {
            "by": grouping.by,
            "unit": grouping.unit,
            "about": grouping.about or None,
            "overlapping": grouping.overlapping,
            "text_in": grouping.counted,
            "rows": [row.to_json() for row in self.rows],
            "all": self.total.to_json(),
        }


def collect(
    score: Score, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> SentenceScores:
    """Find the exact matches among translations that have been scored; differences in spacing do not count."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return SentenceScores(score, np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, system: SentenceScores, baseline: SentenceScores | None = None) -> GroupTable:
    """Score every group for one system, or compare two systems."""
    sentences, text = len(grouping.sizes), max(int(grouping.sizes.sum()), 1)

    def row(name: str, members: BoolArray) -> GroupRow:
        count = int(members.sum())
        share, text_share = count / sentences, int(grouping.sizes[members].sum()) / text
        one, other = (scores.select(members) if scores and count else None for scores in (system, baseline))
        return GroupRow(name, count, share, text_share, _result(one), _result(other), _compare(one, other))

    rows = [row(name, members) for name, members in zip(grouping.names, grouping.members, strict=True)]
    return GroupTable(grouping, system.score.metric, rows, row("all", np.ones(sentences, dtype=np.bool_)))


def _result(scores: SentenceScores | None) -> GroupScore | None:
    return GroupScore(scores.score.value, float(scores.exact.mean())) if scores else None


def _compare(system: SentenceScores | None, baseline: SentenceScores | None) -> Comparison | None:
    if system is None or baseline is None or len(system.exact) < FEW_SENTENCES:
        return None
    return paired_bootstrap(baseline.score.statistics, system.score.statistics, system.score.metric.aggregate)
