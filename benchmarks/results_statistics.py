"""Differences between systems, over sentences and seeds.

    contrast = sum over systems of weight · mean over the seeds of the score
    variance = variance of the contrast over resamples of the sentences + sum of weight² · variance of the seeds / seeds

The difference of a system from its baseline has the weights 1 and -1, the average over k pairs 1/k and -1/k.

Systems that vary alike share the variance of their seeds (`results_variances`). It is an estimate, with as many degrees
of freedom as there are seeds more than systems; the variance over sentences, of hundreds, is taken as known. Intervals
and p are those of Student's t, with the degrees of freedom of such a sum (Satterthwaite, 1946). The p-values of a
comparison are adjusted for their number (Holm, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace

import numpy as np
from results_variances import Resampled, SeedVariance, seed_variances
from scipy import stats

from synmt.evaluation.significance import holm

CONTROLS = ", controls"
"""The end of the name of a group of controls."""
REAL = 0.05
"""The adjusted p below which a difference is called significant."""


@dataclass(frozen=True)
class Design:
    """What is compared with what.

    baselines: of each system the one that it is compared with; a baseline's own is itself.
    tested: systems whose p counts, with results or still without; it is adjusted for their number. Others have none.
    alike: of each system the name of the group whose seeds vary as its own ones do.
    unstable: systems that vary far more, and have their own variance.
    """

    baselines: Mapping[str, str]
    tested: Collection[str]
    alike: Mapping[str, str]
    unstable: Set[str] = frozenset()

    @property
    def controls_apart(self) -> bool:
        """Whether controls have a variance of their own."""
        return any(name.endswith(CONTROLS) for name in self.alike.values())


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
        return (
            2 * float(stats.t.sf(abs(self.value) / self.error, self._freedom)) if self.error else float(self.value == 0)
        )

    def mostly_found(self, tests: int) -> float:
        """Compute the true difference that would be real four times in five, as the largest one of several tests."""
        return self.smallest_real(tests) + self._quantile(0.8) * self.error

    def smallest_real(self, tests: int) -> float:
        """Compute the least difference that would be real as the largest one of several tests."""
        return self._quantile(1 - REAL / 2 / tests) * self.error

    def _quantile(self, share: float) -> float:
        return float(stats.t.ppf(share, self._freedom))

    @property
    def _freedom(self) -> float:
        return self.freedom if self.seeded else math.inf


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


class Compared:
    """Systems compared with each other by the scores of their runs."""

    def __init__(self, runs: Resampled, design: Design) -> None:
        self.variances = seed_variances(runs, design.alike, design.unstable)
        self._runs, self._design = runs, design

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
        return [Line(system, own, found.get(system), system in design.unstable) for system, own in scores.items()]

    def contrast(self, weights: Mapping[str, float]) -> Difference:
        """Add the weighted means of systems."""
        value = sum(weight * float(np.mean(self._runs.scores[system])) for system, weight in weights.items())
        on_resamples = np.sum([weight * self._runs.means[system] for system, weight in weights.items()], axis=0)
        shares: dict[SeedVariance, float] = {}
        for system, weight in weights.items():
            variance = self.variances[system]
            shares[variance] = shares.get(variance, 0.0) + weight**2 / len(self._runs.scores[system])
        total = float(np.var(on_resamples, ddof=1)) + sum(share * one.value for one, share in shares.items())
        return Difference(value, math.sqrt(total), _freedom(total, shares))


def adjusted(found: Mapping[str, Difference], *, tests: int | None = None) -> dict[str, Difference]:
    """Test differences, with p adjusted for the number of tests, some of which may still have no results.

    Without seeds, nothing tells chance from more than chance, and a difference is not tested.
    """
    seeded = {name: one for name, one in found.items() if one.seeded}
    # what has no result yet counts with the largest p
    waiting = max(0, (tests or len(seeded)) - len(seeded))
    p_values = holm([*(one.unadjusted_p() for one in seeded.values()), *[1.0] * waiting])
    return {**found, **{name: replace(one, p=p) for (name, one), p in zip(seeded.items(), p_values, strict=False)}}


def average(pairs: Mapping[str, str]) -> dict[str, float]:
    """Weigh systems for the average difference of the first ones of pairs from the second ones."""
    weights = dict.fromkeys(pairs, 1 / len(pairs))
    for other in pairs.values():
        weights[other] = weights.get(other, 0.0) - 1 / len(pairs)
    return weights


def _freedom(total: float, shares: Mapping[SeedVariance, float]) -> float:
    """Compute the degrees of freedom of a sum of variances, some of them estimated; 0 if one of these is not known."""
    if not all(one.freedom for one in shares):
        return 0.0
    unsure = sum((share * one.observed) ** 2 / one.freedom for one, share in shares.items())
    return total**2 / unsure if unsure and total else math.inf


def any_seeded(lines: Iterable[Line]) -> bool:
    """Tell whether seeds show how far training varies, for any difference."""
    return any(line.difference is not None and line.difference.seeded for line in lines)
