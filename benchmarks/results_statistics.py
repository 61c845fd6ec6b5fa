"""Differences between systems, over sentences and seeds.

    difference = sum over systems of weight · mean over the seeds of the score
    variance   = variance of the difference over resamples of the sentences
                 + sum of weight² · variance of the seeds / seeds

The scores of a system's seeds differ because trainings end differently, and because each model has
luck with other sentences. That luck is in the variance over resamples already:

    variance of the seeds = variance of the scores around their mean over seeds
                            - variance over resamples of these differences from the mean

Two or three seeds say little, so systems that vary alike share this variance. Systems that vary far
more than the others (F test against the median variance, Bonferroni) have their own.

Intervals and p are those of Student's t. The variance of the seeds is an estimate, with as many
degrees of freedom as there are seeds more than systems, that over sentences is taken as known
(Satterthwaite, 1946). The p-values of a comparison are adjusted for all of its differences
together, many of which have the same baseline (Dunnett, 1955):

    adjusted p = P(some |T_j| >= t)   T of Student, correlated as the differences, P(|T_i| >= t) = p
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from synmt.arrays import DoubleArray
from synmt.evaluation.metrics import Aggregate
from synmt.evaluation.significance import bootstrap_scores
from synmt.reporting.values import Interval

SIGNIFICANT, _UNSTABLE = 0.05, 0.01
"""The adjusted p below which a difference is significant, and a system unstable."""
_SAMPLES, _DRAWS = 1000, 40_000
"""Resamples of the sentences; draws of the largest difference."""


@dataclass(frozen=True)
class Difference:
    """A difference in points with its standard error.

    freedom: degrees of freedom; 0 if no seeds show how much training varies, so that the error is
        that of sentences only.
    p: adjusted; None if the difference is not tested.
    visible: the smallest difference that would be significant; 0 if it is not tested.
    """

    value: float
    error: float
    freedom: float
    p: float | None = None
    visible: float = 0.0

    @property
    def interval(self) -> Interval:
        """The 95 % interval."""
        half = float(stats.t.ppf(0.975, self.freedom or math.inf)) * self.error
        return Interval(self.value - half, self.value + half)

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p is small."""
        return self.p is not None and self.p < SIGNIFICANT

    def unadjusted_p(self) -> float:
        """Compute p before it is adjusted."""
        if not self.error:
            return float(self.value == 0)
        return 2 * float(stats.t.sf(abs(self.value) / self.error, self.freedom or math.inf))


@dataclass(frozen=True, eq=False)
class SeedVariance:
    """The variance of the seeds of systems that vary alike; `observed` includes the luck with
    sentences, and `freedom` is its degrees of freedom."""

    value: float
    observed: float
    freedom: int


class Comparison:
    """Systems compared with each other by the scores of their runs on the same sentences.

    counts: of each system, for each seed, the counts of the sentences: (N, S).
    alike: of each system the name of the group whose seeds vary alike.
    scores: of each system the score of each seed.
    """

    def __init__(
        self,
        counts: Mapping[str, Sequence[DoubleArray]],
        aggregate: Aggregate,
        alike: Mapping[str, str],
    ) -> None:
        runs = [run for seeds in counts.values() for run in seeds]
        resampled = bootstrap_scores(runs, aggregate, samples=_SAMPLES)  # (R, runs)
        ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
        self.scores: dict[str, list[float]] = {}
        self._means, luck = dict[str, DoubleArray](), dict[str, float]()
        for system, part in zip(counts, np.split(resampled, ends, 1), strict=True):  # (R, seeds)
            self.scores[system] = [aggregate(run.sum(0)) for run in counts[system]]
            self._means[system] = part.mean(1)  # (R,)
            luck[system] = float((part - part.mean(1, keepdims=True)).var(0, ddof=1).sum())
        self._variances = seed_variances(self.scores, luck, alike)

    def mean(self, system: str) -> float:
        """Compute the mean score over the seeds."""
        return float(np.mean(self.scores[system]))

    def difference(self, weights: Mapping[str, float]) -> Difference:
        """Add the weighted means of systems."""
        value, on_resamples = 0.0, np.zeros(_SAMPLES)
        shares = dict[SeedVariance, float]()
        for system, weight in weights.items():
            value += weight * self.mean(system)
            on_resamples += weight * self._means[system]
            variance = self._variances[system]
            share = weight**2 / len(self.scores[system])
            shares[variance] = shares.get(variance, 0.0) + share
        total = float(np.var(on_resamples, ddof=1))
        total += sum(share * variance.value for variance, share in shares.items())
        return Difference(value, math.sqrt(total), _freedom(total, shares))

    def differences(
        self, sums: Mapping[str, Mapping[str, float]], *, tests: int = 0
    ) -> dict[str, Difference]:
        """Add the weighted means of systems for each title, and test all sums together; without
        seeds, a sum is not tested.

        tests: as many sums are planned; what has no result yet is as independent as can be.
        """
        found = {title: self.difference(weights) for title, weights in sums.items()}
        seeded = [title for title in found if found[title].freedom]
        if not seeded:
            return found
        systems = list(self.scores)
        weights = np.array(
            [[sums[title].get(system, 0.0) for system in systems] for title in seeded]
        )  # (D, S)
        of_seeds = [self._variances[one].value / len(self.scores[one]) for one in systems]  # (S,)
        of_sentences = weights @ np.array([self._means[system] for system in systems])  # (D, R)
        covariance = np.cov(of_sentences).reshape(len(seeded), -1) + weights * of_seeds @ weights.T
        freedom = float(np.median([found[title].freedom for title in seeded]))
        joint = _Joint(covariance, freedom, max(0, tests - len(seeded)))
        return found | {title: joint.tested(found[title]) for title in seeded}


class _Joint:
    """The distribution of the largest |T| of differences with a covariance (D, D), and of further,
    independent ones."""

    def __init__(self, covariance: DoubleArray, freedom: float, further: int) -> None:
        scale = np.sqrt(covariance.diagonal())  # (D,)
        outer = np.outer(scale, scale)
        correlation = np.divide(covariance, outer, out=np.eye(len(scale)), where=outer > 0)
        random = np.random.default_rng(1)
        draws = random.multivariate_normal(np.zeros(len(scale)), correlation, _DRAWS, method="eigh")
        self._law = stats.norm() if math.isinf(freedom) else stats.t(freedom)
        scales = 1.0 if math.isinf(freedom) else random.chisquare(freedom, _DRAWS) / freedom
        self._levels = np.sort(abs(draws).max(1) / np.sqrt(scales))  # (N,)
        of_further = (1 - 2 * self._law.sf(self._levels)) ** further
        self._below = np.arange(1, _DRAWS + 1) / _DRAWS * of_further  # (N,)

    def tested(self, difference: Difference) -> Difference:
        """Add to a difference its adjusted p, and how large it would have to be."""
        alone = difference.unadjusted_p()
        place = np.searchsorted(self._levels, self._law.isf(alone / 2))
        below = self._below[place - 1] if place else 0.0
        level = self._levels[np.searchsorted(self._below, 1 - SIGNIFICANT)]
        needed = stats.t.isf(self._law.sf(level), difference.freedom) * difference.error
        return replace(difference, p=max(alone, float(1 - below)), visible=float(needed))


def _freedom(total: float, shares: Mapping[SeedVariance, float]) -> float:
    """Compute the degrees of freedom of a sum of variances; 0 if one of them is not known."""
    if not all(variance.freedom for variance in shares):
        return 0.0
    unsure = sum(
        (share * variance.observed) ** 2 / variance.freedom for variance, share in shares.items()
    )
    return total**2 / unsure if unsure and total else math.inf


def seed_variances(
    scores: Mapping[str, Sequence[float]], luck: Mapping[str, float], alike: Mapping[str, str]
) -> dict[str, SeedVariance]:
    """Pool the variance of the seeds over systems that vary alike.

    luck: of each system the sum over its seeds of the variance over resamples.
    """
    groups: dict[str, list[str]] = {}
    for system in scores:
        groups.setdefault(alike[system], []).append(system)
    found: dict[str, SeedVariance] = {}
    for systems in groups.values():
        observed, freedom = within(scores[system] for system in systems)
        of_sentences = sum(luck[system] for system in systems) / max(freedom, 1)
        variance = SeedVariance(max(0.0, observed - of_sentences), observed, freedom)
        found |= dict.fromkeys(systems, variance)
    return found


def within(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Compute the variance within groups, 0 if none has two values, and its degrees of freedom."""
    squares, freedom = 0.0, 0
    for group in groups:
        squares += float(np.var(group)) * len(group)
        freedom += len(group) - 1
    return (squares / freedom if freedom else 0.0), freedom


def unstable_systems(scores: Mapping[str, Sequence[float]]) -> set[str]:
    """Choose the systems whose seeds vary far more than those of the others.

    The median of variances, each divided by the median of its law for a true variance of 1,
    estimates a common variance; it does not mind that a few are large.
    """
    by_system = {system: within([seeds]) for system, seeds in scores.items() if len(seeds) > 1}
    ratios = [freedom / stats.chi2.median(freedom) for _, freedom in by_system.values()]
    variances = [variance for variance, _ in by_system.values()]
    typical = np.median(np.multiply(variances, ratios)) if by_system else 0.0
    total, found = sum(freedom for _, freedom in by_system.values()), set[str]()
    for system, (variance, freedom) in by_system.items():
        if typical and variance > stats.f.isf(_UNSTABLE / len(by_system), freedom, total) * typical:
            found.add(system)
    return found


def bartlett(scores: Iterable[Sequence[float]]) -> float | None:
    """Test whether the seeds of systems vary alike (Bartlett, 1937): p, None for fewer than two
    systems with two seeds."""
    groups = [seeds for seeds in scores if len(set(seeds)) > 1]
    return float(stats.bartlett(*groups).pvalue) if len(groups) > 1 else None


def average_difference(first: Sequence[str], second: Sequence[str]) -> dict[str, float]:
    """Weigh systems for the average of the first ones minus that of the second ones."""
    weights = dict.fromkeys(first, 1 / len(first))
    for system in second:
        weights[system] = weights.get(system, 0.0) - 1 / len(second)
    return weights
