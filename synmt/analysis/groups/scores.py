"""A score for every group of test sentences, for one system or several.

    score(group) = aggregate( Σ statistics[n] for n in group )

The score of a system with several seeds is their mean. A difference is tested on resamples of the group's sentences and
of the seeds of both systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from synmt.analysis.groups.grouping import Grouping
from synmt.analysis.groups.results import FEW_SENTENCES, LOWER, GroupResult, GroupRow, ResultTable, correct
from synmt.arrays import BoolArray
from synmt.evaluation.bootstrap import SAMPLES
from synmt.evaluation.metrics import Metric, Score, score_counted
from synmt.evaluation.seeds import compare_on_resamples
from synmt.evaluation.significance import Comparison
from synmt.reporting.progress import progress
from synmt.reporting.values import Column, count_column, share_column

SAMPLES_EACH = 40
"""Resamples for each comparison of a large table: with m comparisons, a corrected p-value is at least m / resamples."""


@dataclass(frozen=True)
class SentenceScores:
    """The statistics of each sentence for one system, and (N,) whether its translation equals the reference."""

    score: Score
    exact: BoolArray

    def select(self, members: BoolArray) -> SentenceScores:
        """Keep some of the sentences: (N,)."""
        return SentenceScores(score_counted(self.score.metric, self.score.statistics[members]), self.exact[members])


Scores = Mapping[str, Sequence[SentenceScores]]
"""For each system the scores of its seeds, all for the same sentences; the first system is the baseline."""


def collect(
    score: Score, hypotheses: Sequence[str], references: Sequence[str], *, lowercase: bool = False
) -> SentenceScores:
    """Find the exact matches among translations that have been scored; differences in spacing do not count."""

    def words(line: str) -> list[str]:
        return (line.lower() if lowercase else line).split()

    exact = [words(one) == words(other) for one, other in zip(hypotheses, references, strict=True)]
    return SentenceScores(score, np.array(exact, dtype=np.bool_))


def tabulate(grouping: Grouping, systems: Scores) -> ResultTable:
    """Score every group for each system, and compare each system with the first."""
    every = np.ones(len(grouping.sizes), dtype=np.bool_)
    groups = [*zip(grouping.names, grouping.members, strict=True), ("all", every)]
    tested = sum(int(members.sum()) >= FEW_SENTENCES for _, members in groups) * (len(systems) - 1)
    samples = max(SAMPLES, SAMPLES_EACH * tested)
    rows = []
    # a single system is scored in a moment
    with progress("comparing", len(groups), "groups") if tested else nullcontext(lambda _: None) as advance:
        for name, members in groups:
            rows.append(_score_group(name, members, grouping, systems, samples))
            advance(1)
    *rows, total = correct(rows, "score")
    measures = _measures(_metric_of(systems), grouping)
    return ResultTable(grouping.by, grouping.unit, measures, _sizes(grouping), rows, total, samples, grouping.about)


def _metric_of(systems: Scores) -> Metric:
    return next(iter(systems.values()))[0].score.metric


def _measures(metric: Metric, grouping: Grouping) -> list[Column]:
    """Describe the scores by the metric, after exact matches where these are reported."""
    exact = share_column("exact match", name="accuracy")
    about = "" if metric.higher_is_better else LOWER
    return [*[exact] * grouping.exact, Column(title=metric.title, name="score", about=about)]


def _sizes(grouping: Grouping) -> list[Column]:
    return [
        count_column("sentences"),
        share_column("share", about="share of the sentences"),
        share_column(f"share of {grouping.counted}", name="text_share", about="share of their text"),
    ]


def _score_group(name: str, members: BoolArray, grouping: Grouping, systems: Scores, samples: int) -> GroupRow:
    count, sizes = int(members.sum()), grouping.sizes
    text = int(sizes[members].sum())
    chosen = {system: [seed.select(members) for seed in seeds] for system, seeds in systems.items()} if count else {}
    results = {system: _average(seeds) for system, seeds in chosen.items()}
    comparisons: Sequence[Comparison | None] = [None] * (len(results) - 1)
    if len(results) > 1 and count >= FEW_SENTENCES:
        statistics = [[seed.score.statistics for seed in seeds] for seeds in chosen.values()]
        comparisons = compare_on_resamples(statistics, _metric_of(systems).aggregate, samples=samples)
    base, *others = results.values() or [{}]
    for one, comparison in zip(others, comparisons, strict=True):
        one["accuracy"] = one["accuracy"].above(base["accuracy"], None)
        one["score"] = one["score"].above(base["score"], comparison)
    return GroupRow(name, count, count / len(sizes), text, text / max(int(sizes.sum()), 1), results)


def _average(seeds: Sequence[SentenceScores]) -> dict[str, GroupResult]:
    scores, exact = [seed.score.value for seed in seeds], [float(seed.exact.mean()) for seed in seeds]
    return {
        "accuracy": GroupResult(float(np.mean(exact)), exact),
        "score": GroupResult(float(np.mean(scores)), scores),
    }
