"""Sentence-level comparison of two systems: the sentences in which B gains most over A, and loses most.

    gain[n] = score of B in sentence n - score of A in sentence n        the opposite for an error rate

Sentences are ranked by the metric itself, except that chrF replaces BLEU: most sentences have no 4-gram in common with
their reference, so BLEU is uninformative for single sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import DoubleArray
from synmt.evaluation.metrics import Metric, MetricOptions, Score, make_metric
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import Comparison, paired_bootstrap


@dataclass(frozen=True)
class ComparedSentence:
    """One sentence with the translations of two systems.

    line: number of the line, from 1.
    source: empty if there is no source.
    a, b: the translations.
    score_a, score_b: sentence-level scores.
    gain: by how much B is better than A.
    """

    line: int
    source: str
    reference: str
    a: str
    b: str
    score_a: float
    score_b: float
    gain: float


@dataclass(frozen=True)
class ComparedSystems:
    """Two systems on one test set.

    a, b: names of the systems.
    test: name of the test set; empty for files.
    score_a, score_b: scores of the whole test set.
    difference: score of B minus score of A.
    ranking: the metric for single sentences.
    wins, ties, losses: number of sentences in which B is better, equal, worse.
    gaining, losing: the sentences with the largest gains and the largest losses of B.
    """

    a: str
    b: str
    test: str
    metric: Metric
    score_a: float
    score_b: float
    difference: Comparison
    ranking: Metric
    wins: int
    ties: int
    losses: int
    gaining: list[ComparedSentence]
    losing: list[ComparedSentence]

    @property
    def sentences(self) -> list[ComparedSentence]:
        """The sentences with the largest gains, then those with the largest losses."""
        return [*self.gaining, *self.losing]


def ranking_metric(name: str, options: MetricOptions) -> Metric:
    """Make the metric for single sentences from the name of the metric for the test set."""
    return make_metric("chrf" if name.strip().lower().startswith("bleu") else name, options)


def rank_differences(
    a: Outputs, b: Outputs, scores: tuple[Score, Score], ranks: tuple[Score, Score], *, top: int
) -> ComparedSystems:
    """Find the sentences that two systems translate most differently.

    scores, ranks: scores of A and B by the metric for the test set, and by the metric for single sentences.
    top: number of sentences, half of them gains; if there are fewer gains, there are more losses, and vice versa.
    """
    total_a, total_b = scores
    ranking = ranks[0].metric
    scores_a, scores_b = (ranking.segment_scores(one.statistics) for one in ranks)  # (N,) both
    gains = (scores_b - scores_a) * (1 if ranking.higher_is_better else -1)  # (N,)
    better, worse = _halves(gains, top)

    def sentences(chosen: Sequence[int]) -> list[ComparedSentence]:
        return [
            ComparedSentence(
                line=index + 1,
                source=a.source[index] if a.source else "",
                reference=a.reference[index],
                a=a.hypothesis[index],
                b=b.hypothesis[index],
                score_a=float(scores_a[index]),
                score_b=float(scores_b[index]),
                gain=float(gains[index]),
            )
            for index in chosen
        ]

    return ComparedSystems(
        a=a.system,
        b=b.system,
        test=a.test,
        metric=total_a.metric,
        score_a=total_a.value,
        score_b=total_b.value,
        difference=paired_bootstrap(total_a.statistics, total_b.statistics, total_a.metric.aggregate),
        ranking=ranking,
        wins=int((gains > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((gains < 0).sum()),
        gaining=sentences(better),
        losing=sentences(worse),
    )


def _halves(gains: DoubleArray, top: int) -> tuple[list[int], list[int]]:
    """Choose the sentences with the largest gains and losses (N,); ties in the order of the lines."""
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0].tolist()
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0].tolist()
    least = top // 2
    gaining = max(top - least, top - len(worse))
    return better[:gaining], worse[: top - len(better[:gaining])]
