"""The results of one system on one group of test sentences, and how far they are above the baseline's."""

from __future__ import annotations

from dataclasses import dataclass, field

from synmt.evaluation.seeds import spread
from synmt.evaluation.significance import Comparison


@dataclass(frozen=True)
class Gain:
    """By how much a system's results on a group are above the baseline's.

    score, accuracy: differences of the means over the seeds.
    comparison: the difference of the scores with its interval; None for a small group.
    holm_p: its p-value, corrected for all comparisons of the table.
    """

    score: float
    accuracy: float
    comparison: Comparison | None = None
    holm_p: float | None = None


@dataclass(frozen=True)
class GroupScore:
    """Results of one system on one group, averaged over its seeds.

    score: by the metric of the table.
    accuracy: share of translations that equal their reference, 0 to 1.
    seeds: the score of each seed.
    gain: over the baseline; None for the baseline, and where there is none.
    """

    score: float
    accuracy: float
    seeds: list[float] = field(default_factory=list)
    gain: Gain | None = None

    @property
    def deviation(self) -> float:
        """The standard deviation of the seeds' scores; 0 for one seed."""
        return spread(self.seeds).deviation if len(self.seeds) > 1 else 0.0
