"""Differences between systems, over sentences and seeds.

    difference = mean over the seeds of the system - mean over the seeds of its baseline
    variance   = variance over resamples of the sentences + pooled variance of the seeds · (1/n + 1/n_baseline)

The variance of two or three seeds says little, so it is pooled over all systems of an architecture (LSTMs vary more
than Transformers). A system whose training fails with some seeds would make all intervals useless, so systems that vary
far more than the others (F test against the median variance, adjusted for their number as Bonferroni does, p < 0.01)
have their own variance. The degrees of freedom, sum of (n - 1), are those of Student's t for the interval and p; a
difference with several variances has those of Satterthwaite (1946). The p-values of a comparison are adjusted for their
number (Holm, 1979).

The average difference of k pairs has the variance of the average over resamples and the k-th part of the average
variance of the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from synmt.arrays import DoubleArray
from synmt.evaluation.significance import bootstrap_scores, holm

Aggregate = Callable[[DoubleArray], float]
Counts = Mapping[str, Sequence[DoubleArray]]
"""Of each system, for each seed, the counts of the same sentences: (N, S)."""
SAMPLES = 1000
REAL = 0.05
"""The adjusted p below which a difference is called real."""
_UNSTABLE = 0.01
"""The adjusted p below which the variance of a system is not that of the others."""


@dataclass(frozen=True)
class Difference:
    """A system's difference from its baseline, in points, with the 95 % interval; p is adjusted.

    seeded: whether the seeds of any system of its architecture tell how far training varies; without it, only
    sentences vary.
    """

    value: float
    low: float
    high: float
    p: float
    seeded: bool

    @property
    def is_real(self) -> bool:
        """Whether it is more than chance; with one seed of each system nothing shows that."""
        return self.seeded and self.p < REAL


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
    def deviation(self) -> float | None:
        """The standard deviation of the seeds; None for a single one."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else None


class _Compared:
    """Scores of the systems, of all sentences and of resamples, and how far training varies."""

    def __init__(self, counts: Counts, aggregate: Aggregate, architectures: Mapping[str, str]) -> None:
        resampled = bootstrap_scores([one for seeds in counts.values() for one in seeds], aggregate, samples=SAMPLES)
        ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
        self._resampled = dict(zip(counts, (part.mean(1) for part in np.split(resampled, ends, axis=1)), strict=True))
        self.scores = {system: [aggregate(one.sum(0)) for one in seeds] for system, seeds in counts.items()}
        self.variances: dict[str, SeedVariance] = {}
        for architecture in set(architectures.values()):
            own = {system: self.scores[system] for system in counts if architectures[system] == architecture}
            self.variances.update(seed_variances(own))

    def difference(self, pairs: Mapping[str, str]) -> Difference:
        """Average the differences of systems from others; no system is in two pairs."""
        value = np.mean([np.mean(self.scores[one]) - np.mean(self.scores[other]) for one, other in pairs.items()])
        resampled = [self._resampled[one] - self._resampled[other] for one, other in pairs.items()]  # (R,) each
        over_seeds: dict[SeedVariance, float] = {}
        for system in (*pairs, *pairs.values()):
            seeds = self.variances[system]
            part = seeds.value / len(self.scores[system]) / len(pairs) ** 2
            over_seeds[seeds] = over_seeds.get(seeds, 0.0) + part
        variance = float(np.var(np.mean(resampled, 0), ddof=1)) + sum(over_seeds.values())
        return _difference(float(value), math.sqrt(variance), _freedom(over_seeds))


def compare(
    counts: Counts, aggregate: Aggregate, baselines: Mapping[str, str], architectures: Mapping[str, str]
) -> list[Line]:
    """Compare each system with its baseline.

    The seeds of all systems of an architecture say how far its training varies.
    """
    compared = _Compared(counts, aggregate, architectures)
    found = {
        system: compared.difference({system: baselines[system]})
        for system in counts
        if baselines[system] in counts and baselines[system] != system
    }
    adjusted = _adjusted(found)
    return [
        Line(system, compared.scores[system], adjusted.get(system), compared.variances[system].unstable)
        for system in counts
    ]


def average_differences(
    counts: Counts,
    aggregate: Aggregate,
    pairs: Mapping[str, Mapping[str, str]],
    architectures: Mapping[str, str],
) -> dict[str, Difference]:
    """Compare several systems, each with another one, on average; p is adjusted for the number of averages.

    pairs: of each average, the other system of each system.
    """
    compared = _Compared(counts, aggregate, architectures)
    return _adjusted({name: compared.difference(of_systems) for name, of_systems in pairs.items()})


@dataclass(frozen=True, eq=False)
class SeedVariance:
    """The variance of the seeds that systems share, or that an unstable one has, and its degrees of freedom."""

    value: float
    freedom: int
    unstable: bool = False


def seed_variances(scores: Mapping[str, Sequence[float]]) -> dict[str, SeedVariance]:
    """Pool the variance of the seeds over systems of an architecture; those that vary far more have their own."""
    own = {system: SeedVariance(*_within([seeds]), unstable=True) for system, seeds in scores.items()}
    unstable = _unstable([one for one in own.values() if one.freedom])
    pooled = SeedVariance(*_within([seeds for system, seeds in scores.items() if own[system] not in unstable]))
    return {system: one if one in unstable else pooled for system, one in own.items()}


def _within(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Compute the variance within groups, and its degrees of freedom; 0 and 0 if no group has two values."""
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return (squares / freedom if freedom else 0.0), freedom


def _unstable(variances: Sequence[SeedVariance]) -> set[SeedVariance]:
    """Choose the variances that are far larger than the others.

    The median of variances, each divided by what the median of its law would be if the variance of all systems were 1,
    estimates a common variance; it does not mind that a few are large.
    """
    typical = float(np.median([one.value * one.freedom / stats.chi2.median(one.freedom) for one in variances] or [0]))
    freedom = sum(one.freedom for one in variances)
    critical = {one.freedom: stats.f.isf(_UNSTABLE / len(variances), one.freedom, freedom) for one in variances}
    return {one for one in variances if typical and one.value > critical[one.freedom] * typical}


def _freedom(variances: Mapping[SeedVariance, float]) -> float:
    """Compute the degrees of freedom of a sum of parts of variances."""
    weights = sum(part**2 / one.freedom for one, part in variances.items() if part)
    return sum(variances.values()) ** 2 / weights if weights else sum(one.freedom for one in variances)


def _difference(value: float, error: float, freedom: float) -> Difference:
    law = stats.t(freedom) if freedom else stats.norm()
    width = float(law.ppf(0.975)) * error
    p = 2 * float(law.sf(abs(value) / error)) if error else float(value == 0)
    return Difference(value, value - width, value + width, p, freedom > 0)


def _adjusted(found: Mapping[str, Difference]) -> dict[str, Difference]:
    adjusted = holm([one.p for one in found.values()])
    return {name: replace(one, p=p) for (name, one), p in zip(found.items(), adjusted, strict=True)}


def seeds_of(lines: Sequence[Line]) -> str:
    """Write how many seeds systems have: `3`, or `1 to 3`."""
    counts = sorted({len(line.scores) for line in lines})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
