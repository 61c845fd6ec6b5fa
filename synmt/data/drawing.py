"""Draws the lines that a vocabulary learns from; of the others, only those of one chunk are in memory."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.data.pairs import PairChunk

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LineSample:
    """At most `count` lines of the kept pairs of a text, drawn uniformly.

    kept: (lines of the text,).
    sides: the sides that are drawn from, 0 and 1.
    """

    chunks: Iterable[PairChunk]
    kept: BoolArray
    sides: Sequence[int]
    count: int

    def lines(self) -> list[str]:
        """LineSample the lines, in a random order if some are left out."""
        sample = [""] * min(self._total, self.count)
        for places, content in self._places_and_blocks():
            for place, line in zip(places.tolist(), lines_of(content), strict=True):
                sample[place] = line
        return sample

    def blocks(self) -> Iterator[bytes]:
        """LineSample the same lines in the order of the text: those of a chunk at once, for `lines_of`."""
        return (content for _, content in self._places_and_blocks())

    def _places_and_blocks(self) -> Iterator[tuple[IntArray, bytes]]:
        numbers = draw_numbers(self._total, self.count)  # (M,)
        if self._total > self.count:
            what = "vocabulary: learned from %s of %s lines, drawn at random (vocabulary.training_lines)"
            _logger.info(what, f"{self.count:,}", f"{self._total:,}")
        order = np.argsort(numbers)  # (M,) the text is read once, from its start
        before = 0
        for chunk in self.chunks:
            texts = [chunk.raw_lines(side) for side in self.sides]
            rows = np.flatnonzero(self.kept[chunk.first : chunk.first + len(texts[0])])
            after = before + len(rows) * len(texts)
            first, end = np.searchsorted(numbers, (before, after), sorter=order)
            places = order[first:end]
            pairs, drawn = np.divmod(numbers[places] - before, len(texts))
            if len(places):
                lines = zip(rows[pairs].tolist(), drawn.tolist(), strict=True)
                yield places, b"\n".join([texts[side][row] for row, side in lines])
            before = after

    @property
    def _total(self) -> int:
        return int(self.kept.sum()) * len(self.sides)


def lines_of(block: bytes) -> list[str]:
    """Decode a block of drawn lines; the filters have read each of them before."""
    return block.decode().split("\n")


def draw_numbers(total: int, count: int, *, seed: int = 1) -> IntArray:
    """LineSample `count` of the numbers below `total` uniformly, or all of them (reservoir sampling): (M,)."""
    bits, numbers = random.Random(seed).getrandbits, np.arange(min(count, total))
    # like `randrange(number + 1)` for each number, which takes three times as long
    for length in range((count + 1).bit_length(), total.bit_length() + 1):
        for number in range(max(count, 2 ** (length - 1) - 1), min(total, 2**length - 1)):
            while (place := bits(length)) > number:
                pass
            if place < count:
                numbers[place] = number
    return numbers
