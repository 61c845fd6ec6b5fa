"""Buckets of numbers, by the last value of each: those of the papers, one's own, or quarters of the data.

    bucket(v) = number of buckets whose last value is below v

The names of the buckets say which end belongs to them: `11-20` has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.errors import UsageError, did_you_mean

Values = npt.NDArray[np.int64] | npt.NDArray[np.float64]

Edges = tuple[float, ...]
"""The last value of each bucket but the open one; without any there is one bucket."""

PASCAL: Edges = (10, 20, 30, 40, 50)
"""1-10, 11-20, … (Bugliarello & Okazaki, 2020, figure 2)."""

DEPS_SAN: Edges = (10, 20, 30, 40, 50, 60, 70, 80)
"""The nine groups of Peng et al. (2022), which they call 0-10, 10-20, … and >80.

A bucket has its last length and not its first: since 81 is the first of >80, 80 belongs to the group before, and the
other limits are taken alike. No sentence has 0 words, so that the first one is 1-10.
"""

LDD: Edges = (9, 19, 29, 39, 49)
"""[0, 10), [10, 20), …: tens that have their first length and not their last (Liu & Sima'an, 2022)."""

PAPERS = {"pascal": PASCAL, "deps-san": DEPS_SAN, "ldd": LDD}
"""Buckets of source lengths in words, by the names that recipes have."""

ONE_BUCKET = "any"
"""The name of the only bucket."""

_QUARTERS = (0.25, 0.5, 0.75)


def bucket_numbers(values: Values, edges: Edges) -> IntArray:
    """Find the bucket of each value, from 0: (N,) -> (N,)."""
    return np.searchsorted(np.array(edges), values, side="left").astype(np.int64)


def bucket_names(values: Values, edges: Edges) -> list[str]:
    """Name the buckets: `1-10` and `>50` for whole numbers, else `≤2.5`, `>2.5 to 3` and `>3`."""
    if not edges:
        return [ONE_BUCKET]
    shown = [f"{edge:g}" for edge in edges]
    if all(edge == int(edge) for edge in edges) and (values == np.round(values)).all():
        # a value of 0, such as the length of an empty line, stands with the lowest, and the name says so
        lowest = min(1, *values.astype(np.int64).tolist(), int(edges[0]))
        first = [lowest, *(int(edge) + 1 for edge in edges)]
        names = [end if str(low) == end else f"{low}-{end}" for low, end in zip(first, shown, strict=False)]
    else:
        names = [f"≤{shown[0]}", *(f">{low} to {high}" for low, high in pairwise(shown))]
    return [*names, f">{shown[-1]}"]


def quarters(values: Values, *, decimals: int = 0) -> Edges:
    """Find buckets of about a quarter of the sentences each; equal values are never parted, so there may be fewer."""
    scale = 10**decimals
    ends = np.quantile(values, _QUARTERS, method="inverted_cdf") * scale
    # rounded up, an end keeps its own sentence, so that no bucket is empty; the last bit of a product is no fraction
    edges = np.unique(np.ceil(np.round(ends, 6))) / scale
    return tuple(edge for edge in edges.tolist() if edge < values.max())


def parse_buckets(text: str) -> Edges:
    """Read the last values of the buckets, `10,20,30`, or the name of a paper's buckets of lengths."""
    name = text.strip().lower()
    if name in PAPERS:
        return PAPERS[name]
    edges = _numbers(text)
    if not edges or edges[0] < 0 or edges != sorted(set(edges)):
        raise UsageError(
            f"'{text}' are no buckets",
            where="--buckets",
            allowed=f"Buckets: {', '.join(PAPERS)}, or growing numbers with commas, the last value of each",
            do=did_you_mean(name, PAPERS) or "Write for example `--buckets 10,20,30`",
        )
    return tuple(edges)


def _numbers(text: str) -> Sequence[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return []
    return found if np.isfinite(found).all() else []
