"""What an epoch reads: which rows, how often by the weights of the parts of a training text, and
in which batches.

No row is a Python object here: a plan has 4 bytes a row, and an array a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from synmt.arrays import Array, IntArray


@dataclass(frozen=True)
class EpochRows:
    """The rows of an epoch, or some of them.

    rows: (M,).
    copies: (M,) how often each row has occurred before in the epoch.
    """

    rows: Array
    copies: Array

    def select(self, places: IntArray) -> EpochRows:
        """Return the rows at these places: (B,)."""
        return EpochRows(self.rows[places], self.copies[places])


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
    rows = np.arange(part.start, part.stop, dtype=np.uint32)
    for _ in range(int(weight)):
        yield rows
    # as it was written: 0.1 of 30 rows are 3
    share = (Fraction(str(weight)) % 1) * len(part)
    epoch = seed[1]
    count = int(share * (epoch + 1)) - int(share * epoch)
    # not the seed of the order of the batches
    yield np.sort(np.random.default_rng((*seed, 1)).choice(rows, count, replace=False))


def plan_batches(
    lengths: Array,
    *,
    batch_tokens: int,
    batch_sentences: int = 0,
    seed: tuple[int, ...] | None = None,
) -> list[Array]:
    """Split rows into batches of similar length: the numbers of the rows of each, (B,).

    A batch contains at most `batch_tokens`, counted as sentences times the longest side, and at
    least one sentence. With a seed, sentences of equal length and the batches themselves are
    shuffled; otherwise the longest come first.

    lengths: of source and target, EOS included, below 2^16: (N, 2).
    """
    random = np.random.default_rng(seed) if seed is not None else None
    places = np.arange(len(lengths), dtype=np.uint32)  # (N,)
    if random:
        random.shuffle(places)
    # as one number, a key compares lengths of the target, then of the source, then places
    keys = lengths[:, 1].astype(np.uint64) << np.uint64(32 + 16)  # (N,)
    keys |= lengths[:, 0].astype(np.uint64) << np.uint64(32)
    keys |= places
    rows = np.argsort(keys)[::-1].astype(np.uint32)  # (N,)
    starts = _starts(lengths.max(1)[rows], batch_tokens, batch_sentences or len(lengths))
    batches = np.split(rows, starts[1:-1]) if len(rows) else []
    order = random.permutation(len(batches)).tolist() if random else range(len(batches))
    return [batches[number] for number in order]


def _starts(longest: Array, batch_tokens: int, batch_sentences: int) -> IntArray:
    """Find where batches begin, given the longer side of each row; the last number is that of all
    rows."""
    starts, sizes = [0], np.arange(1, min(batch_tokens, batch_sentences) + 1)
    while (first := starts[-1]) < len(longest):
        # no batch with the first row has more rows than these
        most = min(batch_tokens // int(longest[first]), batch_sentences)
        window = np.maximum.accumulate(longest[first : first + most])
        tokens = window * sizes[: len(window)]  # ascending
        starts.append(first + max(1, int(np.searchsorted(tokens, batch_tokens, side="right"))))
    return np.array(starts)
