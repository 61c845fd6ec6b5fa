"""Differences between systems, over sentences and seeds.

    contrast = sum over systems of weight · mean over the seeds of the score
    variance = variance of the contrast over resamples of the sentences + sum of weight² · variance of the seeds / seeds

The difference of a system from its baseline has the weights 1 and -1, the average over k pairs 1/k and -1/k.

The variance of two or three seeds says little, so it is pooled over systems that vary alike: those of an architecture,
and apart from them those with random trees, if they are many. A system whose training fails with some seeds would make
all intervals useless, so systems that vary far more than the others (F test against the median variance, adjusted for
their number as Bonferroni does, p < about 0.01) have their own variance, and are not tested. The degrees of freedom of
the seeds, sum of (n - 1), are those of Student's t for the interval and p; a sum of several variances has those of
Satterthwaite (1946). The p-values of a comparison are adjusted for their number (Holm, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
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
class Design:
    """What is compared with what.

    baselines: of each system the one that it is compared with; a baseline's own is itself.
    tested: systems whose p counts, which is adjusted for their number; the others have none.
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

    freedom: degrees of freedom of the error; 0 if no seeds tell how far training varies, so that only sentences do.
    p: adjusted; None if the difference is not tested.
    """

    value: float
    error: float
    freedom: float
    p: float | None = None

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval."""
        return self.value - self._law.ppf(0.975) * self.error

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.value + self._law.ppf(0.975) * self.error

    @property
    def seeded(self) -> bool:
        """Whether seeds tell how far training varies."""
        return self.freedom > 0

    @property
    def is_real(self) -> bool:
        """Whether it is more than chance; with one seed of each system nothing shows that."""
        return self.seeded and self.p is not None and self.p < REAL

    def unadjusted_p(self) -> float:
        """Compute p before it is adjusted."""
        return 2 * float(self._law.sf(abs(self.value) / self.error)) if self.error else float(self.value == 0)

    def smallest_real(self, tests: int) -> float:
        """Compute the least difference that would be real as the largest one of several tests."""
        return float(self._law.isf(REAL / 2 / tests)) * self.error

    @property
    def _law(self) -> stats.distributions.rv_frozen:
        return stats.t(self.freedom) if self.seeded else stats.norm()


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


@dataclass(frozen=True, eq=False)
class SeedVariance:
    """The variance of the seeds that systems share, or that an unstable one has, and its degrees of freedom."""

    value: float
    freedom: int


class Compared:
    """Scores of the systems, of all sentences and of resamples, and how far training varies."""

    def __init__(self, counts: Counts, aggregate: Aggregate, design: Design) -> None:
        resampled = bootstrap_scores([one for seeds in counts.values() for one in seeds], aggregate, samples=SAMPLES)
        ends = np.cumsum([len(seeds) for seeds in counts.values()])[:-1]
        self._resampled = dict(zip(counts, (part.mean(1) for part in np.split(resampled, ends, axis=1)), strict=True))
        self.scores = {system: [aggregate(one.sum(0)) for one in seeds] for system, seeds in counts.items()}
        self._variances = seed_variances(self.scores, design)
        self._design = design

    def lines(self) -> list[Line]:
        """Compare each system with its baseline."""
        found = {
            system: self.contrast({system: 1, base: -1})
            for system, base in self._design.baselines.items()
            if system in self.scores and base in self.scores and base != system
        }
        found |= adjusted({system: found[system] for system in self._design.tested if system in found})
        return [
            Line(system, scores, found.get(system), system in self._design.unstable)
            for system, scores in self.scores.items()
        ]

    def contrast(self, weights: Mapping[str, float]) -> Difference:
        """Add the weighted means of systems."""
        value = sum(weight * float(np.mean(self.scores[system])) for system, weight in weights.items())
        resampled = sum((weight * self._resampled[system] for system, weight in weights.items()), np.zeros(SAMPLES))
        over_seeds: dict[SeedVariance, float] = {}
        for system, weight in weights.items():
            seeds = self._variances[system]
            part = weight**2 * seeds.value / len(self.scores[system])
            over_seeds[seeds] = over_seeds.get(seeds, 0.0) + part
        variance = float(np.var(resampled, ddof=1)) + sum(over_seeds.values())
        return Difference(value, math.sqrt(variance), _freedom(over_seeds))


def adjusted(found: Mapping[str, Difference]) -> dict[str, Difference]:
    """Test differences, with p adjusted for their number."""
    p_values = holm([one.unadjusted_p() for one in found.values()])
    return {name: replace(one, p=p) for (name, one), p in zip(found.items(), p_values, strict=True)}


def average(pairs: Mapping[str, str]) -> dict[str, float]:
    """Weigh systems for the average difference of the first ones of pairs from the second ones."""
    weights = dict.fromkeys(pairs, 1 / len(pairs))
    for other in pairs.values():
        weights[other] = weights.get(other, 0.0) - 1 / len(pairs)
    return weights


def unstable_systems(scores: Mapping[str, Sequence[float]]) -> set[str]:
    """Choose the systems whose seeds vary far more than those of the others.

    The median of variances, each divided by what the median of its law would be if the variance of all systems were 1,
    estimates a common variance; it does not mind that a few are large.
    """
    own = {system: _within([seeds]) for system, seeds in scores.items() if len(seeds) > 1}
    typical = float(np.median([one.value * one.freedom / stats.chi2.median(one.freedom) for one in own.values()] or 0))
    freedom = sum(one.freedom for one in own.values())
    critical = {count: stats.f.isf(_UNSTABLE / len(own), count, freedom) for count in {v.freedom for v in own.values()}}
    return {system for system, one in own.items() if typical and one.value > critical[one.freedom] * typical}


def seed_variances(scores: Mapping[str, Sequence[float]], design: Design) -> dict[str, SeedVariance]:
    """Pool the variance of the seeds over systems that vary alike; unstable ones have their own."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for system in scores:
        unstable = system in design.unstable
        groups.setdefault((system if unstable else design.alike[system], unstable), []).append(system)
    pooled = [(systems, _within([scores[system] for system in systems])) for systems in groups.values()]
    return {system: variance for systems, variance in pooled for system in systems}


def _within(groups: Sequence[Sequence[float]]) -> SeedVariance:
    """Compute the variance within groups, and its degrees of freedom; 0 and 0 if no group has two values."""
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return SeedVariance(squares / freedom if freedom else 0.0, freedom)


def _freedom(variances: Mapping[SeedVariance, float]) -> float:
    """Compute the degrees of freedom of a sum of parts of variances; 0 if one of them is not known."""
    if not all(one.freedom for one in variances):
        return 0.0
    weights = sum(part**2 / one.freedom for one, part in variances.items() if part)
    return sum(variances.values()) ** 2 / weights if weights else sum(one.freedom for one in variances)


def seeded(lines: Iterable[Line]) -> bool:
    """Tell whether seeds show how far training varies, for any difference."""
    return any(line.difference is not None and line.difference.seeded for line in lines)


def seeds_of(lines: Sequence[Line]) -> str:
    """Write how many seeds systems have: `3`, or `1 to 3`."""
    counts = sorted({len(line.scores) for line in lines})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
