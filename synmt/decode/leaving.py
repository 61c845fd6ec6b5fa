"""When the sentences of a batch that are done leave it.

A sentence that is done changes no more, so it can stay: when it leaves, what the decoder remembers of all others is
copied.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor

_PERIOD = 8
"""Steps between two looks on a GPU: each look waits until the device has computed everything so far."""

Look = Callable[[Tensor], tuple[Tensor, Tensor | None]]


def looks(device: torch.device) -> Look:
    """Return a function for all steps of one search: which sentences are done (B,) -> who leaves and who remains.

    Both are numbers of sentences, those that remain None if nobody leaves.
    """
    steps, period = count(1), 1 if device.type == "cpu" else _PERIOD

    def look(done: Tensor) -> tuple[Tensor, Tensor | None]:
        if next(steps) % period:
            return done.new_empty(0, dtype=torch.long), None
        needed = len(done) - int(done.sum())
        size = _rounded(needed)
        order = done.byte().argsort(stable=True)  # (B,), those that are done last
        return order[size:], order[:size].sort().values if size < len(done) else None

    return look


def _rounded(sentences: int) -> int:
    """Round up: products of many different sizes would each be planned by oneDNN when they are first needed."""
    return -(-sentences // 4) * 4 if sentences > 4 else sentences
