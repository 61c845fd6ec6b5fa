"""Signals: what attention reads of a parse, computed for subword pieces when a batch is made.

`word_of` (T,) is the one bridge from words to pieces: the word each piece belongs to, -1 for specials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from synmt.syntax.parse import FloatArray, IntArray, Parse

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Signal:
    """A tensor over pieces that is computed from a parse.

    name: its key in a batch.
    needs: the annotation that it reads.
    compute: (parse, word_of) -> (T,), (T, T) or (G, T, T), numpy only.
    pad: its value outside the sentence.
    """

    name: str
    needs: Literal["parents", "relations", "arcs"]
    compute: Callable[[Parse, IntArray], Array]
    pad: float


def word_middles(word_of: IntArray, words: int) -> FloatArray:
    """Find the mean position of each word's pieces: (T,) -> (W,); nan for a word without pieces."""
    owned = word_of >= 0  # (T,)
    owners, positions = word_of[owned], np.flatnonzero(owned)
    counts = np.bincount(owners, minlength=words)  # (W,)
    sums = np.bincount(owners, weights=positions, minlength=words)  # (W,)
    with np.errstate(invalid="ignore"):
        return (sums / counts).astype(np.float32)


def parent_middle(parse: Parse, word_of: IntArray) -> FloatArray:
    """Find the middle of the parent's pieces for every piece: (T,); specials point at themselves.

    The position is x.5 between the two middle pieces of a parent with an even number of them; the pieces of
    the root point at the root's own middle (Bugliarello & Okazaki, 2020, section 2.1).
    """
    middles = word_middles(word_of, len(parse))[parse.parents]  # (W,)
    positions = np.arange(len(word_of), dtype=np.float32)  # (T,)
    if not len(parse):
        return positions
    result = np.where(word_of >= 0, middles[word_of], positions)  # (T,)
    assert not np.isnan(result).any(), f"a parent without pieces: {parse.words} {word_of}"
    return result


PARENT_MIDDLE = Signal("parent_middle", needs="parents", compute=parent_middle, pad=0.0)
