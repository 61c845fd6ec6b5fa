"""Arrow files, read as numpy views of the memory-mapped file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.typing import ArrayLike, DTypeLike
from pyarrow import ipc

from synmt.arrays import Array, Facts, Values
from synmt.errors import RESTORE, SynmtError
from synmt.files.json_files import parse_json


@dataclass(frozen=True, eq=False)
class Lists:
    """A column of lists: `column[row]` is a read-only view of one list."""

    offsets: Array
    values: Array

    def __getitem__(self, row: int) -> Array:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Return the length of each list, without reading its values: (N,)."""
        return np.diff(self.offsets).astype(np.int32, copy=False)


def lists(rows: Sequence[ArrayLike], kind: DTypeLike | None = None) -> pa.Array:
    """Convert rows of whole numbers to a column of lists, by default of the smallest type that
    holds them."""
    arrays = [np.asarray(row, dtype=np.int64) for row in rows]
    ends = np.cumsum([0, *map(len, arrays)])
    assert ends[-1] <= np.iinfo(np.int32).max, ends[-1]
    values = np.concatenate([np.zeros(0, dtype=np.int64), *arrays])
    if kind is None:
        bounds = values.min(initial=0), values.max(initial=0)
        kind = np.promote_types(*map(np.min_scalar_type, bounds))
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(values.astype(kind)))


def table_bytes(columns: Mapping[str, pa.Array], facts: Facts) -> bytes:
    """Make the content of a file of columns."""
    batch = pa.RecordBatch.from_pydict(
        dict(columns),
        metadata={"synmt": json.dumps(facts, sort_keys=True, ensure_ascii=False)},
    )
    content = pa.BufferOutputStream()
    with ipc.new_file(content, batch.schema) as writer:
        writer.write_batch(batch)
    return content.getvalue().to_pybytes()


class ArrowTable:
    """An Arrow file with the content of `table_bytes`, mapped into memory.

    schema: of its facts.
    """

    def __init__(self, path: Path, schema: Any = Values) -> None:
        self.path = path
        try:
            # the views of numpy keep the mapping alive
            reader = ipc.open_file(pa.memory_map(str(path)))
            self._batch = reader.get_batch(0)
            facts = (reader.schema.metadata or {})[b"synmt"]
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            raise SynmtError(
                f"not a complete file of a prepared corpus ({error})", where=path, do=RESTORE
            ) from None
        self.facts = parse_json(facts, schema, where=str(path))

    def __len__(self) -> int:
        return self._batch.num_rows

    def has(self, name: str) -> bool:
        """Return whether there is a column of this name."""
        return name in self._batch.schema.names

    def numbers(self, name: str) -> Array:
        """Return a column of numbers: (N,)."""
        return self._column(name).to_numpy(zero_copy_only=True)

    def lists(self, name: str) -> Lists:
        """Return a column of lists."""
        column = self._column(name)
        return Lists(
            column.offsets.to_numpy(zero_copy_only=True),
            column.values.to_numpy(zero_copy_only=True),
        )

    def _column(self, name: str) -> Any:
        if not self.has(name):
            raise SynmtError(f"has no column '{name}'", where=self.path)
        return self._batch.column(name)
