"""Constituents in a prepared corpus: two columns, the first word of each and the word after its last one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from synmt.arrays import IntArray
from synmt.data.arrow import ArrowTable, Lists, lists

_COLUMNS = ("constituent_starts", "constituent_ends")


class StoredConstituents(NamedTuple):
    """The columns of one shard."""

    starts: Lists
    ends: Lists

    def row(self, row: int) -> IntArray:
        """Read the constituents of a row: (N, 2)."""
        return np.stack((self.starts[row], self.ends[row]), axis=1).astype(np.int64)


def open_constituents(table: ArrowTable) -> StoredConstituents | None:
    """Open the constituents of one shard of an annotation; None if it has none."""
    if not table.has(_COLUMNS[0]):
        return None
    return StoredConstituents(*map(table.lists, _COLUMNS))


def constituent_columns(rows: list[IntArray]) -> dict[str, Any]:
    """Make the columns of a shard from the constituents of its rows."""
    return {name: lists([row[:, end].tolist() for row in rows], np.int32) for end, name in enumerate(_COLUMNS)}
