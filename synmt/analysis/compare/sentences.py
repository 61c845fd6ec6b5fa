"""Sentence-level comparison of two systems: the sentences in which B gains most over A, and loses most.

    gain[n] = score of B in sentence n - score of A in sentence n        the opposite for an error rate

Sentences are ranked by the metric itself, except that chrF replaces BLEU: most sentences have no 4-gram in common with
their reference, so BLEU is uninformative for single sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

import numpy as np

from synmt.arrays import DoubleArray
from synmt.evaluation.metrics import Metric, MetricOptions, Score, make_metric
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.seeds import compare_on_resamples
from synmt.evaluation.significance import Comparison, holm


@dataclass(frozen=True)
class ComparedSentence:
    """One sentence with the translations of all systems.

    line: number of the line, from 1.
    source: empty if there is no source.
    translations, scores: of each system; scores are sentence-level.
    gain: by how much the other systems are better than the first, on average.
    """

    line: int
    source: str
    reference: str
    translations: tuple[str, ...]
    scores: tuple[float, ...]
    gain: float


@dataclass(frozen=True, eq=False)
class ComparedSystem:
    """One of the systems.

    score: of the whole test set.
    sentences: (N,) sentence-level scores.
    difference: of the score from that of the first system, which has none.
    holm_p: its p-value, corrected for the number of systems.
    wins, ties, losses: number of sentences in which it is better than the first, equal, worse.
    """

    name: str
    score: float
    sentences: DoubleArray
    difference: Comparison | None = None
    holm_p: float | None = None
    wins: int = 0
    ties: int = 0
    losses: int = 0


@dataclass(frozen=True)
class ComparedSystems:
    """Systems on one test set.

    test: name of the test set; empty for files.
    ranking: the metric for single sentences.
    gaining, losing: the sentences with the largest gains and the largest losses of the systems after the first.
    """

    systems: list[ComparedSystem]
    test: str
    metric: Metric
    ranking: Metric
    gaining: list[ComparedSentence]
    losing: list[ComparedSentence]

    @property
    def sentences(self) -> list[ComparedSentence]:
        """The sentences with the largest gains, then those with the largest losses."""
        return [*self.gaining, *self.losing]

    @property
    def letters(self) -> list[str]:
        """The letters that name the systems."""
        return list(ascii_uppercase[: len(self.systems)])


def ranking_metric(name: str, options: MetricOptions) -> Metric:
    """Make the metric for single sentences from the name of the metric for the test set."""
    return make_metric("chrf" if name.strip().lower().startswith("bleu") else name, options)


def rank_differences(
    outputs: Sequence[Outputs], scores: Sequence[Score], ranks: Sequence[Score], *, top: int
) -> ComparedSystems:
    """Find the sentences that systems translate most differently from the first one.

    scores, ranks: of each system by the metric for the test set, and by the metric for single sentences.
    top: number of sentences, half of them gains; if there are fewer gains, there are more losses, and vice versa.
    """
    first, ranking = outputs[0], ranks[0].metric
    points = np.array([ranking.segment_scores(one.statistics) for one in ranks])  # (M, N)
    gains = (points[1:] - points[0]) * (1 if ranking.higher_is_better else -1)  # (M-1, N)
    mean_gains = gains.mean(0)  # (N,)
    better, worse = _halves(mean_gains, top)

    def sentences(chosen: Sequence[int]) -> list[ComparedSentence]:
        return [
            ComparedSentence(
                line=index + 1,
                source=first.source[index] if first.source else "",
                reference=first.reference[index],
                translations=tuple(one.hypothesis[index] for one in outputs),
                scores=tuple(points[:, index].tolist()),
                gain=float(mean_gains[index]),
            )
            for index in chosen
        ]

    return ComparedSystems(
        systems=_describe([one.system for one in outputs], scores, points, gains),
        test=first.test,
        metric=scores[0].metric,
        ranking=ranking,
        gaining=sentences(better),
        losing=sentences(worse),
    )


def _describe(
    names: Sequence[str], scores: Sequence[Score], points: DoubleArray, gains: DoubleArray
) -> list[ComparedSystem]:
    """Compare the scores of systems with the first, given sentence-level scores (M, N) and gains (M-1, N)."""
    base, *others = (ComparedSystem(*one) for one in zip(names, (one.value for one in scores), points, strict=True))
    differences = compare_on_resamples([[one.statistics] for one in scores], scores[0].metric.aggregate)
    adjusted = holm([one.p_value for one in differences])
    compared = [
        replace(one, difference=found, holm_p=p, wins=int((own > 0).sum()), ties=int((own == 0).sum()))
        for one, found, p, own in zip(others, differences, adjusted, gains, strict=True)
    ]
    return [base, *(replace(one, losses=len(one.sentences) - one.wins - one.ties) for one in compared)]


def _halves(gains: DoubleArray, top: int) -> tuple[list[int], list[int]]:
    """Choose the sentences with the largest gains and losses (N,); ties in the order of the lines."""
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0].tolist()
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0].tolist()
    least = top // 2
    gaining = max(top - least, top - len(worse))
    return better[:gaining], worse[: top - len(better[:gaining])]
