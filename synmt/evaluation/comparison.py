"""How systems stand by one metric: score, interval, and each further system against the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synmt.arrays import DoubleArray
from synmt.errors import UsageError, did_you_mean
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval
from synmt.evaluation.metrics import Metric, Score
from synmt.evaluation.seeds import Spread, draw_seeds, seeded_bootstrap, spread, welch_test
from synmt.evaluation.significance import (
    SWAPS,
    Comparison,
    approximate_randomization,
    bootstrap_scores,
    kolmogorov_smirnov,
    paired_t_test,
)

TESTS = {
    "bootstrap": "paired bootstrap (Koehn, 2004)",
    "randomization": "approximate randomisation (Riezler & Maxwell, 2005)",
    "t": "paired t-test of the segments' scores",
    "ks": "Kolmogorov-Smirnov test of the segments' scores",
    "seeds": "Welch's t-test of the seeds' scores",
}
"""Every test of significance by its name; all are two-sided."""


@dataclass(frozen=True)
class Plan:
    """Which tests are made, and how often is drawn.

    tests: names in TESTS; None for bootstrap and randomisation, and seeds where any system has several.
    resamples, swaps: how often the bootstrap and the randomisation draw.
    """

    tests: tuple[str, ...] | None = None
    resamples: int = SAMPLES
    swaps: int = SWAPS
    seed: int = SEED


@dataclass(frozen=True)
class SystemResult:
    """What a system reaches by one metric.

    seeds: a score for each seed; their mean is the system's.
    low, high: the 95 % interval of the system's score on other sentences, and with other seeds.
    difference: to the first system; None for the first itself.
    comparison: by the bootstrap, where that was asked for.
    p_values: of each test; None where a test has nothing to go by.
    """

    seeds: list[Score]
    low: float
    high: float
    difference: float | None = None
    comparison: Comparison | None = None
    p_values: dict[str, float | None] = field(default_factory=dict)

    @property
    def metric(self) -> Metric:
        """What all of it was scored by."""
        return self.seeds[0].metric

    @property
    def spread(self) -> Spread:
        """How the scores of the seeds lie."""
        return spread([score.value for score in self.seeds])

    @property
    def value(self) -> float:
        """The system's score."""
        return self.spread.mean

    @property
    def details(self) -> dict[str, float]:
        """What the score is made of, averaged over the seeds."""
        found = [score.details for score in self.seeds]
        return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def check_tests(names: Sequence[str], seeds: Sequence[int]) -> tuple[str, ...]:
    """Refuse tests that do not exist or cannot be made with so many seeds of each system."""
    for name in names:
        if name not in TESTS:
            raise UsageError(
                f"there is no test '{name}'",
                where="--tests",
                allowed=f"Tests: {', '.join(TESTS)}",
                do=did_you_mean(name, TESTS),
            )
    if "seeds" in names and min(seeds[0], max(seeds[1:], default=0)) < 2:
        raise UsageError(
            "the test of seeds needs two or more seeds of the first system and of another",
            where="--tests",
            do="Give a quoted pattern such as 'base.*' for each, or the files and --seeds",
        )
    return tuple(names)


def compare_systems(systems: Sequence[Sequence[Score]], plan: Plan) -> list[SystemResult]:
    """Judge systems by one metric, each by the scores of its seeds; the first is what others are compared with."""
    drawn = [_resampled(seeds, plan) for seeds in systems]
    return [
        _standing(seeds, scores, systems[0], drawn[0], plan) if position else _alone(seeds, scores, plan)
        for position, (seeds, scores) in enumerate(zip(systems, drawn, strict=True))
    ]


def _resampled(seeds: Sequence[Score], plan: Plan) -> DoubleArray:
    statistics = [score.statistics for score in seeds]
    return bootstrap_scores(statistics, seeds[0].metric.aggregate, samples=plan.resamples, seed=plan.seed)


def _alone(seeds: Sequence[Score], scores: DoubleArray, plan: Plan) -> SystemResult:
    low, high = interval(draw_seeds(scores, np.random.default_rng(plan.seed)))
    return SystemResult(list(seeds), float(low), float(high))


def _standing(
    seeds: Sequence[Score], scores: DoubleArray, base: Sequence[Score], base_scores: DoubleArray, plan: Plan
) -> SystemResult:
    alone = _alone(seeds, scores, plan)
    difference = alone.value - spread([score.value for score in base]).mean
    tests = plan.tests
    if tests is None:
        tests = ("bootstrap", "randomization", *(["seeds"] if len(seeds) > 1 or len(base) > 1 else []))
    comparison = None
    if "bootstrap" in tests:
        comparison = seeded_bootstrap(base_scores, scores, difference, seed=plan.seed)
    p_values = {name: _p(name, base, seeds, plan) for name in tests if name != "bootstrap"}
    if comparison:
        p_values = {"bootstrap": comparison.p_value, **p_values}
    return SystemResult(alone.seeds, alone.low, alone.high, difference, comparison, p_values)


def _p(test: str, base: Sequence[Score], system: Sequence[Score], plan: Plan) -> float | None:
    """Find the p-value of a test that needs no resamples of the bootstrap."""
    metric = base[0].metric
    if test == "randomization":
        first, second = ([score.statistics for score in seeds] for seeds in (base, system))
        return approximate_randomization(first, second, metric.aggregate, samples=plan.swaps, seed=plan.seed)
    if test == "seeds":
        if min(len(base), len(system)) < 2:
            return None
        return welch_test([score.value for score in base], [score.value for score in system])
    make = {"t": paired_t_test, "ks": kolmogorov_smirnov}[test]
    return make(segment_means(base), segment_means(system))


def segment_means(seeds: Sequence[Score]) -> DoubleArray:
    """Score each segment by itself, averaged over the seeds: (N,)."""
    return np.mean([score.metric.segment_scores(score.statistics) for score in seeds], axis=0)
