"""Features of words in a prepared corpus: a column of numbers for each, and its values among the facts of the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray
from synmt.data.arrow import ArrowTable, Lists, lists
from synmt.syntax.feature_signals import cases_of
from synmt.syntax.parse import Parse

_NONE = np.zeros(0, dtype=np.int64)

StoredFeatures = dict[str, tuple[Lists, npt.NDArray[np.object_]]]
"""Numbers and values of each feature of one shard."""


class FeatureColumns:
    """Collects features of the words of one shard, numbered in the order of their first occurrence.

    names: some of feature_signals.STORED.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers: dict[str, dict[str, int]] = {name: {} for name in names}
        self._rows: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, parse: Parse) -> None:
        """Append the features of the next sentence; `_` if missing."""
        for name, numbers in self._numbers.items():
            of_words = cases_of(parse) if name == "case" else parse.features.get(name) or ["_"] * len(parse)
            row = [numbers.setdefault(value, len(numbers)) for value in of_words]
            self._rows[name].append(np.array(row, dtype=np.int64))

    def stored(self) -> dict[str, Any]:
        """Make the columns."""
        kinds = {name: np.min_scalar_type(len(numbers)).type for name, numbers in self._numbers.items()}
        return {name: lists(rows, kinds[name]) for name, rows in self._rows.items()}

    def facts(self) -> dict[str, Any]:
        """List the values of each feature, and how often each occurs."""
        return {
            name: {"values": list(numbers), "counts": _occurrences(self._rows[name], len(numbers))}
            for name, numbers in self._numbers.items()
        }


def _occurrences(rows: list[IntArray], values: int) -> list[int]:
    return np.bincount(np.concatenate([_NONE, *rows]), minlength=values).tolist()


def open_features(table: ArrowTable) -> StoredFeatures:
    """Open the features of one shard of an annotation; older ones have none."""
    return {
        name: (table.lists(name), np.array(facts["values"], dtype=object))
        for name, facts in table.facts.get("features", {}).items()
    }
