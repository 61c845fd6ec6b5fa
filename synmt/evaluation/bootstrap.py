"""Confidence intervals: bootstrap resamples of the sentences (Efron, 1979), and Wilson's interval
of a proportion.

    resample r = Σ_n times[r, n] · statistics[n]

times[r, n] counts how often resample r has sentence n. Resamples depend only on the seed and on the
number of sentences, so systems that are compared are scored on the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synmt.arrays import BoolArray, DoubleArray, IntArray
from synmt.reporting.values import Interval

SAMPLES, SEED = 1000, 12345
"""Default number of resamples, and their seed: those of sacreBLEU."""

_ENDS = (0.025, 0.975)
"""Quantiles at the ends of a 95 % interval."""


class WithInterval:
    """Something with the ends of its 95 % interval."""

    low: float
    high: float

    @property
    def interval(self) -> Interval:
        """The interval, as tables have it."""
        return Interval(self.low, self.high)


@dataclass(frozen=True)
class Proportion(WithInterval):
    """A proportion, 0 to 1, with its 95 % interval."""

    value: float
    low: float
    high: float


def resamples(sentences: int, *, samples: int = SAMPLES, seed: int = SEED) -> Iterator[DoubleArray]:
    """Count how often each sentence is in each resample, some resamples at a time: (R, N)."""
    random = np.random.default_rng(seed)
    at_once = max(1, 4_000_000 // sentences)  # 32 MB
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        chosen = random.choice(sentences, size=(rows, sentences), replace=True)  # (R, N)
        chosen += np.arange(rows)[:, None] * sentences
        yield (
            np.bincount(chosen.ravel(), minlength=rows * sentences)
            .reshape(rows, sentences)
            .astype(float)
        )


def interval(values: DoubleArray) -> DoubleArray:
    """Compute the ends of the middle 95 % of the values of resamples, ignoring NaN: (R, …) -> (2,
    …)."""
    return np.nanquantile(values, _ENDS, axis=0)


def ratio_intervals(
    above: DoubleArray, below: DoubleArray, *, samples: int = SAMPLES, seed: int = SEED
) -> list[Interval]:
    """Compute the 95 % interval of the ratio of two sums over sentences, for each column: (N, G)
    both -> G intervals.

    Resamples whose denominator is zero are left out.
    """
    assert above.shape == below.shape, (above.shape, below.shape)
    ratios = []
    for times in resamples(len(above), samples=samples, seed=seed):
        over, under = times @ above, times @ below  # (R, G) both
        ratios.append(over / np.where(under > 0, under, np.nan))  # (R, G)
    return list(map(Interval, *interval(np.concatenate(ratios)).tolist()))


def sum_by_sentence(
    values: DoubleArray | BoolArray, sentence: IntArray, sentences: int
) -> DoubleArray:
    """Sum values of words over the sentences that the words belong to: (M, G), (M,) -> (N, G)."""
    sums = np.zeros((sentences, values.shape[1]))
    np.add.at(sums, sentence, values.astype(float))
    return sums


def proportions(flags: BoolArray, sentence: IntArray, sentences: int) -> list[Proportion]:
    """Compute the proportion of words with each flag, with intervals over sentences: (M, G), (M,)
    -> G proportions."""
    right = sum_by_sentence(flags, sentence, sentences)  # (N, G)
    words = sum_by_sentence(np.ones_like(flags), sentence, sentences)  # (N, G)
    intervals = zip(*ratio_intervals(right, words), strict=True)
    return list(map(Proportion, flags.mean(0).tolist(), *intervals))


def wilson(hits: int, trials: int) -> Proportion:
    """Compute a proportion of independent trials with Wilson's interval (1927)."""
    from scipy.stats import binomtest

    ends = binomtest(hits, trials).proportion_ci(method="wilson")
    return Proportion(hits / trials, float(ends.low), float(ends.high))
