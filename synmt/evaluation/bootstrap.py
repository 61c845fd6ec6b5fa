"""How far a number would move with other sentences: the same sentences drawn again, with replacement (Efron, 1979).

    resample r = Σ_n times[r, n] · statistics[n]

times[r, n] says how often sentence n was drawn. What is compared is judged by the same resamples: they follow from the
seed and from the number of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from synmt.arrays import DoubleArray

SAMPLES, SEED = 1000, 12345
"""So many resamples, from this seed, where nobody says otherwise; sacreBLEU's numbers."""

_ENDS = (0.025, 0.975)
"""Where an interval begins and ends among the resamples: it holds 95 % of them."""


def resamples(sentences: int, *, samples: int = SAMPLES, seed: int = SEED) -> Iterator[DoubleArray]:
    """Draw how often each sentence stands in each resample, some resamples at a time: (R, N)."""
    random = np.random.default_rng(seed)
    at_once = max(1, 4_000_000 // sentences)  # 32 MB
    for start in range(0, samples, at_once):
        rows = min(at_once, samples - start)
        drawn = random.choice(sentences, size=(rows, sentences), replace=True)  # (R, N)
        drawn += np.arange(rows)[:, None] * sentences
        yield np.bincount(drawn.ravel(), minlength=rows * sentences).reshape(rows, sentences).astype(np.float64)


def interval(values: DoubleArray) -> DoubleArray:
    """Find the ends of the middle 95 % of what resamples gave, NaN aside: (R, …) -> (2, …)."""
    return np.nanquantile(values, _ENDS, axis=0)


def ratio_intervals(
    above: DoubleArray, below: DoubleArray, *, samples: int = SAMPLES, seed: int = SEED
) -> list[tuple[float, float]]:
    """Find the 95 % interval of the ratio of two sums over sentences, column by column: (N, G) both -> G intervals.

    A resample with nothing below the line says nothing.
    """
    assert above.shape == below.shape, (above.shape, below.shape)
    ratios = []
    for times in resamples(len(above), samples=samples, seed=seed):
        over, under = times @ above, times @ below  # (R, G) both
        ratios.append(np.divide(over, under, out=np.full_like(under, np.nan), where=under > 0))  # (R, G)
    low, high = interval(np.concatenate(ratios)).tolist()  # (G,) both
    return list(zip(low, high, strict=True))
