"""Signals: the tensors over subword pieces that attention reads, computed from a parse when a batch
is made.

`word_of` (T,) is the word of each piece, -1 for specials: BOS, EOS and pieces without a word. Words
are in order, and every word has a piece, thanks to `merge_unowned`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from synmt.arrays import Array, FloatArray, IntArray, Strings, Texts, int_array
from synmt.errors import UsageError
from synmt.files.reading import fingerprint
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN, base_name
from synmt.syntax.trees import tree_distances

Needed = Literal[
    "words",
    "parents",
    "labels",
    "relations",
    "tags",
    "arcs",
    "constituents",
    "case",
    "fine_tag",
    "lemma",
    "morphology",
    "scenes",
]
"""What a signal is computed from: `words`, the word of each piece and no more; `labels`, the
relation of each word, but not its parent; `relations`, parents and relations; `constituents`, which
are given or built from the dependencies."""


@dataclass(frozen=True)
class Signal:
    """A tensor over pieces that is computed from a parse.

    name: its key in a batch; signals of one name compute the same.
    needs: what it is computed from: the tree, or what the annotation has to say of words besides
        it.
    compute: (parse, word_of) -> (T,), (T, T) or (G, T, T), numpy only; an axis of any other length
        is padded, too.
    pad: its value after the end of a sentence.
    tables: for values that stand for rows of tables, N different values -> the row of each, (N,),
        counted through all tables, and the tables. A batch has the row in place of each value, and
        each table by `table_name`.
    """

    name: str
    needs: Needed
    compute: Callable[[Parse, IntArray], Array] = field(compare=False)
    pad: float
    tables: Callable[[IntArray], tuple[IntArray, Sequence[Array]]] | None = field(
        default=None, compare=False
    )

    def table_name(self, number: int) -> str:
        """Name one of its tables in a batch."""
        return f"{self.name}.table{number}"


Signals = tuple[Signal, ...]


def word_middles(word_of: IntArray, words: int) -> FloatArray:
    """Compute the mean position of each word's pieces: (T,) -> (W,); nan for a word without
    pieces."""
    owned = word_of >= 0  # (T,)
    owners, positions = word_of[owned], np.flatnonzero(owned)
    counts = np.bincount(owners, minlength=words)  # (W,)
    sums = np.bincount(owners, weights=positions, minlength=words)  # (W,)
    with np.errstate(invalid="ignore"):
        return (sums / counts).astype(np.float32)


def word_firsts(word_of: IntArray, words: int) -> IntArray:
    """Find the first of each word's pieces: (T,) -> (W,); -1 for a word without pieces."""
    positions = np.flatnonzero(word_of >= 0)[::-1]
    firsts = np.full(words, -1)  # (W,)
    # in reversed order: of several values for one index NumPy keeps the last, here the first piece
    firsts[word_of[positions]] = positions
    return firsts


def parent_middle(parse: Parse, word_of: IntArray) -> FloatArray:
    """Find the middle of the parent's pieces for every piece: (T,); specials point to themselves.

    The position is x.5 between the two middle pieces of a parent with an even number of pieces; the
    pieces of the root point to the middle of the root (Bugliarello & Okazaki, 2020, section 2.1).
    """
    middles = word_middles(word_of, len(parse))[parse.parents]  # (W,)
    positions = np.arange(len(word_of), dtype=np.float32)  # (T,)
    if not len(parse):
        return positions
    result = np.where(word_of >= 0, middles[word_of], positions)  # (T,)
    assert not np.isnan(result).any(), f"a parent without pieces: {parse.words} {word_of}"
    return result


def parent_first(parse: Parse, word_of: IntArray) -> IntArray:
    """Find the first piece of the parent for every piece: (T,); specials point to themselves.

    The pieces of the root point to the first piece of the root.
    """
    positions = np.flatnonzero(word_of >= 0)
    result = np.arange(len(word_of))  # (T,)
    result[positions] = _first_of_parent(parse, word_of)[word_of[positions]]
    return result


def parent_chain(parse: Parse, word_of: IntArray) -> IntArray:
    """Chain the pieces of a word, and its last piece to the parent: (T,); specials point to
    themselves.

    Every piece points to the next one of its word, and the last one to the first piece of the
    parent; the last piece of the root points to itself (Deguchi et al., 2019; the paper does not
    say which piece of the parent, the author's code takes the first).
    """
    positions = np.flatnonzero(word_of >= 0)  # (N,) pieces of words
    owners = word_of[positions]  # (N,)
    parents = np.where(
        parse.parents[owners] == owners, positions, _first_of_parent(parse, word_of)[owners]
    )  # (N,)
    last = np.diff(owners, append=-1) != 0  # (N,)
    result = np.arange(len(word_of))  # (T,)
    result[positions] = np.where(last, parents, np.roll(positions, -1))
    return result


def _first_of_parent(parse: Parse, word_of: IntArray) -> IntArray:
    firsts = word_firsts(word_of, len(parse))[parse.parents]  # (W,)
    assert (firsts >= 0).all(), f"a parent without pieces: {parse.words} {word_of}"
    return firsts


def words_of_pieces(parse: Parse, word_of: IntArray) -> IntArray:
    """Return the word of every piece: (T,); -1 for specials."""
    return word_of.astype(np.int64)


def distance(parse: Parse, word_of: IntArray) -> IntArray:
    """Count the steps in the tree between the words of every two pieces: (T, T).

    The distance between pieces of a word is 0 (Peng et al., 2022). From a special it is 0 to
    itself, and to every other piece one more than the greatest distance between two words of the
    sentence.
    """
    steps = tree_distances(parse.parents)  # (W, W)
    result = over_pieces(steps, word_of, steps.max(initial=0) + 1)  # (T, T)
    np.fill_diagonal(result, 0)
    return result


def over_pieces(table: IntArray, word_of: IntArray, special: int) -> IntArray:
    """Copy the values of words to their pieces: (W, W) -> (T, T).

    special: the value from and to specials.
    """
    # the last row and column are for specials, whose index is -1
    table = np.pad(table, (0, 1), constant_values=special)  # (W + 1, W + 1)
    return table.take(word_of, axis=0).take(word_of, axis=1)


def numbers_of_values(values: Texts, word_of: IntArray, numbers: Mapping[str, int]) -> IntArray:
    """Number the value of every piece's word: (T,) -> (T,); 0 for specials, the number after the
    last one for an unknown value."""
    other = 1 + len(numbers)
    of_word = [numbers.get(value, other) for value in values]
    return int_array([*of_word, 0])[word_of]  # (T,) the last entry is for specials


def relations_of_pieces(parse: Parse, word_of: IntArray, *, names: Strings) -> IntArray:
    """Number the relation of every piece's word: (T,).

    0 for specials; 1 + the index in names, of the whole relation if it is there, otherwise without
    its subtype; 1 + the number of names for every other relation.
    """
    numbers = numbered(names)
    known = [name if name in numbers else base_name(name) for name in parse.relations]
    return numbers_of_values(known, word_of, numbers)


def needs_dependencies(signals: Iterable[Signal], *, given: bool) -> bool:
    """Check whether some signal is computed from dependencies; words, scenes and `given`
    constituents are not."""
    others = ("words", "scenes", "constituents") if given else ("words", "scenes")
    return any(signal.needs not in others for signal in signals)


def needs_parents(signals: Iterable[Signal]) -> bool:
    """Check whether some signal changes if words get other parents."""
    return any(
        signal.needs in ("parents", "relations", "arcs", "constituents") for signal in signals
    )


PARENT_MIDDLE = Signal("parent_middle", "parents", parent_middle, pad=0.0)
PARENT_FIRST = Signal("parent_first", "parents", parent_first, pad=0)
PARENT_CHAIN = Signal("parent_chain", "parents", parent_chain, pad=0)
WORD = Signal("word", "words", words_of_pieces, pad=-1)
DISTANCE = Signal("distance", "parents", distance, pad=0)


def relation_signal(names: Strings = KNOWN) -> Signal:
    """Make the signal that numbers relations by their index in a list; lists have different names
    in batches."""
    # names that occur twice are refused at once
    numbered(names)
    name = "relation" if names == KNOWN else f"relation.{fingerprint(names)}"
    return Signal(name, "labels", partial(relations_of_pieces, names=names), pad=0)


@lru_cache(maxsize=64)
def numbered(names: Strings) -> dict[str, int]:
    """Number names from 1; raise UsageError for one that occurs twice."""
    numbers = {name: number for number, name in enumerate(names, start=1)}
    if len(numbers) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"relation '{repeated}' is listed twice", do="List every relation once")
    return numbers
