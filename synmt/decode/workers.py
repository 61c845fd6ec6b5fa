"""Batches at once: each is translated by a thread of its own, which computes on its share of the cores.

Two batches on a core each are done sooner than one after the other on both: most operators of a step are too small to
be shared, and threads that share one wait for each other, which is worst on a busy machine. While torch computes, it
lets the other threads of Python run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
U = TypeVar("U")


def workers(device: torch.device) -> int:
    """Count the batches to translate at once: as many as torch uses threads, and one on a GPU."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def in_workers(function: Callable[[T], U], items: Sequence[T], count: int) -> list[U]:
    """Apply a function to each item, up to `count` at once; the results have the order of the items."""
    at_once = min(count, len(items))
    if count <= 1 or not items:
        return [function(item) for item in items]
    before = torch.get_num_threads()
    share = max(1, before // at_once)
    try:
        # the number of threads is that of the thread which sets it, except for MKL's
        with ThreadPoolExecutor(at_once, "synmt", torch.set_num_threads, (share,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(before)
