"""The tree of a line that no parser could read: nothing is lost, nothing is claimed."""

from __future__ import annotations

import numpy as np

from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import WORD


def flat_parse(line: str) -> Parse:
    """Attach every word between blanks to the first one, with the relation `dep`."""
    spans = [match.span() for match in WORD.finditer(line)]
    return Parse(
        words=[line[start:end] for start, end in spans],
        spans=np.array(spans, dtype=np.int64).reshape(-1, 2),
        parents=np.zeros(len(spans), dtype=np.int64),
        relations=["root" if index == 0 else "dep" for index in range(len(spans))],
        tags=["_"] * len(spans),
    )
