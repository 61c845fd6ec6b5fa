"""Draws the lines that a vocabulary learns from; of the others, only those of one chunk are in memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import BoolArray
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
        """Draw the lines, in the order of the text."""
        return [line for block in self.blocks() for line in lines_of(block)]

    def blocks(self) -> Iterator[bytes]:
        """Draw the lines of one chunk after the other, for `lines_of`."""
        left = int(self.kept.sum()) * len(self.sides)
        wanted = min(left, self.count)
        if wanted < left:
            what = "vocabulary: learned from %s of %s lines, drawn at random (vocabulary.training_lines)"
            _logger.info(what, f"{wanted:,}", f"{left:,}")
        # unlike those of NumPy's new generators, its numbers never change
        random = np.random.RandomState(1)
        for chunk in self.chunks:
            texts = [chunk.raw_lines(side) for side in self.sides]
            rows = np.flatnonzero(self.kept[chunk.first : chunk.first + len(texts[0])])
            lines = [text[row] for row in rows.tolist() for text in texts]
            if not lines:
                continue
            drawn = lines
            if wanted < left:
                # how many of all that are still wanted are in this chunk
                count = random.hypergeometric(wanted, left - wanted, len(lines))
                drawn = [lines[place] for place in np.sort(random.permutation(len(lines))[:count]).tolist()]
            if drawn:
                yield b"\n".join(drawn)
            left, wanted = left - len(lines), wanted - len(drawn)


def lines_of(block: bytes) -> list[str]:
    """Decode a block of drawn lines; the filters have read each of them before."""
    return block.decode().split("\n")
