"""Draws the lines that a vocabulary learns from; of the others, only those of one chunk are in memory."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.data.pairs import PairChunk

_logger = logging.getLogger(__name__)


def draw_lines(chunks: Iterable[PairChunk], kept: BoolArray, sides: Sequence[int], count: int) -> list[str]:
    """Draw at most `count` lines of the kept pairs uniformly.

    kept: (lines of the text,).
    sides: the sides that are drawn from, 0 and 1.
    """
    total = int(kept.sum()) * len(sides)
    numbers = draw_numbers(total, count)  # (M,)
    if total > count:
        what = "vocabulary: learned from %s of %s lines, drawn at random (vocabulary.training_lines)"
        _logger.info(what, f"{count:,}", f"{total:,}")
    order = np.argsort(numbers)  # (M,) the text is read once, from its start
    sample, before = [""] * len(numbers), 0
    for chunk in chunks:
        texts = [chunk.lines(side) for side in sides]
        rows = np.flatnonzero(kept[chunk.first : chunk.first + len(texts[0])])
        after = before + len(rows) * len(sides)
        first, end = np.searchsorted(numbers, (before, after), sorter=order)
        places = order[first:end]
        pairs, drawn = np.divmod(numbers[places] - before, len(sides))
        for place, row, side in zip(places.tolist(), rows[pairs].tolist(), drawn.tolist(), strict=True):
            sample[place] = texts[side][row]
        before = after
    return sample


def draw_numbers(total: int, count: int, *, seed: int = 1) -> IntArray:
    """Draw `count` of the numbers below `total` uniformly, or all of them (reservoir sampling): (M,)."""
    bits, numbers = random.Random(seed).getrandbits, np.arange(min(count, total))
    # like `randrange(number + 1)` for each number, which takes three times as long
    for length in range((count + 1).bit_length(), total.bit_length() + 1):
        for number in range(max(count, 2 ** (length - 1) - 1), min(total, 2**length - 1)):
            while (place := bits(length)) > number:
                pass
            if place < count:
                numbers[place] = number
    return numbers
