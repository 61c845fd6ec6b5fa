"""The results of systems by one metric: score, confidence interval, and difference from the first system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synmt.arrays import DoubleArray
from synmt.errors import UsageError, unknown_name
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval
from synmt.evaluation.metrics import Metric, Score
from synmt.evaluation.seeds import Spread, resample_seeds, seeded_bootstrap, spread
from synmt.evaluation.significance import (
    SWAPS,
    Comparison,
    approximate_randomization,
    bootstrap_scores,
    kolmogorov_smirnov,
    paired_t_test,
    welch_test,
)

TESTS = {
    "bootstrap": "paired bootstrap (Koehn, 2004)",
    "randomization": "approximate randomization (Riezler & Maxwell, 2005)",
    "t": "paired t-test of the segments' scores",
    "ks": "Kolmogorov-Smirnov test of the segments' scores",
    "seeds": "Welch's t-test of the seeds' scores",
}
"""The significance tests; all are two-sided."""


@dataclass(frozen=True)
class SignificancePlan:
    """Which tests to compute, and from how many random samples.

    tests: names in TESTS; None for bootstrap and randomization, and seeds where a system has several.
    resamples, swaps: number of samples of the bootstrap and of the randomization.
    """

    tests: tuple[str, ...] | None = None
    resamples: int = SAMPLES
    swaps: int = SWAPS
    seed: int = SEED


@dataclass(frozen=True)
class SystemResult:
    """The result of one system by one metric.

    seeds: a score for each seed; the system's score is their mean.
    low, high: the 95 % interval of the system's score, over sentences and seeds.
    difference: from the first system; None for the first system.
    comparison: by the bootstrap, if it is one of the tests.
    p_values: of each test; None for a test of seeds if one of the systems has a single seed.
    """

    seeds: list[Score]
    low: float
    high: float
    difference: float | None = None
    comparison: Comparison | None = None
    p_values: dict[str, float | None] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        """The metric of the scores."""
        return self.seeds[0].metric

    @property
    def spread(self) -> Spread:
        """Mean and variation over the seeds."""
        return spread([score.value for score in self.seeds])

    @property
    def value(self) -> float:
        """The system's score."""
        return self.spread.mean

    @property
    def details(self) -> dict[str, float]:
        """Components of the score, such as precisions, averaged over the seeds."""
        details = [score.details for score in self.seeds]
        return {name: sum(one[name] for one in details) / len(details) for name in details[0]}


def check_tests(names: Sequence[str], seeds: Sequence[int]) -> tuple[str, ...]:
    """Raise a UsageError for tests that do not exist, or that need more seeds of the systems.

    seeds: the number of seeds of each system.
    """
    for name in names:
        if name not in TESTS:
            raise unknown_name("test", name, TESTS, where="--tests")
    if "seeds" in names and min(seeds[0], max(seeds[1:], default=0)) < 2:
        raise UsageError(
            "the test of seeds needs two or more seeds of the first system and of another",
            where="--tests",
            do="Give a quoted pattern such as 'base.*' for each, or the files and --seeds",
        )
    return tuple(names)


def compare_scores(systems: Sequence[Sequence[Score]], plan: SignificancePlan) -> list[SystemResult]:
    """Find the result of each system, given the scores of its seeds by one metric; compare each with the first."""
    resampled = [_resample(seeds, plan) for seeds in systems]
    return [
        _compare(seeds, scores, systems[0], resampled[0], plan) if position else _describe(seeds, scores, plan)
        for position, (seeds, scores) in enumerate(zip(systems, resampled, strict=True))
    ]


def _resample(seeds: Sequence[Score], plan: SignificancePlan) -> DoubleArray:
    statistics = [score.statistics for score in seeds]
    return bootstrap_scores(statistics, seeds[0].metric.aggregate, samples=plan.resamples, seed=plan.seed)


def _describe(seeds: Sequence[Score], resampled: DoubleArray, plan: SignificancePlan) -> SystemResult:
    low, high = interval(resample_seeds(resampled, np.random.default_rng(plan.seed)))
    return SystemResult(list(seeds), float(low), float(high))


def _compare(
    seeds: Sequence[Score],
    resampled: DoubleArray,
    base: Sequence[Score],
    base_resampled: DoubleArray,
    plan: SignificancePlan,
) -> SystemResult:
    result = _describe(seeds, resampled, plan)
    difference = result.value - spread([score.value for score in base]).mean
    tests = plan.tests
    if tests is None:
        tests = ("bootstrap", "randomization", *(["seeds"] if len(seeds) > 1 or len(base) > 1 else []))
    comparison = None
    if "bootstrap" in tests:
        comparison = seeded_bootstrap(base_resampled, resampled, difference, seed=plan.seed)
    p_values = {name: _p_value(name, base, seeds, plan) for name in tests if name != "bootstrap"}
    if comparison:
        p_values = {"bootstrap": comparison.p_value, **p_values}
    return replace(result, difference=difference, comparison=comparison, p_values=p_values)


def _p_value(test: str, base: Sequence[Score], system: Sequence[Score], plan: SignificancePlan) -> float | None:
    """Compute the p-value of a test other than the bootstrap."""
    if test == "randomization":
        first, second = ([score.statistics for score in seeds] for seeds in (base, system))
        aggregate = base[0].metric.aggregate
        return approximate_randomization(first, second, aggregate, samples=plan.swaps, seed=plan.seed)
    if test == "seeds":
        if min(len(base), len(system)) < 2:
            return None
        return welch_test([score.value for score in base], [score.value for score in system])
    run_test = {"t": paired_t_test, "ks": kolmogorov_smirnov}[test]
    return run_test(segment_means(base), segment_means(system))


def segment_means(seeds: Sequence[Score]) -> DoubleArray:
    """Score each segment, averaged over the seeds: (N,)."""
    return np.mean([score.metric.segment_scores(score.statistics) for score in seeds], axis=0)
