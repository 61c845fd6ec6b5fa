"""The plan of an epoch: which rows of a corpus are in which batch.

No row is a Python object here: a plan has 4 bytes a row, and needs 12 while it is made.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray

LONGEST = 2**16 - 1
"""Maximum length of a sentence."""
_CHUNK = 1 << 17
"""Rows that are read or changed at once."""
_LOW = np.uint64(2**32 - 1)

Keys = npt.NDArray[np.uint64]
"""For each row: ¬(target length · 2^48 + source length · 2^32 + place), so that the longest are
smallest."""


@dataclass(frozen=True)
class BatchPlan:
    """Batches of rows; a batch is a slice of `rows`.

    rows: (N,) numbers of the rows, those of a batch one after the other.
    starts: (batches + 1,) where each batch begins in `rows`.
    order: (batches,) in which the batches are read.
    """

    rows: npt.NDArray[np.uint32]
    starts: IntArray
    order: IntArray

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> IntArray:
        batch = self.order[index]
        return self.rows[self.starts[batch] : self.starts[batch + 1]].astype(np.int64)

    def __iter__(self) -> Iterator[IntArray]:
        return (self[index] for index in range(len(self)))


def plan_batches(
    lengths: Iterable[IntArray],
    count: int,
    *,
    batch_tokens: int,
    batch_sentences: int = 0,
    seed: tuple[int, ...] | None = None,
) -> BatchPlan:
    """Split a corpus into batches of similar length.

    A batch contains at most `batch_tokens`, counted as sentences times the longest side, and at
    least one sentence. With a seed, sentences of equal length and the batches themselves are
    shuffled; otherwise the longest come first.

    lengths: of source and target, EOS included, in chunks of (n, 2).
    count: N, the number of rows in all chunks together; less than 2^32.
    """
    random = np.random.default_rng(seed) if seed is not None else None
    places = np.arange(count, dtype=np.uint32)  # (N,)
    if random:
        random.shuffle(places)
    keys = _keys(lengths, places)
    keys.sort()
    starts = _starts(keys, batch_tokens, batch_sentences or count)
    rows = _places(keys)
    if random:
        row_at = _rows_at(places)
        del places
        _select(row_at, rows)
    order = random.permutation(len(starts) - 1) if random else np.arange(len(starts) - 1)
    return BatchPlan(rows, starts, order)


def _keys(lengths: Iterable[IntArray], places: npt.NDArray[np.uint32]) -> Keys:
    keys, first = np.empty(len(places), dtype=np.uint64), 0
    for chunk in lengths:
        assert chunk.size == 0 or chunk.max() <= LONGEST, chunk.max()
        part = slice(first, first + len(chunk))
        source, target = chunk.T.astype(np.uint64)  # (n,) both
        keys[part] = ~(target << np.uint64(48) | source << np.uint64(32) | places[part])
        first = part.stop
    assert first == len(keys), (first, len(keys))
    return keys


def _starts(keys: Keys, batch_tokens: int, batch_sentences: int) -> IntArray:
    """Find where batches of sorted rows begin; the last number is that of all rows."""
    most = min(batch_tokens, batch_sentences)
    # a list of Python's numbers would need five times the memory
    starts, sizes = array("q", [0]), np.arange(1, most + 1)
    for first, longest in _windows(keys, starts, most):
        # no batch with the first row has more rows than these
        window = longest[: max(1, min(batch_tokens // int(longest[0]), batch_sentences))]
        fits = np.maximum.accumulate(window) * sizes[: len(window)] <= batch_tokens
        starts.append(first + (len(window) if fits.all() else max(1, int(fits.argmin()))))
    return np.frombuffer(starts, dtype=np.int64)


def _windows(keys: Keys, starts: array[int], size: int) -> Iterator[tuple[int, IntArray]]:
    """Yield the beginning of each batch with the longer side of its rows and of `size` rows after
    it, if there are."""
    begin, longest = 0, _longest(keys[:_CHUNK])
    while starts[-1] < len(keys):
        first = starts[-1]
        if first + size > begin + len(longest) and begin + len(longest) < len(keys):
            begin, longest = first, _longest(keys[first : first + size + _CHUNK])
        yield first, longest[first - begin : first - begin + size]


def _longest(keys: Keys) -> IntArray:
    lengths = (~keys >> np.uint64(32)).astype(np.int64)  # (n,)
    return np.maximum(lengths >> 16, lengths & LONGEST)


def _places(keys: Keys) -> npt.NDArray[np.uint32]:
    """Read the place of each key, in the memory of the keys, and give back the half that is
    left."""
    places = keys.view(np.uint32)
    for first in range(0, len(keys), _CHUNK):
        # after the keys that are still to be read
        part = ~keys[first : first + _CHUNK] & _LOW  # (n,)
        places[first : first + len(part)] = part
    del places
    count = len(keys)
    keys.resize(-(-count // 2), refcheck=False)
    return keys.view(np.uint32)[:count]


def _rows_at(places: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Invert a permutation, the place of each row: (N,) -> (N,), the row at each place."""
    rows = np.empty_like(places)  # (N,)
    for first in range(0, len(places), _CHUNK):
        part = places[first : first + _CHUNK]
        rows[part] = np.arange(first, first + len(part), dtype=np.uint32)
    return rows


def _select(values: npt.NDArray[np.uint32], indices: npt.NDArray[np.uint32]) -> None:
    """Replace indices by their values."""
    for first in range(0, len(indices), _CHUNK):
        part = slice(first, first + _CHUNK)
        indices[part] = values[indices[part]]
