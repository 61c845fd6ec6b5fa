"""What a parser says of one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from synmt.arrays import FloatArray, IntArray
from synmt.syntax.whitespace import WORD


@dataclass(frozen=True, eq=False)
class Arcs:
    """P(parent, relation | word), sparse: N entries, those of one word side by side.

    words: (N,) the word of each entry, ascending.
    parents: (N,) its parent; a word that is its own parent is the root.
    relations: (N,) numbers of names.
    probabilities: (N,); those of a word sum to 0.999 at least, and to 1 at most.
    names: the relations by number.
    """

    words: IntArray
    parents: IntArray
    relations: IntArray
    probabilities: FloatArray
    names: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arcs):
            return NotImplemented
        return (
            [self.names[number] for number in self.relations.tolist()]
            == [other.names[number] for number in other.relations.tolist()]
            and np.array_equal(self.words, other.words)
            and np.array_equal(self.parents, other.parents)
            and np.array_equal(self.probabilities, other.probabilities)
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Parse:
    """The dependency tree of one line.

    words: the surface tokens, as they stand in the line.
    spans: (W, 2) where each word stands in the line: [start, end), counted in characters.
    parents: (W,) index of each word's parent; a root points at itself.
    relations: relation to the parent, a UD name with its subtype if the parser gives one; a root has `root`.
    tags: universal part of speech of each word, `_` where unknown.
    arcs: what the parser thinks of all arcs, where it was asked.
    """

    words: list[str]
    spans: IntArray
    parents: IntArray
    relations: list[str]
    tags: list[str] = field(default_factory=list)
    arcs: Arcs | None = None

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        # the equality of a dataclass asks an array for its truth, which has none
        if not isinstance(other, Parse):
            return NotImplemented
        return (
            (self.words, self.relations, self.tags) == (other.words, other.relations, other.tags)
            and np.array_equal(self.spans, other.spans)
            and np.array_equal(self.parents, other.parents)
            and self.arcs == other.arcs
        )

    __hash__ = None  # type: ignore[assignment]


def flat_parse(line: str) -> Parse:
    """Make a tree for a line that could not be parsed: words are split at whitespace, all are `dep` of the first."""
    spans = [match.span() for match in WORD.finditer(line)]
    return Parse(
        words=[line[start:end] for start, end in spans],
        spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
        parents=np.zeros(len(spans), dtype=np.int64),
        relations=["root", *["dep"] * len(spans)][: len(spans)],
        tags=["_"] * len(spans),
    )
