"""What all packages share: types of arrays and of named values, the two sides of a translation, and
a writer of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

Values = dict[str, Any]
"""Values by their names, as an object of JSON has them."""
Facts = Mapping[str, Any]
"""Values that are only read."""
Strings = tuple[str, ...]
"""Texts in their order."""
Texts = Sequence[str]
"""Texts to read, in their order: lines, words or names."""
Pair = tuple[str, str]
"""Two languages, a sentence in each of them, or other texts that belong together."""

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")


IntPairs = list[tuple[int, int]]
"""Pairs of integers, before `int_pairs` makes an array of them."""


def int_array(values: Iterable[int]) -> IntArray:
    """Make the array of integers, also of none: (N,)."""
    return np.fromiter(values, np.int64)


def int_pairs(rows: Sequence[Any]) -> IntArray:
    """Make the array of pairs of integers, such as spans: (N, 2), also of no pair."""
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def json_text(value: Any, **layout: Any) -> str:
    """Write a value as JSON, which has no infinity and no NaN: null replaces them.

    layout: arguments of `json.dumps`.
    """
    return json.dumps(_without_infinities(value), allow_nan=False, **layout)


def _without_infinities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinities(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
