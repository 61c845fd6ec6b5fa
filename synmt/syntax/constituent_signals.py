"""Signals of the binary tree of a line (see `synmt/syntax/constituents.py`).

A piece without a word between two words belongs to the word before it. Specials before the first
word and after the last one are in no tree.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from synmt.arrays import IntArray
from synmt.syntax.constituents import binary_tree, heights
from synmt.syntax.parse import Parse
from synmt.syntax.signals import Signal

CUT = 2000
"""The height of a boundary next to a special, above that of all trees (Hou et al., 2022, released
code)."""
OUTSIDE, INSIDE, SPLIT, GOLD = -1, 1, 2, 3


def owners(word_of: IntArray) -> IntArray:
    """Find the word of each piece of the text, also of those inside it that have none: (T,); -1 for
    specials."""
    of_words = np.flatnonzero(word_of >= 0)
    result = np.full(len(word_of), -1)  # (T,)
    if len(of_words):
        inside = np.arange(of_words[0], of_words[-1] + 1)
        result[inside] = word_of[of_words[np.searchsorted(of_words, inside, side="right") - 1]]
    return result


def boundaries(parse: Parse, word_of: IntArray) -> IntArray:
    """Measure the boundary after each piece: the height of the lowest node over it and the next
    one: (T,).

    Inside a word it is 1; next to a special, and after the last piece, it is `CUT`.
    """
    owner = owners(word_of)  # (T,)
    left, right = owner[:-1], owner[1:]  # (T - 1,), (T - 1,)
    result = np.full(len(owner), CUT)  # (T,)
    between = np.append(boundary_heights(binary_tree(parse)), 0)  # (W,)
    text = (left >= 0) & (right >= 0)  # (T - 1,)
    result[:-1][text] = np.where(left == right, 1, between[left])[text]
    return result


def boundary_heights(merges: IntArray) -> IntArray:
    """Compute the height of the lowest node over each word and the next one: (W - 1, 2) -> (W -
    1,)."""
    lowest = np.zeros(len(merges), dtype=np.int64)  # (W - 1,)
    words = [{word} for word in range(len(merges) + 1)]
    for (left, right), height in zip(merges.tolist(), heights(merges), strict=True):
        for word in words[left]:
            for neighbour in (word - 1, word + 1):
                if neighbour in words[right]:
                    lowest[min(word, neighbour)] = height
        words.append(words[left] | words[right])
    return lowest


def splits(parse: Parse, word_of: IntArray) -> IntArray:
    """Mark where each node of three words or more can be split, a row for each node: (N, T).

    INSIDE is a piece of the node, SPLIT the last piece of a word other than its last one, GOLD the
    last piece of its left part, OUTSIDE another piece of the text, 0 a special. A node that is not
    one span of words, or whose parts are not, has no row.
    """
    owner = owners(word_of)  # (T,)
    last = np.append(np.flatnonzero(np.diff(owner)), len(owner) - 1)
    ends = {word: piece for piece, word in zip(last.tolist(), owner[last].tolist(), strict=True)}
    words, rows = [{word} for word in range(len(parse))], []
    for left, right in binary_tree(parse).tolist():
        node = words[left] | words[right]
        words.append(node)
        first, split, end = min(node), max(words[left]), max(node)
        # a node and its left part that begin together and have no gap
        if len(node) == end - first + 1 > 2 and len(words[left]) == split - first + 1:
            row = np.where((owner >= first) & (owner <= end), INSIDE, OUTSIDE)  # (T,)
            row[owner < 0] = 0
            row[[ends[word] for word in range(first, end)]] = SPLIT
            row[ends[split]] = GOLD
            rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, len(owner))


def merges(parse: Parse, word_of: IntArray) -> IntArray:
    """List what is joined into each node of the binary tree, by the height of the node: (heights,
    N, 3).

    A row has the left part, the right part and the number of the node, from 0; -1 where a height
    has fewer nodes. Parts are pieces, 0 to T - 1, or nodes: number n is written -2 - n. The pieces
    of a word are joined from left to right below it.
    """
    owner = owners(word_of)  # (T,)
    height: dict[int, int] = {}
    levels: list[list[tuple[int, int, int]]] = []

    def join(left: int, right: int) -> int:
        number = len(height)
        above = 1 + max(height.get(left, 0), height.get(right, 0))
        height[-2 - number] = above
        levels.extend([] for _ in range(above - len(levels)))
        levels[above - 1].append((left, right, number))
        return -2 - number

    nodes = [reduce(join, np.flatnonzero(owner == word).tolist()) for word in range(len(parse))]
    for left, right in binary_tree(parse).tolist():
        nodes.append(join(nodes[left], nodes[right]))
    table = np.full((len(levels), max(map(len, levels), default=0), 3), -1)
    for row, level in zip(table, levels, strict=True):
        row[: len(level)] = level
    return table


BOUNDARIES = Signal("boundaries", "constituents", boundaries, pad=0)
SPLITS = Signal("splits", "constituents", splits, pad=0)
MERGES = Signal("merges", "constituents", merges, pad=-1)
