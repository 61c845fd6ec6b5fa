"""Which rows an epoch reads, and how often: the weights of the parts of a training text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from synmt.arrays import Array, IntArray

_CHUNK = 1 << 20
"""Rows whose lengths are looked up at once."""


@dataclass(frozen=True)
class EpochRows:
    """The rows of an epoch, or some of them.

    rows: (M,).
    copies: (M,) how often each row has occurred before in the epoch.
    """

    rows: Array
    copies: Array

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, places: IntArray) -> EpochRows:
        """Return the rows at these places: (B,)."""
        return EpochRows(self.rows[places], self.copies[places])

    def lengths(self, lengths: Iterable[IntArray]) -> Iterator[IntArray]:
        """Turn the lengths of all rows, in chunks of (n, 2), into those of these rows."""
        every = np.concatenate([chunk.astype(np.uint16) for chunk in lengths])  # (N, 2)
        for first in range(0, len(self), _CHUNK):
            yield every[self.rows[first : first + _CHUNK]].astype(np.int64)


def epoch_rows(
    parts: Sequence[range], weights: Sequence[float], *, seed: int, epoch: int
) -> EpochRows:
    """Repeat and draw the rows of every part by its weight.

    A part of weight 2.5 has each row twice, and half of its rows a third time; each epoch draws
    another half. A half of five rows is two in one epoch and three in the next, so that no row is
    lost by rounding.
    """
    rows, copies = [], []
    for number, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        for copy, chosen in enumerate(_rows(part, weight, (seed, epoch, number))):
            rows.append(chosen)
            copies.append(np.full(len(chosen), copy, dtype=np.uint16))
    return EpochRows(np.concatenate(rows), np.concatenate(copies))


def _rows(
    part: range, weight: float, seed: tuple[int, int, int]
) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the rows of each copy of a part."""
    every = np.arange(part.start, part.stop, dtype=np.uint32)
    for _ in range(int(weight)):
        yield every
    # as it was written: 0.1 of 30 rows are 3
    share = (Fraction(str(weight)) % 1) * len(part)
    epoch = seed[1]
    count = int(share * (epoch + 1)) - int(share * epoch)
    # not the seed of the order of the batches
    random = np.random.default_rng((*seed, 1))
    yield np.sort(random.choice(every, count, replace=False))
