"""Significance tests of the difference between two systems.

Bootstrap and randomization work on statistics, (N, S) for each system: counted once for each
segment, summed over any group of segments, then turned into a score by the metric's `aggregate`
(see synmt.evaluation.metrics). The t-test and the Kolmogorov-Smirnov test work on the score of each
segment, (N,), and Welch's test on the score of each seed.

The score of a system with several seeds is the mean over them, each scored separately. A difference
between two systems may come from the tested sentences, or from the luck of the training runs (Clark
et al., 2011, "Better hypothesis testing for statistical machine translation"): `seeded_bootstrap`
resamples both together, and `welch_test` looks at the training runs alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from synmt.arrays import DoubleArray
from synmt.evaluation.bootstrap import SAMPLES, SEED, WithInterval, interval, resamples
from synmt.evaluation.metrics import Aggregate
from synmt.reporting.values import Column

# scipy.stats is imported inside functions: it takes longer than BLEU of a test set

SWAPS = 10_000
"""Default number of trials of approximate randomization: that of sacreBLEU."""

_AT_ONCE = 4_000_000
"""Random numbers in memory at a time: 32 MB."""

_ROUNDING = 1e-9
"""Differences up to this are rounding errors of sums in different orders; real differences are
larger."""


_Statistics = Sequence[DoubleArray]
"""The statistics of the same segments in several translations, (N, S) each."""


@dataclass(frozen=True)
class Comparison(WithInterval):
    """The difference of a system's score from another's, and whether chance explains it.

    difference: the system's score minus the other's.
    low, high: the 95 % interval of the difference.
    p_value: two-sided.
    """

    difference: float
    low: float
    high: float
    p_value: float


FEW_SEEDS = "with two or three seeds, intervals and p-values are rough"
"""What resampled seeds cannot show."""


def difference_columns(
    base: str, interval: str, make: Callable[..., Column] = Column
) -> list[Column]:
    """Make the columns of a difference and of its interval.

    base: what it is the difference from.
    interval: how the interval was computed.
    make: makes a column of the kind of the values.
    """
    return [
        make("difference", signed=True, about=f"from {base}"),
        make("95 % of difference", signed=True, about=interval),
    ]


@dataclass(frozen=True)
class Spread:
    """Mean and variation of the scores of a system's seeds.

    deviation: standard deviation, with n - 1 in the denominator; 0 for a single seed.
    """

    mean: float
    deviation: float


def spread(scores: Sequence[float]) -> Spread:
    """Describe the scores of a system's seeds."""
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return Spread(float(np.mean(scores)), deviation)


def seeded_bootstrap(
    base: DoubleArray, system: DoubleArray, observed: float, *, seed: int = SEED
) -> Comparison:
    """Compare two systems by the scores of their seeds on the same resamples of sentences: (R, n_a)
    and (R, n_b).

    Each resample has the same sentences for all systems, and resampled seeds of each system. With
    one seed each it is the paired bootstrap (Koehn, 2004). With two or three seeds its p-value is
    rough: read Welch's test too, which takes the number of seeds into account.

    The p-value is the proportion of resamples whose difference is at least as far from the observed
    one as zero is, in either direction. sacreBLEU uses the same resamples, but counts one direction
    only, after folding the signs of the differences: its p-value is about half as large.

    observed: the difference of the means over the seeds, on all sentences.
    """
    random = np.random.default_rng(seed)
    before, after = resample_seeds(base, random), resample_seeds(system, random)  # (R,) both
    differences = after - before  # (R,)
    low, high = interval(differences).tolist()
    extreme = np.count_nonzero(np.abs(differences - observed) >= abs(observed))
    return Comparison(observed, low, high, (int(extreme) + 1) / (len(differences) + 1))


def compare_on_resamples(
    systems: Sequence[_Statistics],
    aggregate: Aggregate,
    *,
    samples: int = SAMPLES,
) -> list[Comparison]:
    """Compare each system with the first one, all on the same resamples of segments: a list of one
    entry less.

    systems: for each seed of a system the statistics of the same segments, (N, S).
    """
    scores = bootstrap_scores(
        [of_seed for seeds in systems for of_seed in seeds], aggregate, samples=samples
    )  # (R, M)
    base, *others = np.split(scores, np.cumsum(list(map(len, systems)))[:-1], axis=1)  # (R, n) each
    means = [np.mean([aggregate(statistics.sum(0)) for statistics in seeds]) for seeds in systems]
    return [
        seeded_bootstrap(base, other, float(mean - means[0]))
        for other, mean in zip(others, means[1:], strict=True)
    ]


def resample_seeds(scores: DoubleArray, random: np.random.Generator) -> DoubleArray:
    """Choose seeds for each resample, with replacement, and average their scores: (R, n) -> (R,).

    Only n - 1 seeds are chosen (McCarthy & Snowden, 1985): the mean then varies by deviation² / n,
    like the mean of n new seeds. Choosing n seeds gives (n - 1) / n of that, which is half of it
    for two seeds.
    """
    samples, seeds = scores.shape
    if seeds == 1:
        return scores[:, 0]
    chosen = random.integers(seeds, size=(samples, seeds - 1))  # (R, n-1)
    return np.take_along_axis(scores, chosen, axis=1).mean(1)  # (R,)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several comparisons, in the order given (Holm, 1979).

        adjusted(k) = max_{i ≤ k} min(1, (m - i + 1) · p(i))
        for the m p-values in increasing order

    Rejecting those below 0.05 rejects any true hypothesis with a probability of at most 5 %,
    however the comparisons depend on each other.
    """
    order = np.argsort(p_values, kind="stable")  # (m,)
    times = np.arange(len(order), 0, -1) * np.sort(p_values)  # (m,)
    adjusted = np.maximum.accumulate(np.minimum(times, 1))  # (m,)
    return adjusted[order.argsort()].tolist()


def bootstrap_scores(
    statistics: _Statistics,
    aggregate: Aggregate,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> DoubleArray:
    """Score M translations of the same segments, (N, S) each, on the same resamples: (samples, M).

    The middle 95 % of a column is the interval of that system's score.
    """
    side_by_side = np.hstack(statistics)  # (N, M·S)
    return np.array(
        [
            [aggregate(sums) for sums in totals.reshape(len(statistics), -1)]
            for times in resamples(len(side_by_side), samples=samples, seed=seed)
            for totals in times @ side_by_side
        ]
    )


def approximate_randomization(
    base: _Statistics,
    system: _Statistics,
    aggregate: Aggregate,
    *,
    samples: int,
    seed: int,
) -> float:
    """Compute the two-sided p-value of a difference by exchanging translations (Riezler & Maxwell,
    2005).

        p = (trials with |difference| ≥ |observed| + 1) / (trials + 1)

    base, system: for each seed the statistics of the same segments, (N, S).

    If the systems were equally good, exchanging the two translations of a segment would change
    nothing. A trial exchanges each segment with probability 1/2; all seeds of a segment are
    exchanged together, so the test says nothing about other seeds (see seeded_bootstrap).
    sacreBLEU's trials are the same; it counts only differences above the observed one, so that the
    p-value of a system against itself is close to 0 there, and 1 here.
    """
    before, after = (
        np.mean([aggregate(statistics.sum(0)) for statistics in seeds]) for seeds in (base, system)
    )
    differences = swapped_differences(base, system, aggregate, samples=samples, seed=seed)
    extreme = np.count_nonzero(np.abs(differences) >= abs(after - before) - _ROUNDING)
    return (int(extreme) + 1) / (samples + 1)


def swapped_differences(
    base: _Statistics,
    system: _Statistics,
    aggregate: Aggregate,
    *,
    samples: int,
    seed: int,
) -> DoubleArray:
    """Exchange the two systems' translations of randomly chosen segments, score and subtract:
    (samples,)."""
    # three seeds against two: six pairs, in which every seed of a system is equally frequent
    pairs = lcm(len(base), len(system))
    first, second = (
        np.hstack([seeds[pair % len(seeds)] for pair in range(pairs)]) for seeds in (base, system)
    )  # (N, M·S) both
    both = first.sum(0) + second.sum(0)  # (M·S,)
    differences = []
    for coins in _toss_coins(len(first), samples=samples, seed=seed):
        mixed = coins @ first + (1 - coins) @ second  # (R, M·S)
        for totals in mixed:
            parts = zip((both - totals).reshape(pairs, -1), totals.reshape(pairs, -1), strict=True)
            differences.append(
                sum(aggregate(left) - aggregate(right) for left, right in parts) / pairs
            )
    return np.array(differences)


def _toss_coins(segments: int, *, samples: int, seed: int) -> Iterator[DoubleArray]:
    """Toss a coin for each segment of each trial, some trials at a time: (R, N)."""
    random = np.random.default_rng(seed)
    # numpy makes 32 coins from one random number and drops the rest: multiples of 32 equal a single
    # call
    at_once = max(1, _AT_ONCE // segments // 32) * 32
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        yield random.integers(2, size=(rows, segments), dtype=bool).astype(float)


def paired_t_test(base: DoubleArray, system: DoubleArray) -> float:
    """Compute the two-sided p-value of the mean difference of segment scores, (N,) each, by
    Student's t.

    p is 1 for a single segment. If all differences are equal, p is 0, or 1 if they are zero.
    """
    from scipy import stats

    differences = system - base  # (N,)
    if len(differences) < 2 or abs(differences.mean()) <= _ROUNDING:
        return 1.0
    if differences.std() <= _ROUNDING:
        return 0.0
    result: Any = stats.ttest_1samp(differences, 0.0)
    return float(result.pvalue)


def welch_test(base: Sequence[float], system: Sequence[float]) -> float:
    """Compute the two-sided p-value of the difference of two systems' mean scores over their seeds
    (Welch, 1947).

    It tests what other seeds would change, on the same sentences. If all seeds of each system score
    the same, p is 0, or 1 if the systems do too.
    """
    from scipy import stats

    assert min(len(base), len(system)) > 1, (len(base), len(system))
    if abs(np.mean(system) - np.mean(base)) <= _ROUNDING:
        return 1.0
    if max(np.std(scores) for scores in (base, system)) <= _ROUNDING:
        return 0.0
    with warnings.catch_warnings():
        # scipy warns where one of the systems has no deviation
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Any = stats.ttest_ind(system, base, equal_var=False)
    return float(result.pvalue)


def kolmogorov_smirnov(base: DoubleArray, system: DoubleArray) -> float:
    """Compute the two-sided p-value that the segment scores of two systems, (N,) each, have one
    distribution.

    It compares the whole distributions, not only the means, and ignores which scores belong to the
    same segment.
    """
    from scipy import stats

    with warnings.catch_warnings():
        # scipy warns when it changes from exact to asymptotic p-values
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Any = stats.ks_2samp(base, system)
    return float(result.pvalue)
