"""The parts of a training text: how often an epoch reads each, and which tag its sources begin
with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from synmt.arrays import IntArray
from synmt.errors import SynmtError


@dataclass(frozen=True)
class CorpusPart:
    """Consecutive lines of the training text.

    lines: their number.
    weight: how often an epoch reads each. 2: twice; 0.5: half of the pairs, another random half in
        each epoch.
    tag: a piece that each source begins with, such as `<BT>` for machine translations (Caswell et
        al., 2019); it belongs to no word.
    """

    name: str
    lines: int
    weight: float = 1.0
    tag: str = ""


def part_tags(parts: Sequence[CorpusPart]) -> tuple[str, ...]:
    """List the tags of parts, each once."""
    return tuple(dict.fromkeys(part.tag for part in parts if part.tag))


def tags_of_lines(parts: Sequence[CorpusPart], lines: IntArray) -> list[str]:
    """Return the tag of each line, counted from 0; empty without one."""
    if not part_tags(parts):
        return [""] * len(lines)
    return [
        parts[number].tag for number in np.searchsorted(_ends(parts), lines, side="right").tolist()
    ]


def rows_of_parts(parts: Sequence[CorpusPart], lines: IntArray) -> list[range]:
    """Find the rows of each part among rows with these lines, in ascending order: (N,)."""
    bounds = np.searchsorted(lines, np.append(0, _ends(parts))).tolist()
    return [range(first, last) for first, last in pairwise(bounds)]


def check_parts(parts: Sequence[CorpusPart], lines: int) -> None:
    """Raise SynmtError unless the parts have all lines of the training text."""
    if parts and (counted := sum(part.lines for part in parts)) != lines:
        raise SynmtError(
            f"the training text has {lines:,} lines, but its parts have {counted:,}",
            where=", ".join(f"{part.name}: {part.lines:,}" for part in parts),
        )


def _ends(parts: Sequence[CorpusPart]) -> IntArray:
    return np.cumsum([part.lines for part in parts], dtype=np.int64)
