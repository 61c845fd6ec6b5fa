"""Whether chance explains that one system scores higher than another.

The tests that draw at random work on statistics, (N, S) for each system: counted once for each segment, summed over any
group of segments, then turned into a score by the metric's `aggregate` (see synmt.evaluation.metrics). The other two
work on the score of each segment by itself, (N,). Systems with several seeds are in synmt.evaluation.seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
from scipy import stats

from synmt.arrays import DoubleArray
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval, resamples
from synmt.evaluation.metrics import Aggregate

SWAPS = 10_000
"""So many trials of approximate randomisation, where nobody says otherwise; sacreBLEU's number."""

_AT_ONCE = 4_000_000
"""Random numbers drawn at a time: 32 MB."""

_ROUNDING = 1e-9
"""Sums of the same real numbers in another order differ by less than this; systems that matter differ by more."""


@dataclass(frozen=True)
class Comparison:
    """How much a system differs from another, and whether chance explains it.

    difference: the system's score minus the other's.
    low, high: the 95 % interval of the difference.
    p_value: two-sided.
    """

    difference: float
    low: float
    high: float
    p_value: float


def paired_bootstrap(
    base: DoubleArray,
    system: DoubleArray,
    aggregate: Aggregate,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compare two systems by their statistics on the same segments, (N, S) each (Koehn, 2004).

    The p-value is the share of resamples whose difference is as far from the observed one as zero is, or
    farther, to either side. sacreBLEU draws the same resamples, but counts one side only, after folding
    the signs of the differences: its p-value is about half as large.
    """
    observed = aggregate(system.sum(0)) - aggregate(base.sum(0))
    return compare(observed, bootstrap_differences(base, system, aggregate, samples=samples, seed=seed))


def compare(observed: float, differences: DoubleArray) -> Comparison:
    """Judge an observed difference by the differences on resamples: (R,)."""
    low, high = interval(differences)
    extreme = np.count_nonzero(np.abs(differences - observed) >= abs(observed))
    return Comparison(observed, float(low), float(high), (int(extreme) + 1) / (len(differences) + 1))


def bootstrap_differences(
    base: DoubleArray, system: DoubleArray, aggregate: Aggregate, *, samples: int, seed: int
) -> DoubleArray:
    """Score both systems on resamples of the segments and subtract: (samples,)."""
    scores = bootstrap_scores([base, system], aggregate, samples=samples, seed=seed)  # (samples, 2)
    return scores[:, 1] - scores[:, 0]  # (samples,)


def bootstrap_scores(
    statistics: Sequence[DoubleArray], aggregate: Aggregate, *, samples: int = SAMPLES, seed: int = SEED
) -> DoubleArray:
    """Score M translations of the same segments, (N, S) each, on the same resamples: (samples, M).

    The middle 95 % of a column is the interval of that system's own score.
    """
    assert len({one.shape for one in statistics}) == 1, [one.shape for one in statistics]
    side_by_side = np.hstack(statistics)  # (N, M·S)
    return np.array(
        [
            [aggregate(one) for one in np.split(totals, len(statistics))]
            for times in resamples(len(side_by_side), samples=samples, seed=seed)
            for totals in times @ side_by_side
        ]
    )


def approximate_randomization(
    base: Sequence[DoubleArray],
    system: Sequence[DoubleArray],
    aggregate: Aggregate,
    *,
    samples: int = SWAPS,
    seed: int = SEED,
) -> float:
    """Find the two-sided p-value of a difference by exchanging translations (Riezler & Maxwell, 2005).

        p = (trials with |difference| ≥ |observed| + 1) / (trials + 1)

    base, system: for each seed the statistics of the same segments, (N, S).

    Were the systems alike, nothing would change when a segment's two translations are exchanged. A trial exchanges
    them, for each segment with probability 1/2. Several seeds of a system are exchanged together and stay the seeds
    that they are: what other seeds might give is for synmt.evaluation.seeds. sacreBLEU's trials are the same ones; it
    counts only differences above the observed one, so that a system's p-value against itself is 1 here, and there
    next to 0.
    """
    observed = abs(_mean_score(system, aggregate) - _mean_score(base, aggregate))
    differences = swapped_differences(base, system, aggregate, samples=samples, seed=seed)
    extreme = np.count_nonzero(np.abs(differences) >= observed - _ROUNDING)
    return (int(extreme) + 1) / (samples + 1)


def swapped_differences(
    base: Sequence[DoubleArray], system: Sequence[DoubleArray], aggregate: Aggregate, *, samples: int, seed: int
) -> DoubleArray:
    """Exchange the two systems' translations of randomly chosen segments, score and subtract: (samples,)."""
    # three seeds against two: six pairs, in which each seed of a system is equally often
    pairs = lcm(len(base), len(system))
    first = np.hstack([base[pair % len(base)] for pair in range(pairs)])  # (N, M·S)
    second = np.hstack([system[pair % len(system)] for pair in range(pairs)])  # (N, M·S)
    assert first.shape == second.shape, (first.shape, second.shape)
    both = first.sum(0) + second.sum(0)  # (M·S,)
    differences = []
    for kept in _coins(len(first), samples=samples, seed=seed):
        mixed = kept @ first + (1 - kept) @ second  # (R, M·S)
        for totals in mixed:
            parts = zip(np.split(both - totals, pairs), np.split(totals, pairs), strict=True)
            differences.append(sum(aggregate(one) - aggregate(other) for one, other in parts) / pairs)
    return np.array(differences)


def _coins(segments: int, *, samples: int, seed: int) -> Iterator[DoubleArray]:
    """Toss a coin for each segment of each trial, some trials at a time: (R, N)."""
    random = np.random.default_rng(seed)
    # numpy makes 32 of them from one number and drops the rest: multiples of 32 equal one draw of all
    at_once = max(1, _AT_ONCE // segments // 32) * 32
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        yield random.integers(2, size=(rows, segments), dtype=np.bool_).astype(np.float64)


def _mean_score(seeds: Sequence[DoubleArray], aggregate: Aggregate) -> float:
    return sum(aggregate(one.sum(0)) for one in seeds) / len(seeds)


def paired_t_test(base: DoubleArray, system: DoubleArray) -> float:
    """Find the two-sided p-value of the mean difference of segment scores, (N,) each, by Student's t.

        t = mean(d) / (deviation(d) / √N),  d = system - base,  N - 1 degrees of freedom

    One segment tells nothing: p = 1.
    """
    assert base.shape == system.shape, (base.shape, system.shape)
    differences = system - base  # (N,)
    if len(differences) < 2:
        return 1.0
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return t_p_value(float(differences.mean()), float(error), len(differences) - 1)


def t_p_value(difference: float, error: float, freedom: float) -> float:
    """Find the two-sided p-value of a difference with a standard error, by Student's t.

    Without any spread, a difference is certain, and none is none.
    """
    if abs(difference) <= _ROUNDING:
        return 1.0
    return float(2 * stats.t.sf(abs(difference) / error, freedom)) if error > _ROUNDING else 0.0


def kolmogorov_smirnov(base: DoubleArray, system: DoubleArray) -> float:
    """Find the two-sided p-value that the segment scores of two systems, (N,) each, have one distribution.

    It asks about the whole distribution, not only its mean, and does not see which scores belong to one segment.
    """
    with warnings.catch_warnings():
        # scipy says so where it turns from exact numbers to the limit of many segments
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Any = stats.ks_2samp(base, system)
    return float(result.pvalue)
