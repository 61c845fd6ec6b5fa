"""Signals of how two words are related in the tree: depths, kinds of kinship, signed steps, arcs
with relations, and label paths.

`kinship` has one number for each pair of pieces, the index in KINDS of what the key's word is to
the query's word.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray, Strings
from synmt.files.reading import fingerprint
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signal, over_pieces, relations_of_pieces
from synmt.syntax.trees import ancestors, depths, tree_distances

KINDS = ("none", "self", "parent", "child", "sibling", "ancestor", "descendant")
"""What a word is to another: each pair has one kind, so `ancestor` means one above the parent, and
`descendant` one below the children. Specials are `none` to all words and to themselves."""

NO_STEPS = 1 << 20
"""The signed steps from or to a piece without a word."""


def depth(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps from each piece's word to the root: (T,); -1 for specials."""
    # the last entry is for specials
    return np.append(depths(parse.parents), -1)[word_of]  # (T,)


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
    return over_pieces(kinds, word_of, KINDS.index("none"))  # (T, T)


def signed_steps(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps through the tree between the words of every two pieces, with a direction: (T,
    T).

    It is depth_i - depth_j if one of the words i and j is above the other, otherwise the sum of
    both depths, with a minus if i comes before j (Wang et al., 2019). NO_STEPS from and to
    specials.
    """
    above = ancestors(parse.parents)  # (W, W)
    steps = depths(parse.parents)  # (W,)
    order = np.sign(np.arange(len(parse))[:, None] - np.arange(len(parse)))  # (W, W)
    beside = order * (steps[:, None] + steps)  # (W, W)
    signed = np.where(above | above.T, steps[:, None] - steps, beside)  # (W, W)
    return over_pieces(signed, word_of, NO_STEPS)  # (T, T)


def arcs_of_pairs(parse: Parse, word_of: IntArray, *, names: Strings | None) -> IntArray:
    """Number the arc between the words of every two pieces, by direction and relation: (T, T).

    0 if no arc joins them; l where the key's word is the parent of the query's word, with relation
    number l; l plus the number of relations where it is its child. l is 1 without names, otherwise
    as in `relations_of_pieces`.
    """
    labels = np.ones(len(parse), dtype=np.int64)  # (W,)
    if names is not None:
        labels = relations_of_pieces(parse, np.arange(len(parse)), names=names)  # (W,)
    words = np.flatnonzero(parse.parents != np.arange(len(parse)))  # (N,) all but the root
    parents = parse.parents[words]  # (N,)
    numbers = np.zeros((len(parse),) * 2, dtype=np.int64)  # (W, W)
    numbers[words, parents] = labels[words]
    numbers[parents, words] = labels[words] + edge_kinds(names) // 2
    return over_pieces(numbers, word_of, 0)  # (T, T)


def edge_kinds(names: Strings | None) -> int:
    """Count the numbers that `edges` can give to a pair: no arc, and two directions of each
    relation."""
    return 3 if names is None else 1 + 2 * (len(names) + 1)


def edges(names: Strings | None) -> Signal:
    """Make the signal that numbers arcs: of one relation if there are no names, otherwise with the
    number of each."""
    compute = partial(arcs_of_pairs, names=names)
    name = "edges" if names is None else f"edges.{fingerprint(names)}"
    needs = "parents" if names is None else "relations"
    return Signal(name, needs, compute, pad=0)


DEPTH = Signal("depth", "parents", depth, pad=-1)
KINSHIP = Signal("kinship", "parents", kinship, pad=KINDS.index("none"))
SIGNED_STEPS = Signal("signed_steps", "parents", signed_steps, pad=NO_STEPS)


# label paths: words and arcs of the tree on the way from one word to another (Cai & Lam, 2020)
#
# A path is a row of up to LONGEST symbols, followed by zeros. The arc from a child to its parent
# has the number of its relation, as in `relations_of_pieces`; the arc from a parent to its child
# has that plus the number of relations. Three more symbols are paths by themselves: from a word to
# itself, to a word that is too far away, and from or to a special.

LONGEST = 8
"""Most arcs of a path: a symbol is a byte, and a path with all its symbols is one number of eight
bytes."""

_LABELS = len(KNOWN) + 1
_ITSELF, _FAR, _SPECIAL = (2 * _LABELS + 1 + number for number in range(3))
SYMBOLS = _SPECIAL + 1
"""How many symbols there are, the zero after a path included."""

_EMPTY, _BYTE = np.uint64(0), np.uint64(8)
# the number of a path of n symbols is [n - 1] or more
_SHORTEST = np.uint64(256) ** np.arange(LONGEST, dtype=np.uint64)
# the bytes that a path of n symbols keeps
_WITHOUT_LAST = np.append(_EMPTY, _SHORTEST - np.uint64(1))


def label_paths(parse: Parse, word_of: IntArray, *, longest: int) -> IntArray:
    """Write the path from the word of each key to the word of each query as one number: (T, T),
    queries first.

    longest: paths of more arcs are too far.
    """
    numbers = _paths_of_words(parse, longest).view("<i8")[..., 0]  # (W, W)
    return over_pieces(numbers, word_of, _SPECIAL)  # (T, T)


def read_paths(numbers: IntArray) -> IntArray:
    """Read the symbols of paths that are numbers: (N,) -> (N, 8)."""
    return numbers.astype("<i8").view(np.uint8).reshape(-1, LONGEST).astype(np.int64)


def path_levels(numbers: IntArray, *, longest: int) -> tuple[IntArray, list[IntArray]]:
    """Sort paths by their length, with all that they begin or end with: (N,) -> the row of each,
    (N,), and the levels.

    numbers: of all paths of some trees.

    Level n has the paths of n symbols, from none to `longest`: (N_n, 4), the last symbol and the
    first one, the row of the path without its last and without its first symbol. Rows are counted
    through all levels.
    """
    # sorted by length, since the last symbol leads
    paths = np.unique(np.append(numbers.view(np.uint64), _EMPTY))  # (P,)
    lengths = np.searchsorted(_SHORTEST, paths, side="right")  # (P,)
    shorter = np.stack((paths & _WITHOUT_LAST[lengths], paths >> _BYTE))  # (2, P)
    rows = np.searchsorted(paths, shorter)  # (2, P)
    # what a path begins or ends with is the path between two words on it, which has a number, too
    assert (paths[rows] == shorter).all(), "not all paths of a tree"
    symbols = read_paths(paths.view(np.int64))  # (P, 8)
    last = np.take_along_axis(symbols, lengths.clip(1)[:, None] - 1, 1)  # (P, 1)
    table = np.concatenate((last, symbols[:, :1], rows.T), 1)  # (P, 4)
    levels = np.split(table, np.searchsorted(lengths, np.arange(1, longest + 1)))
    return np.searchsorted(paths, numbers.view(np.uint64)), levels


def _paths_of_words(parse: Parse, longest: int) -> npt.NDArray[np.uint8]:
    """Write the symbols of the path from each word (columns) to each word (rows): (W, W, 8)."""
    words = np.arange(len(parse))
    labels = relations_of_pieces(parse, words, names=KNOWN)  # (W,)
    lengths = tree_distances(parse.parents)  # (W, W)
    steps = depths(parse.parents)  # (W,)
    # arcs from the column to what is above both words
    rising = (lengths + steps - steps[:, None]) // 2  # (W, W)
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


def path_signal(longest: int) -> Signal:
    """Make the signal of label paths; a batch has each different path once, in tables by length."""
    compute, tables = partial(label_paths, longest=longest), partial(path_levels, longest=longest)
    return Signal(
        f"paths.{longest}", needs="relations", compute=compute, pad=_SPECIAL, tables=tables
    )
