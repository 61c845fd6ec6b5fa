"""Types that all packages share: arrays, and the two sides of a translation."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
