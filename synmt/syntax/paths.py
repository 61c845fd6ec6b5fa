"""The signal of label paths: the words and arcs of the tree on the way from one word to another
(Cai & Lam, 2020).

A path is a row of up to LONGEST symbols, followed by zeros. The arc from a child to its parent has
the number of its relation, as in `relation_signal`; the arc from a parent to its child has that
plus the number of relations. Three more symbols are paths by themselves: from a word to itself, to
a word that is too far away, and from or to a special.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signal, relation_signal
from synmt.syntax.trees import ancestors, tree_distances

LONGEST = 8
"""Most arcs of a path: a symbol is a byte, and a path with all its symbols is one number of eight
bytes."""

_LABELS = len(KNOWN) + 1
_ITSELF, _FAR, _SPECIAL = (2 * _LABELS + 1 + number for number in range(3))
SYMBOLS = _SPECIAL + 1
"""How many symbols there are, the zero after a path included."""

_EMPTY, _BYTE = np.uint64(0), np.uint64(8)
_SHORTEST = np.uint64(256) ** np.arange(
    LONGEST, dtype=np.uint64
)  # the number of a path of n symbols is [n - 1] or more
_WITHOUT_LAST = np.append(
    _EMPTY, _SHORTEST - np.uint64(1)
)  # the bytes that a path of n symbols keeps


def label_paths(parse: Parse, word_of: IntArray, *, longest: int) -> IntArray:
    """Write the path from the word of each key to the word of each query as one number: (T, T),
    queries first.

    longest: paths of more arcs are too far.
    """
    # the last row and column are for specials, whose index is -1
    numbers = np.full((len(parse) + 1,) * 2, _SPECIAL, dtype=np.int64)  # (W + 1, W + 1)
    numbers[:-1, :-1] = _paths_of_words(parse, longest).view("<i8")[..., 0]
    return numbers.take(word_of, axis=0).take(word_of, axis=1)  # (T, T)


def read_paths(numbers: IntArray) -> IntArray:
    """Read the symbols of paths that are numbers: (N,) -> (N, 8)."""
    return numbers.astype("<i8").view(np.uint8).reshape(-1, LONGEST).astype(np.int64)


def path_levels(numbers: IntArray, *, longest: int) -> tuple[IntArray, list[IntArray]]:
    """Sort paths by their length, with all that they begin or end with: (N,) -> the row of each,
    (N,), and the levels.

    Level n has the paths of n symbols, from none to `longest`: (N_n, 4), the last symbol and the
    first one, the row of the path without its last and without its first symbol. Rows are counted
    through all levels.
    """
    paths = np.unique(
        np.append(numbers.view(np.uint64), _EMPTY)
    )  # (P,) sorted by length, since the last symbol leads
    while True:
        lengths = np.searchsorted(_SHORTEST, paths, side="right")  # (P,)
        shorter = np.stack((paths & _WITHOUT_LAST[lengths], paths >> _BYTE))  # (2, P)
        rows = np.searchsorted(paths, shorter)  # (2, P)
        missing = shorter[paths[rows] != shorter]
        # whole trees have none: what a path begins or ends with is the path between two words on it
        if not len(missing):
            break
        paths = np.union1d(paths, missing)
    symbols = read_paths(paths.view(np.int64))  # (P, 8)
    last = np.take_along_axis(symbols, lengths.clip(1)[:, None] - 1, 1)  # (P, 1)
    table = np.concatenate((last, symbols[:, :1], rows.T), 1)  # (P, 4)
    levels = np.split(table, np.searchsorted(lengths, np.arange(1, longest + 1)))
    return np.searchsorted(paths, numbers.view(np.uint64)), levels


def _paths_of_words(parse: Parse, longest: int) -> npt.NDArray[np.uint8]:
    """Write the symbols of the path from each word (columns) to each word (rows): (W, W, 8)."""
    words = np.arange(len(parse))
    labels = relation_signal().compute(parse, words)  # (W,)
    lengths = tree_distances(parse.parents)  # (W, W)
    depths = ancestors(parse.parents).sum(1)  # (W,)
    rising = (
        lengths + depths - depths[:, None]
    ) // 2  # (W, W) arcs from the column to what is above both words
    paths = np.zeros((*lengths.shape, LONGEST), dtype=np.uint8)  # (W, W, 8)
    above = words  # (W,) the ancestor of each word at a number of steps above it
    for step in range(longest):
        rows, columns = np.nonzero(step < rising)
        paths[rows, columns, step] = labels[above[columns]]
        # the way down ends in the row's word, so its last arc is the lowest
        rows, columns = np.nonzero((step < lengths - rising) & (lengths <= longest))
        paths[rows, columns, lengths[rows, columns] - 1 - step] = labels[above[rows]] + _LABELS
        above = parse.parents[above]
    for pairs, symbol in ((lengths > longest, _FAR), (lengths == 0, _ITSELF)):
        paths[pairs] = symbol * (np.arange(LONGEST) == 0)
    return paths


@cache
def path_signal(longest: int) -> Signal:
    """Make the signal of label paths; a batch has each different path once, in tables by length."""
    compute, tables = partial(label_paths, longest=longest), partial(path_levels, longest=longest)
    return Signal(
        f"paths.{longest}", needs="relations", compute=compute, pad=_SPECIAL, tables=tables
    )
