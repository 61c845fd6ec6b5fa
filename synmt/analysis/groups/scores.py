"""Where one system beats another: a score for every group of test sentences.

    score(group) = aggregate( Σ statistics[n] for n in group )

A `Grouping` says which sentences each group has, by a length, a tree or a label; everything else is the same for all
groupings, so that a new one is one function that returns a `Grouping`. Groups may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.evaluation.metrics import Metric, Score, score_counted
from synmt.evaluation.significance import Comparison, paired_bootstrap

FEW = 10
"""A group of fewer sentences has no interval: their resamples are much alike, whatever the systems are."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups of sentences.

    by: what the groups are made by, such as `source length`.
    unit: the unit of the groups' names, which have an order then; empty for labels and relations.
    names: the G groups, in the order to show.
    chosen: (G, N) which sentences each group has; a sentence may have several groups, or none.
    sizes: (N,) how much text each sentence is, in units of `counted`.
    about: how the groups are made, for people; empty where the names say it.
    exact: whether translations that equal their references are counted, as on tests of one phenomenon.
    """

    by: str
    unit: str
    names: list[str]
    chosen: BoolArray
    sizes: IntArray
    counted: str = "words"
    about: str = ""
    exact: bool = False

    @property
    def overlapping(self) -> bool:
        """Tell whether a sentence stands in several groups."""
        return bool((self.chosen.sum(0) > 1).any())


@dataclass(frozen=True)
class Evidence:
    """What a system earned sentence by sentence: statistics, and (N,) whether it equals the reference."""

    score: Score
    exact: BoolArray

    def only(self, chosen: BoolArray) -> Evidence:
        """Leave out the other sentences."""
        return Evidence(score_counted(self.score.metric, self.score.statistics[chosen]), self.exact[chosen])


@dataclass(frozen=True)
class Result:
    """What one system reaches on one group.

    score: by the metric of the table.
    accuracy: share of sentences that equal their reference, 0 to 1.
    """

    score: float
    accuracy: float


@dataclass(frozen=True)
class Row:
    """One group; the results are None where nothing belongs to it, or without a baseline.

    count: sentences in the group.
    share: of all sentences, 0 to 1.
    text_share: of all words, or of what else the text is counted in, 0 to 1.
    comparison: the interval of the difference to the baseline, by resamples of the group's sentences; None for few.
    """

    group: str
    count: int
    share: float
    text_share: float
    system: Result | None
    baseline: Result | None = None
    comparison: Comparison | None = None

    @property
    def difference(self) -> Result | None:
        """The system's result minus the baseline's."""
        if self.system is None or self.baseline is None:
            return None
        return Result(
            self.system.score - self.baseline.score,
            self.system.accuracy - self.baseline.accuracy,
        )

    @property
    def few(self) -> bool:
        """Tell whether there are sentences, but too few to judge a difference by."""
        return 0 < self.count < FEW


@dataclass(frozen=True, eq=False)
class Table:
    """A row for each group, and one for all sentences together."""

    grouping: Grouping
    metric: Metric
    rows: list[Row]
    total: Row


def collect(score: Score, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False) -> Evidence:
    """Keep what any grouping needs of translations that have been scored; exact ignores differences in spacing."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return Evidence(score, np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, system: Evidence, baseline: Evidence | None = None) -> Table:
    """Score every group of sentences for one system, or compare two."""
    sentences, text = len(grouping.sizes), max(int(grouping.sizes.sum()), 1)

    def row(name: str, chosen: BoolArray) -> Row:
        count = int(chosen.sum())
        share, text_share = count / sentences, int(grouping.sizes[chosen].sum()) / text
        one, other = (evidence.only(chosen) if evidence and count else None for evidence in (system, baseline))
        return Row(name, count, share, text_share, _result(one), _result(other), _compare(one, other))

    rows = [row(name, chosen) for name, chosen in zip(grouping.names, grouping.chosen, strict=True)]
    return Table(grouping, system.score.metric, rows, row("all", np.ones(sentences, dtype=np.bool_)))


def _result(evidence: Evidence | None) -> Result | None:
    return Result(evidence.score.value, float(evidence.exact.mean())) if evidence else None


def _compare(system: Evidence | None, baseline: Evidence | None) -> Comparison | None:
    if system is None or baseline is None or len(system.exact) < FEW:
        return None
    return paired_bootstrap(baseline.score.statistics, system.score.statistics, system.score.metric.aggregate)


def as_json(table: Table) -> dict[str, Any]:
    """Write a table as plain values; what is missing is None."""
    grouping = table.grouping
    return {
        "by": grouping.by,
        "unit": grouping.unit,
        "about": grouping.about or None,
        "overlapping": grouping.overlapping,
        "text_in": grouping.counted,
        "rows": [_row_as_json(row) for row in table.rows],
        "all": _row_as_json(table.total),
    }


def _row_as_json(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {
        "group": row.group,
        "sentences": row.count,
        "share": row.share,
        "text_share": row.text_share,
    }
    for name in ("system", "baseline", "difference"):
        result: Result | None = getattr(row, name)
        values[name] = result and {"score": result.score, "accuracy": result.accuracy}
    values["comparison"] = row.comparison and asdict(row.comparison)
    return values
