"""How far training varies: the variance of the seeds, pooled over systems that vary alike.

On one test set, the scores of a system's seeds differ because trainings end differently, and because each model has
luck with other sentences. The luck with sentences is in the variance over resamples of the sentences already, so that
it is subtracted here:

    variance = variance of the scores around their mean over seeds
               - variance over resamples of these differences from the mean

The variance of two or three seeds says little, so it is pooled over systems. A system whose training fails with some
seeds would make all intervals useless, so systems that vary far more than the others (F test against the median
variance, adjusted for their number as Bonferroni does, p < about 0.01) have their own variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from scipy import stats

from synmt.arrays import DoubleArray
from synmt.evaluation.significance import bootstrap_scores

Aggregate = Callable[[DoubleArray], float]
Counts = Mapping[str, Sequence[DoubleArray]]
"""Of each system, for each seed, the counts of the same sentences: (N, S)."""
_SAMPLES = 1000
_UNSTABLE = 0.01
"""The adjusted p below which the variance of a system is not that of the others."""


class Resampled:
    """The scores of all runs, in points, on all sentences and on resamples of them.

    scores: of each system the score of each seed.
    means: of each system the mean over its seeds on each resample: (R,).
    luck: of each system the sum over its seeds of the variance over resamples of the difference from this mean.
    """

    def __init__(self, counts: Counts, aggregate: Aggregate) -> None:
        scores = bootstrap_scores([one for seeds in counts.values() for one in seeds], aggregate, samples=_SAMPLES)
        ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
        parts = dict(zip(counts, np.split(scores, ends, axis=1), strict=True))  # of a system: (R, seeds)
        self.scores = {system: [aggregate(one.sum(0)) for one in seeds] for system, seeds in counts.items()}
        self.means = {system: part.mean(1) for system, part in parts.items()}
        self.luck = {
            system: float((part - part.mean(1, keepdims=True)).var(0, ddof=1).sum()) for system, part in parts.items()
        }


@dataclass(frozen=True, eq=False)
class SeedVariance:
    """The variance of the seeds that systems share, or that an unstable one has.

    observed: of the scores on one test set.
    luck: the part of it that each model's luck with sentences has.
    freedom: degrees of freedom.
    """

    observed: float
    luck: float
    freedom: int

    @property
    def value(self) -> float:
        """The variance that is left for training; never negative."""
        return max(0.0, self.observed - self.luck)


def seed_variances(runs: Resampled, alike: Mapping[str, str], unstable: Set[str]) -> dict[str, SeedVariance]:
    """Pool the variance of the seeds over systems that vary alike; unstable ones have their own."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for system in runs.scores:
        is_unstable = system in unstable
        groups.setdefault((system if is_unstable else alike[system], is_unstable), []).append(system)
    pooled = [(systems, _pooled(runs, systems)) for systems in groups.values()]
    return {system: variance for systems, variance in pooled for system in systems}


def _pooled(runs: Resampled, systems: Iterable[str]) -> SeedVariance:
    chosen = {system: runs.scores[system] for system in systems}
    observed, freedom = within(chosen.values())
    luck = sum(runs.luck[system] for system in chosen)
    return SeedVariance(observed, luck / freedom if freedom else 0.0, freedom)


def unstable_systems(scores: Mapping[str, Sequence[float]]) -> set[str]:
    """Choose the systems whose seeds vary far more than those of the others.

    The median of variances, each divided by what the median of its law would be if the variance of all systems were 1,
    estimates a common variance; it does not mind that a few are large.
    """
    own = {system: within([seeds]) for system, seeds in scores.items() if len(seeds) > 1}
    typical = np.median([variance * freedom / stats.chi2.median(freedom) for variance, freedom in own.values()] or 0)
    total = sum(freedom for _, freedom in own.values())
    critical = {count: stats.f.isf(_UNSTABLE / len(own), count, total) for count in {each for _, each in own.values()}}
    return {system for system, (variance, freedom) in own.items() if typical and variance > critical[freedom] * typical}


def within(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Compute the variance within groups, and its degrees of freedom; 0 and 0 if no group has two values."""
    groups = list(groups)
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return (squares / freedom if freedom else 0.0), freedom
