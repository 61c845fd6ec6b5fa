"""Signals for labelled dependency distributions: one table of arcs for each group of relations.

    table[g, i, j] = Σ_{r in group g} P(j is the parent of i, with relation r)        (G, W, W)

Liu & Sima'an (2022) use words; here each piece has the values of its word. The probability of being
the root is on the diagonal. The paper's other models read other tables: 0 and 1 from the tree
itself, or the same value everywhere.

Without groups there is one table, the sum over all relations. Relations in no group are in no
table, so rows need not sum to 1. The rows of specials are 1 in every column, which leaves their
scores unchanged; their columns are 0 in the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from synmt.arrays import FloatArray, IntArray
from synmt.files.reading import fingerprint
from synmt.syntax.arcs import without_arcs
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Arcs, Parse
from synmt.syntax.relations import REST, Groups, group_numbers, groups_of
from synmt.syntax.signals import Needed, Signal

Table = Callable[[Parse, Groups], FloatArray]


def _signal(
    kind: str,
    needs: Needed,
    table: Table,
    groups: Groups | None,
    *,
    split: bool = False,
) -> Signal:
    """Make the signal of a table: (G, T, T).

    groups: of relations, one table each; None makes one table of all relations.
    split: whether to divide by the number of the parent's pieces, so that a row has the same sum
        over pieces as over words.
    """
    name = f"{kind}.{fingerprint(groups, split)}"
    groups = ((REST,),) if groups is None else groups
    # a relation in two groups is refused at once
    group_numbers(groups)
    compute = partial(_over_pieces, table=table, groups=groups, split=split)
    return Signal(name, needs, compute, pad=0)


def arc_table(parse: Parse, groups: Groups) -> FloatArray:
    """Sum the parser's probabilities by group: (G, W, W)."""
    if parse.arcs is None and len(parse):
        raise without_arcs("a tree")
    return _dense(parse.arcs or certain_arcs(parse), groups, len(parse))


def tree_table(parse: Parse, groups: Groups) -> FloatArray:
    """Make the table with 1 at the arcs of the tree: (G, W, W)."""
    return _dense(certain_arcs(parse), groups, len(parse))


def uniform_table(parse: Parse, groups: Groups) -> FloatArray:
    """Spread the probability of each word's arcs over all parents and groups: (G, W, W)."""
    words, tables = len(parse), len(groups)
    return np.full((tables, words, words), 1 / max(words * tables, 1), dtype=np.float32)


arcs = partial(_signal, "arcs", "arcs", arc_table)
"""Makes the signal with the parser's probabilities, by groups of relations."""
tree_arcs = partial(_signal, "tree_arcs", "relations", tree_table)
"""Makes the signal with 1 at the arcs of the tree and 0 elsewhere."""
uniform_arcs = partial(_signal, "uniform_arcs", "words", uniform_table)
"""Makes the signal in which all parents and groups are equally likely."""


def _dense(sparse: Arcs, groups: Groups, words: int) -> FloatArray:
    numbers = groups_of(sparse.names, groups)[sparse.relations]  # (N,)
    has_number = numbers >= 0  # (N,)
    places = ((numbers * words + sparse.words) * words + sparse.parents)[has_number]
    shape = (len(groups), words, words)
    sums = np.bincount(places, sparse.probabilities[has_number], minlength=np.prod(shape))
    return sums.reshape(shape).astype(np.float32)


def _over_pieces(
    parse: Parse, word_of: IntArray, *, table: Table, groups: Groups, split: bool
) -> FloatArray:
    """Copy the values of words to their pieces: (G, W, W) -> (G, T, T)."""
    words = len(parse)
    counts = np.bincount(word_of[word_of >= 0], minlength=words)  # (W,)
    assert counts.all(), f"a word without pieces: {parse.words} {word_of}"
    # the last row and column are for specials, whose index is -1
    values = np.zeros((len(groups), words + 1, words + 1), dtype=np.float32)  # (G, W + 1, W + 1)
    values[:, :words, :words] = table(parse, groups) / (counts if split else 1)
    values[:, words] = 1
    return values.take(word_of, axis=1).take(word_of, axis=2)  # (G, T, T)
