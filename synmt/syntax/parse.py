"""What a parser says of one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Parse:
    """The dependency tree of one line.

    words: the surface tokens, as they stand in the line.
    spans: (W, 2) where each word stands in the line: [start, end), counted in characters.
    parents: (W,) index of each word's parent; a root points at itself.
    relations: relation to the parent, a UD name with its subtype if the parser gives one; a root has `root`.
    tags: universal part of speech of each word, `_` where unknown.

    The probabilities of arcs will be one more field, `arcs`, last and None by default.
    """

    words: list[str]
    spans: IntArray
    parents: IntArray
    relations: list[str]
    tags: list[str] = field(default_factory=list)

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
        )

    __hash__ = None  # type: ignore[assignment]
