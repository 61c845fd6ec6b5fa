"""Differences between systems, over sentences and seeds.

    contrast = sum over systems of weight · mean over the seeds of the score
    variance = variance of the contrast over resamples of the sentences
               + sum of weight² · variance of the seeds / seeds

The difference of a system from its baseline has the weights 1 and -1, the average over k pairs 1/k
and -1/k.

On one test set, the scores of a system's seeds differ because trainings end differently, and
because each model has luck with other sentences. The luck with sentences is in the variance over
resamples of the sentences already, so that it is subtracted from that of the seeds:

    variance of the seeds = variance of the scores around their mean over seeds
                            - variance over resamples of these differences from the mean

The variance of two or three seeds says little, so systems that vary alike share it. A system whose
training fails with some seeds would make all intervals useless, so systems that vary far more than
the others (F test against the median variance, adjusted for their number as Bonferroni does, p <
about 0.01) have their own.

The variance of the seeds is an estimate, with as many degrees of freedom as there are seeds more
than systems; the variance over sentences, of hundreds, is taken as known. Intervals and p are those
of Student's t, with the degrees of freedom of such a sum (Satterthwaite, 1946). The p-values of a
comparison are adjusted for their number (Holm, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from synmt.arrays import DoubleArray
from synmt.evaluation.significance import bootstrap_scores, holm
from synmt.reporting.values import Interval

Aggregate = Callable[[DoubleArray], float]
Counts = Mapping[str, Sequence[DoubleArray]]
"""Of each system, for each seed, the counts of the same sentences: (N, S)."""
CONTROLS = ", controls"
"""The end of the name of a group of controls."""
REAL = 0.05
"""The adjusted p below which a difference is called significant."""
_SAMPLES = 1000
_TIMES = 2000
"""Resamples of the steps that were timed."""
_UNSTABLE = 0.01
"""The adjusted p below which the variance of a system is not that of the others."""


@dataclass(frozen=True)
class Design:
    """What is compared with what.

    baselines: of each system the one that it is compared with; a baseline's own is itself.
    tested: systems whose p counts, with results or still without; it is adjusted for their number.
        Others have none.
    alike: of each system the name of the group whose seeds vary as its own ones do.
    unstable: systems that vary far more, and have their own variance.
    """

    baselines: Mapping[str, str]
    tested: Collection[str]
    alike: Mapping[str, str]
    unstable: Set[str] = frozenset()


@dataclass(frozen=True)
class Difference:
    """A difference in points with its standard error.

    freedom: degrees of freedom of the error; 0 if no seeds tell how far training varies, so that
        only sentences do.
    p: adjusted; None if the difference is not tested.
    """

    value: float
    error: float
    freedom: float
    p: float | None = None

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval."""
        return self.value - self._quantile(0.975) * self.error

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.value + self._quantile(0.975) * self.error

    @property
    def seeded(self) -> bool:
        """Whether seeds tell how far training varies."""
        return self.freedom > 0

    @property
    def is_real(self) -> bool:
        """Whether it is significant; with one seed of each system nothing shows that."""
        return self.seeded and self.p is not None and self.p < REAL

    def unadjusted_p(self) -> float:
        """Compute p before it is adjusted."""
        if not self.error:
            return float(self.value == 0)
        return 2 * float(stats.t.sf(abs(self.value) / self.error, self.freedom or math.inf))

    def _quantile(self, share: float) -> float:
        return float(stats.t.ppf(share, self.freedom or math.inf))


@dataclass(frozen=True)
class Line:
    """The scores of one system: one for each seed, in points. The baseline has no difference.

    unstable: whether its seeds vary far more than those of other systems.
    """

    system: str
    scores: list[float]
    difference: Difference | None
    unstable: bool = False

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return sum(self.scores) / len(self.scores)

    @property
    def is_real(self) -> bool:
        """Whether it differs from its baseline by more than chance."""
        return self.difference is not None and self.difference.is_real

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the seeds; None for a single one."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else None


class Resampled:
    """The scores of all runs, in points, on all sentences and on resamples of them.

    scores: of each system the score of each seed.
    means: of each system the mean over its seeds on each resample: (R,).
    luck: of each system the sum over its seeds of the variance over resamples of the difference
        from this mean.
    """

    def __init__(self, counts: Counts, aggregate: Aggregate) -> None:
        each = [one for seeds in counts.values() for one in seeds]
        scores = bootstrap_scores(each, aggregate, samples=_SAMPLES)
        ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
        self.scores: dict[str, list[float]] = {}
        self.means: dict[str, DoubleArray] = {}
        self.luck: dict[str, float] = {}
        for system, part in zip(counts, np.split(scores, ends, axis=1), strict=True):  # (R, seeds)
            self.scores[system] = [aggregate(one.sum(0)) for one in counts[system]]
            self.means[system] = part.mean(1)
            self.luck[system] = float((part - part.mean(1, keepdims=True)).var(0, ddof=1).sum())


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


def seed_variances(runs: Resampled, design: Design) -> dict[str, SeedVariance]:
    """Pool the variance of the seeds over systems that vary alike; unstable ones have their own."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for system in runs.scores:
        own = system in design.unstable
        groups.setdefault((system if own else design.alike[system], own), []).append(system)
    found: dict[str, SeedVariance] = {}
    for systems in groups.values():
        observed, freedom = within(runs.scores[system] for system in systems)
        luck = sum(runs.luck[system] for system in systems) / max(freedom, 1)
        found |= dict.fromkeys(systems, SeedVariance(observed, luck if freedom else 0.0, freedom))
    return found


def within(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Compute the variance within groups, and its degrees of freedom; 0 and 0 if no group has two
    values."""
    groups = list(groups)
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return (squares / freedom if freedom else 0.0), freedom


def unstable_systems(scores: Mapping[str, Sequence[float]]) -> set[str]:
    """Choose the systems whose seeds vary far more than those of the others.

    The median of variances, each divided by what the median of its law would be if the variance of
    all systems were 1, estimates a common variance; it does not mind that a few are large.
    """
    own = {system: within([seeds]) for system, seeds in scores.items() if len(seeds) > 1}
    medians = [
        variance * freedom / stats.chi2.median(freedom) for variance, freedom in own.values()
    ]
    typical, total = np.median(medians or 0), sum(freedom for _, freedom in own.values())
    return {
        system
        for system, (variance, freedom) in own.items()
        if typical and variance > stats.f.isf(_UNSTABLE / len(own), freedom, total) * typical
    }


class Compared:
    """Systems compared with each other by the scores of their runs."""

    def __init__(self, runs: Resampled, design: Design) -> None:
        self._runs, self._design, self._variances = runs, design, seed_variances(runs, design)

    def lines(self) -> list[Line]:
        """Compare each system with its baseline."""
        scores, design = self._runs.scores, self._design
        found = {
            system: self.contrast({system: 1, base: -1})
            for system, base in design.baselines.items()
            if system in scores and base in scores and base != system
        }
        tested = {system: found[system] for system in design.tested if system in found}
        found |= adjusted(tested, tests=len(design.tested))
        return [
            Line(system, own, found.get(system), system in design.unstable)
            for system, own in scores.items()
        ]

    def contrast(self, weights: Mapping[str, float]) -> Difference:
        """Add the weighted means of systems."""
        runs, shares = self._runs, dict[SeedVariance, float]()
        value, on_resamples = 0.0, np.zeros(_SAMPLES)
        for system, weight in weights.items():
            value += weight * float(np.mean(runs.scores[system]))
            on_resamples += weight * runs.means[system]
            variance = self._variances[system]
            share = weight**2 / len(runs.scores[system])
            shares[variance] = shares.get(variance, 0.0) + share
        total = float(np.var(on_resamples, ddof=1))
        total += sum(share * one.value for one, share in shares.items())
        return Difference(value, math.sqrt(total), _freedom(total, shares))


def _freedom(total: float, shares: Mapping[SeedVariance, float]) -> float:
    """Compute the degrees of freedom of a sum of variances; 0 if one of the estimates is not
    known."""
    if not all(one.freedom for one in shares):
        return 0.0
    unsure = sum((share * one.observed) ** 2 / one.freedom for one, share in shares.items())
    return total**2 / unsure if unsure and total else math.inf


def adjusted(found: Mapping[str, Difference], *, tests: int | None = None) -> dict[str, Difference]:
    """Test differences, with p adjusted for the number of tests, some of which may still have no
    results.

    Without seeds, nothing tells chance from more than chance, and a difference is not tested.
    """
    seeded = {name: one for name, one in found.items() if one.seeded}
    # what has no result yet counts with the largest p
    waiting = max(0, (tests or len(seeded)) - len(seeded))
    p_values = holm([*(one.unadjusted_p() for one in seeded.values()), *[1.0] * waiting])
    tested = zip(seeded.items(), p_values, strict=False)
    return {**found, **{name: replace(one, p=p) for (name, one), p in tested}}


def average(pairs: Mapping[str, str]) -> dict[str, float]:
    """Weigh systems for the average difference of the first ones of pairs from the second ones."""
    weights = dict.fromkeys(pairs, 1 / len(pairs))
    for other in pairs.values():
        weights[other] = weights.get(other, 0.0) - 1 / len(pairs)
    return weights


def times_as_long(measured: Mapping[str, Sequence[float]]) -> tuple[float, Interval]:
    """Divide the seconds of all steps of a system by those of its baseline; the interval resamples
    the steps."""
    seconds = np.array([measured["seconds"], measured["of_baseline"]])  # (2, N)
    steps = seconds.shape[1]
    chosen = np.random.default_rng(1).integers(0, steps, (_TIMES, steps))
    own, other = seconds[:, chosen].sum(-1)  # (R,), (R,)
    low, high = np.quantile(own / other, (0.025, 0.975))
    return float(seconds[0].sum() / seconds[1].sum()), Interval(float(low), float(high))
