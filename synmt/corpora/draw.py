"""Samples sentence pairs, in their order; with one seed, a smaller sample is a subset of a larger one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 16
_BITS = 16
"""The first pass counts the numbers by their highest bits, the second one sorts those of one count."""


def drawn(total: int, wanted: int, seed: int) -> Iterator[bool]:
    """Tell for each of `total` pairs whether it is one of the `wanted` that are sampled.

    Every pair gets a random number of 64 bits, and those with the smallest are taken. So with one seed, a smaller
    sample is a subset of a larger one: the points of a learning curve differ in size only.
    """
    assert 0 <= wanted <= total, (wanted, total)
    limit = _smallest(total, wanted, seed)
    for numbers in _numbers(total, seed):
        yield from (numbers < np.uint64(limit)).tolist() if limit is not None else [True] * len(numbers)


def _numbers(total: int, seed: int) -> Iterator[NDArray[np.uint64]]:
    # numpy promises that the raw numbers of a generator never change
    generator = np.random.PCG64(seed)
    for start in range(0, total, _BLOCK):
        yield generator.random_raw(min(_BLOCK, total - start))


def _smallest(total: int, wanted: int, seed: int) -> int | None:
    """Find the number that `wanted` numbers are smaller than; None if all are."""
    if wanted == total:
        return None
    counts = np.zeros(1 << _BITS, dtype=np.int64)
    for numbers in _numbers(total, seed):
        counts += np.bincount(_high(numbers), minlength=len(counts))
    before = np.concatenate([[0], np.cumsum(counts)])
    group = int(np.searchsorted(before, wanted, side="right")) - 1
    members = np.concatenate([numbers[_high(numbers) == group] for numbers in _numbers(total, seed)])
    return int(np.sort(members)[wanted - before[group]])


def _high(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (numbers >> np.uint64(64 - _BITS)).astype(np.int64)
