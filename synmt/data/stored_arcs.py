"""Probabilities of arcs in a prepared corpus: four bytes an arc and one a word, in most corpora.

Columns, lists of each row: arc_counts, the number of arcs of each word; arc_parents and arc_relations; and
arc_probabilities, in 65,535ths. Older corpora have arc_words, the word of each arc, in place of the counts, and
probabilities in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synmt.arrays import IntArray
from synmt.data.arrow import ArrowTable, Lists
from synmt.syntax.parse import Arcs

_WHOLE = 2**16 - 1


class StoredArcs(NamedTuple):
    """The columns of one shard.

    words: of older corpora, in place of counts.
    """

    counts: Lists | None
    words: Lists | None
    parents: Lists
    relations: Lists
    probabilities: Lists
    names: tuple[str, ...]

    def row(self, row: int) -> Arcs:
        """Read the arcs of a row."""
        parents, relations = (column[row].astype(np.int64) for column in (self.parents, self.relations))
        if self.counts is None:
            assert self.words is not None
            words, probabilities = self.words[row].astype(np.int64), self.probabilities[row]
        else:
            counts = self.counts[row]  # (W,)
            words = np.repeat(np.arange(len(counts)), counts)  # (N,)
            probabilities = (self.probabilities[row] / _WHOLE).astype(np.float32)  # (N,)
        return Arcs(words, parents, relations, probabilities, self.names)


def open_arcs(table: ArrowTable) -> StoredArcs | None:
    """Open the arcs of one shard of an annotation; None if it has none."""
    names = table.facts["arcs"]
    if names is None:
        return None
    old = table.has("arc_words")
    return StoredArcs(
        counts=None if old else table.lists("arc_counts"),
        words=table.lists("arc_words") if old else None,
        parents=table.lists("arc_parents"),
        relations=table.lists("arc_relations"),
        probabilities=table.lists("arc_probabilities"),
        names=tuple(names),
    )


def mean_mass(tables: Sequence[ArrowTable]) -> float | None:
    """Compute the probability that the stored arcs of a word sum to on average; None if a shard has no arcs."""
    if any(table.facts["arcs"] is None or not table.has("arc_counts") for table in tables):
        return None
    words = sum(int(table.lists("arc_counts").lengths.sum()) for table in tables)
    return sum(sum(table.facts["arc_mass"].values()) for table in tables) / words if words else None


def shares(arcs: Arcs) -> IntArray:
    """Round probabilities to 65,535ths: (N,).

    Each is off by less than one of them, and the sum of a word by half: sums are rounded, not single probabilities, so
    that a word does not gain or lose what the rounding of many arcs adds up to.
    """
    sums = np.cumsum(arcs.probabilities, dtype=np.float64)  # (N,) over all words
    first = np.searchsorted(arcs.words, arcs.words)  # (N,) the first arc of the same word
    before = np.append(0.0, sums)[first]  # (N,) sum over the words before
    rounded = np.rint((sums - before) * _WHOLE).astype(np.int64)  # (N,)
    steps = np.diff(rounded, prepend=0)  # (N,)
    starts = first == np.arange(len(first))
    return np.where(starts, rounded, steps)
