"""Two systems, sentence by sentence: where the second gains most over the first, and where it loses most.

    gain[n] = score of sentence n by B - score by A        the other way round for an error rate

Sentences are ranked by the metric itself, except that chrF takes the place of BLEU: most sentences have no sequence of
four words in common with their reference, so that BLEU tells little of a single one.
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
    """One sentence, as two systems translate it.

    line: its number, from 1.
    source: empty where no source was given.
    a, b: the translations.
    score_a, score_b: of this sentence alone.
    gain: what B has more, or fewer errors.
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
class Compared:
    """Two systems on one test set.

    a, b: their names.
    test: that of the test set; empty for files.
    score_a, score_b: of all sentences.
    difference: B's score minus A's.
    ranking: the metric of single sentences.
    wins, ties, losses: sentences in which B is better, equal, worse.
    gaining, losing: the sentences in which B gains most, and loses most, in that order.
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
        """All sentences that are shown."""
        return [*self.gaining, *self.losing]


def ranking_metric(name: str, options: MetricOptions) -> Metric:
    """Make the metric by which single sentences are ranked, given the name of that of the test set."""
    return make_metric("chrf" if name.strip().lower().startswith("bleu") else name, options)


def rank_differences(
    a: Outputs, b: Outputs, scores: tuple[Score, Score], ranks: tuple[Score, Score], *, top: int
) -> Compared:
    """Find the sentences that two systems translate most differently.

    scores, ranks: those of A and B by the metric of the test set and by that of single sentences.
    top: so many sentences, half of them gains; where one half has too few, the other one has more.
    """
    base, system = scores
    ranking = ranks[0].metric
    ours, theirs = (ranking.segment_scores(one.statistics) for one in ranks)  # (N,) both
    gains = (theirs - ours) * (1 if ranking.higher_is_better else -1)  # (N,)
    better, worse = _halves(gains, top)

    def show(chosen: Sequence[int]) -> list[ComparedSentence]:
        return [_sentence(a, b, index, ours, theirs, float(gains[index])) for index in chosen]

    return Compared(
        a=a.system,
        b=b.system,
        test=a.test,
        metric=base.metric,
        score_a=base.value,
        score_b=system.value,
        difference=paired_bootstrap(base.statistics, system.statistics, base.metric.aggregate),
        ranking=ranking,
        wins=int((gains > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((gains < 0).sum()),
        gaining=show(better),
        losing=show(worse),
    )


def _halves(gains: DoubleArray, top: int) -> tuple[list[int], list[int]]:
    """Choose sentences with large gains and with large losses: (N,); the first of equal ones comes first."""
    order = np.argsort(-gains, kind="stable")
    better = order[gains[order] > 0].tolist()
    order = np.argsort(gains, kind="stable")
    worse = order[gains[order] < 0].tolist()
    least = top // 2
    gaining = max(top - least, top - len(worse))
    return better[:gaining], worse[: top - len(better[:gaining])]


def _sentence(
    a: Outputs, b: Outputs, index: int, ours: DoubleArray, theirs: DoubleArray, gain: float
) -> ComparedSentence:
    return ComparedSentence(
        line=index + 1,
        source=a.source[index] if a.source else "",
        reference=a.reference[index],
        a=a.hypothesis[index],
        b=b.hypothesis[index],
        score_a=float(ours[index]),
        score_b=float(theirs[index]),
        gain=gain,
    )
