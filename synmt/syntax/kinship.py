"""Signals of how two words are related in the tree: depths, kinds of kinship, signed steps, and
arcs with relations.

`kinship` has one number for each pair of pieces, the index in KINDS of what the key's word is to
the query's word.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from synmt.arrays import IntArray
from synmt.files.reading import fingerprint
from synmt.syntax.parse import Parse
from synmt.syntax.signals import Signal, relation_signal
from synmt.syntax.trees import ancestors

KINDS = ("none", "self", "parent", "child", "sibling", "ancestor", "descendant")
"""What a word is to another: each pair has one kind, so `ancestor` means one above the parent, and
`descendant` one below the children. Specials are `none` to all words and to themselves."""

NO_STEPS = 1 << 20
"""The signed steps from or to a piece without a word."""


def depth(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps from each piece's word to the root: (T,); -1 for specials."""
    steps = ancestors(parse.parents).sum(1) - 1  # (W,)
    return np.append(steps, -1)[word_of]  # (T,) the last entry is for specials


def kinship(parse: Parse, word_of: IntArray) -> IntArray:
    """Find what the word of each key is to the word of the query, as an index of KINDS: (T, T),
    queries first."""
    words, parents = np.arange(len(parse)), parse.parents
    above = ancestors(parents)  # (W, W)
    roots = parents == words  # (W,)
    siblings = (parents[:, None] == parents) & ~roots & ~roots[:, None]  # (W, W)
    kinds = np.zeros((len(parse),) * 2, dtype=np.int64)  # (W, W)
    # the nearer kind is written later: a parent is an ancestor, and a word is among its siblings
    for name, pairs in (("ancestor", above), ("descendant", above.T), ("sibling", siblings)):
        kinds[pairs] = KINDS.index(name)
    kinds[words, parents], kinds[parents, words] = KINDS.index("parent"), KINDS.index("child")
    kinds[words, words] = KINDS.index("self")
    return _over_pieces(kinds, word_of, KINDS.index("none"))  # (T, T)


def signed_steps(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps through the tree between the words of every two pieces, with a direction: (T,
    T).

    It is depth_i - depth_j if one of the words i and j is above the other, otherwise the sum of
    both depths, with a minus if i comes before j (Wang et al., 2019). NO_STEPS from and to
    specials.
    """
    above = ancestors(parse.parents)  # (W, W)
    depths = above.sum(1) - 1  # (W,)
    order = np.sign(np.arange(len(parse))[:, None] - np.arange(len(parse)))  # (W, W)
    beside = order * (depths[:, None] + depths)  # (W, W)
    steps = np.where(above | above.T, depths[:, None] - depths, beside)  # (W, W)
    return _over_pieces(steps, word_of, NO_STEPS)  # (T, T)


def arcs_of_pairs(parse: Parse, word_of: IntArray, *, names: tuple[str, ...] | None) -> IntArray:
    """Number the arc between the words of every two pieces, by direction and relation: (T, T).

    0 if no arc joins them; l where the key's word is the parent of the query's word, with relation
    number l; l plus the number of relations where it is its child. l is 1 without names, otherwise
    as in `relation_signal`.
    """
    labels = np.ones(len(parse), dtype=np.int64)  # (W,)
    if names is not None:
        labels = relation_signal(names).compute(parse, np.arange(len(parse)))  # (W,)
    words = np.flatnonzero(parse.parents != np.arange(len(parse)))  # (N,) all but the root
    parents = parse.parents[words]  # (N,)
    numbers = np.zeros((len(parse),) * 2, dtype=np.int64)  # (W, W)
    numbers[words, parents] = labels[words]
    numbers[parents, words] = labels[words] + edge_kinds(names) // 2
    return _over_pieces(numbers, word_of, 0)  # (T, T)


def edge_kinds(names: tuple[str, ...] | None) -> int:
    """Count the numbers that `edges` can give to a pair: no arc, and two directions of each
    relation."""
    return 3 if names is None else 1 + 2 * (len(names) + 1)


@cache
def edges(names: tuple[str, ...] | None) -> Signal:
    """Make the signal that numbers arcs: of one relation if there are no names, otherwise with the
    number of each."""
    compute = partial(arcs_of_pairs, names=names)
    if names is None:
        return Signal("edges", needs="parents", compute=compute, pad=0)
    return Signal(f"edges.{fingerprint(names)}", needs="relations", compute=compute, pad=0)


def _over_pieces(table: IntArray, word_of: IntArray, special: int) -> IntArray:
    """Copy the values of words to their pieces: (W, W) -> (T, T)."""
    # the last row and column are for specials, whose index is -1
    table = np.pad(table, (0, 1), constant_values=special)  # (W + 1, W + 1)
    return table.take(word_of, axis=0).take(word_of, axis=1)  # (T, T)


DEPTH = Signal("depth", needs="parents", compute=depth, pad=-1)
KINSHIP = Signal("kinship", needs="parents", compute=kinship, pad=KINDS.index("none"))
SIGNED_STEPS = Signal("signed_steps", needs="parents", compute=signed_steps, pad=NO_STEPS)
