"""What a parser says of one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Parse:
    """The dependency tree of one line.

    words: the surface tokens, as they stand in the line.
    spans: (W, 2) where each word stands in the line: [start, end), counted in characters.
    parents: (W,) index of each word's parent; a root points at itself.
    relations: relation to the parent, a UD name, with its subtype where the parser gives one; a root has `root`.
    tags: universal part of speech of each word, `_` where unknown.
    """

    words: list[str]
    spans: IntArray
    parents: IntArray
    relations: list[str]
    tags: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.words)
