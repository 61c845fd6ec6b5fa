"""A score for every group of test sentences, for one system or several.

    score(group) = aggregate( Σ statistics[n] for n in group )

The score of a system with several seeds is their mean. A difference is tested on resamples of the group's sentences and
of the seeds of both systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from synmt.analysis.groups.group_score import Gain, GroupScore
from synmt.analysis.groups.grouping import Grouping
from synmt.arrays import BoolArray, IntArray
from synmt.evaluation.bootstrap import SAMPLES
from synmt.evaluation.metrics import Metric, Score, score_counted
from synmt.evaluation.seeds import compare_on_resamples
from synmt.evaluation.significance import Comparison, holm
from synmt.reporting.progress import progress

FEW_SENTENCES = 10
"""A smaller group gets no interval: its resamples are too similar to show any uncertainty."""

NAMED_GROUPS = 8
"""How many groups a message or a legend names."""

_RESAMPLES_EACH = 40
"""Resamples for each comparison of a large table: with m comparisons, a corrected p-value is at least m / resamples."""


@dataclass(frozen=True)
class GroupRow:
    """One group.

    count: number of sentences in the group.
    share: their share of all sentences, 0 to 1.
    text_share: their share of all words, or of the unit that the grouping counts, 0 to 1.
    results: of each system, the baseline first; none for an empty group.
    """

    group: str
    count: int
    share: float
    text_share: float
    results: tuple[GroupScore, ...] = ()

    @property
    def system(self) -> GroupScore | None:
        """The results of the last system, which is the only one next to a baseline."""
        return self.results[-1] if self.results else None

    @property
    def baseline(self) -> GroupScore | None:
        """The results of the baseline, if there is one."""
        return self.results[0] if len(self.results) > 1 else None

    @property
    def gain(self) -> Gain | None:
        """The gain of the last system."""
        return self.system.gain if self.system else None

    @property
    def comparison(self) -> Comparison | None:
        """The comparison of the last system with the baseline."""
        return self.gain.comparison if self.gain else None

    @property
    def few(self) -> bool:
        """Tell whether the group has sentences, but too few for an interval."""
        return 0 < self.count < FEW_SENTENCES

    @property
    def cells(self) -> list[str]:
        """The name, the number of sentences and their share, as tables write them."""
        return [self.group + " *" * self.few, f"{self.count:,}", f"{self.share:.1%}"]

    def to_json(self, systems: int) -> dict[str, Any]:
        """Return the row as plain values; `system`, `baseline` … are there for two systems or one."""
        shares = {"share": self.share, "text_share": self.text_share}
        values: dict[str, Any] = {"group": self.group, "sentences": self.count, **shares}
        if systems < 3:
            scores = {"system": self.system, "baseline": self.baseline, "difference": self.gain}
            values |= {name: one and {"score": one.score, "accuracy": one.accuracy} for name, one in scores.items()}
            values["comparison"] = self.comparison and asdict(self.comparison)
        return values | {"systems": [{**asdict(one), "deviation": one.deviation} for one in self.results]}


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A row for each group, and a total for all sentences.

    several: whether there are more systems than a run and a baseline, or several seeds of a system.
    resamples: the number of resamples of the bootstrap.
    """

    grouping: Grouping
    metric: Metric
    rows: list[GroupRow]
    total: GroupRow
    several: bool = False
    resamples: int = SAMPLES

    @property
    def title(self) -> str:
        """What the groups are made from, with its unit."""
        return f"{self.grouping.by} ({self.grouping.unit})" if self.grouping.unit else self.grouping.by

    @property
    def compared(self) -> bool:
        """Tell whether there is a baseline."""
        return len(self.total.results) > 1

    @property
    def seeded(self) -> bool:
        """Tell whether some system has several seeds."""
        return any(len(one.seeds) > 1 for one in self.total.results)

    @property
    def comparisons(self) -> int:
        """The number of differences with an interval, for which p-values are corrected."""
        return len(_comparisons([*self.rows, self.total]))

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain values."""
        grouping, systems = self.grouping, len(self.total.results)
        return {
            "by": grouping.by,
            "unit": grouping.unit,
            "about": grouping.about or None,
            "overlapping": grouping.overlapping,
            "text_in": grouping.counted,
            "resamples": self.resamples,
            "comparisons": self.comparisons,
            "rows": [row.to_json(systems) for row in self.rows],
            "all": self.total.to_json(systems),
        }


@dataclass(frozen=True)
class SentenceScores:
    """The statistics of each sentence for one system, and (N,) whether its translation equals the reference."""

    score: Score
    exact: BoolArray

    def select(self, members: BoolArray) -> SentenceScores:
        """Keep some of the sentences: (N,)."""
        return SentenceScores(score_counted(self.score.metric, self.score.statistics[members]), self.exact[members])


def collect(
    score: Score, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> SentenceScores:
    """Find the exact matches among translations that have been scored; differences in spacing do not count."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return SentenceScores(score, np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, systems: Sequence[Sequence[SentenceScores]]) -> GroupTable:
    """Score every group for each system, and compare each system with the first.

    systems: of each one the scores of its seeds, all for the same sentences.
    """
    every = np.ones(len(grouping.sizes), dtype=np.bool_)
    groups = [*zip(grouping.names, grouping.members, strict=True), ("all", every)]
    tested = sum(int(members.sum()) >= FEW_SENTENCES for _, members in groups) * (len(systems) - 1)
    several = len(systems) > 2 or any(len(seeds) > 1 for seeds in systems)
    resamples = max(SAMPLES, _RESAMPLES_EACH * tested)
    # a single system is scored in a moment
    with progress("comparing", len(groups), "groups") if tested else nullcontext(lambda _: None) as advance:
        rows = []
        for name, members in groups:
            rows.append(_score_group(name, members, grouping.sizes, systems, resamples))
            advance(1)
    *rows, total = _correct(rows)
    return GroupTable(grouping, systems[0][0].score.metric, rows, total, several, resamples)


def _score_group(
    name: str, members: BoolArray, sizes: IntArray, systems: Sequence[Sequence[SentenceScores]], resamples: int
) -> GroupRow:
    count = int(members.sum())
    share, text_share = count / len(sizes), int(sizes[members].sum()) / max(int(sizes.sum()), 1)
    if not count:
        return GroupRow(name, count, share, text_share)
    chosen = [[seed.select(members) for seed in seeds] for seeds in systems]
    base, *others = (_average(seeds) for seeds in chosen)
    comparisons: Sequence[Comparison | None] = [None] * len(others)
    if others and count >= FEW_SENTENCES:
        statistics = [[seed.score.statistics for seed in seeds] for seeds in chosen]
        comparisons = compare_on_resamples(statistics, systems[0][0].score.metric.aggregate, samples=resamples)
    gained = [
        replace(one, gain=Gain(one.score - base.score, one.accuracy - base.accuracy, found))
        for one, found in zip(others, comparisons, strict=True)
    ]
    return GroupRow(name, count, share, text_share, (base, *gained))


def _average(seeds: Sequence[SentenceScores]) -> GroupScore:
    scores = [seed.score.value for seed in seeds]
    return GroupScore(float(np.mean(scores)), float(np.mean([seed.exact.mean() for seed in seeds])), scores)


def _correct(rows: Sequence[GroupRow]) -> list[GroupRow]:
    """Give each comparison its p-value that is corrected for all comparisons of the rows (Holm, 1979)."""
    found = _comparisons(rows)
    if not found:
        return list(rows)
    adjusted = iter(holm([one.p_value for one in found]))

    def corrected(result: GroupScore) -> GroupScore:
        if result.gain is None or result.gain.comparison is None:
            return result
        return replace(result, gain=replace(result.gain, holm_p=next(adjusted)))

    return [replace(row, results=tuple(corrected(one) for one in row.results)) for row in rows]


def _comparisons(rows: Sequence[GroupRow]) -> list[Comparison]:
    """List the comparisons of rows, row by row."""
    gains = (result.gain for row in rows for result in row.results)
    return [gain.comparison for gain in gains if gain and gain.comparison]
