"""Draws the lines that a vocabulary learns from; of the others, only those of one chunk are in
memory."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.arrays import BoolArray
from synmt.data.text_pairs import PairChunk

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DrawnLines:
    """Lines that are drawn from one chunk: a worker can find them there.

    drawn: which lines of source and target they are, (pairs, 2).
    """

    chunk: PairChunk
    drawn: BoolArray

    def block(self) -> bytes:
        r"""Return the lines in UTF-8, with `\n` between them."""
        texts = [self.chunk.raw_lines(side) if self.drawn[:, side].any() else [] for side in (0, 1)]
        return b"\n".join([texts[side][row] for row, side in np.argwhere(self.drawn).tolist()])

    def lines(self) -> list[str]:
        """Return the lines; the filters have decoded each of them before."""
        return self.block().decode().split("\n")


def draw_lines(
    chunks: Iterable[PairChunk], kept: BoolArray, sides: Sequence[int], count: int
) -> Iterator[DrawnLines]:
    """Draw at most `count` lines of the kept pairs of a text uniformly, from one chunk after the
    other.

    kept: (lines of the text,).
    sides: the sides that are drawn from, 0 and 1.
    """
    left = int(kept.sum()) * len(sides)
    wanted = min(left, count)
    if wanted < left:
        what = (
            "vocabulary: learned from %s of %s lines, drawn at random (vocabulary.training_lines)"
        )
        _logger.info(what, f"{wanted:,}", f"{left:,}")
    # unlike those of NumPy's new generators, its numbers never change
    random = np.random.RandomState(1)
    for chunk in chunks:
        drawn = np.zeros((len(chunk), 2), dtype=bool)
        drawn[:, sides] = kept[chunk.first : chunk.first + len(chunk), None]
        lines = chosen = int(drawn.sum())
        if wanted < left and lines:
            # how many of all that are still wanted are in this chunk
            chosen = random.hypergeometric(wanted, left - wanted, lines)
            drawn.flat[np.flatnonzero(drawn)[random.permutation(lines)[chosen:]]] = False
        if chosen:
            yield DrawnLines(chunk, drawn)
        left, wanted = left - lines, wanted - chosen
