"""Feeds an executor from a stream of items, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

_LOOK = 5
"""Seconds until the number of items that may be submitted is computed again: items may take hours,
and workers join."""


def feed(
    submit: Callable[[T], Future[Any]],
    items: Iterator[T],
    room: Callable[[], int],
    is_undone: Callable[[Any], bool] = lambda result: False,
) -> Iterator[Any]:
    """Yield the results of items in the order in which they finish.

    room: tells how many items may be submitted at once; no others are read.
    is_undone: tells from its result that an item must be submitted again.
    """
    running: dict[Future[Any], T] = {}
    while True:
        running |= {submit(item): item for item in islice(items, max(0, room() - len(running)))}
        if not running:
            return
        finished, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
        for future in finished:
            item, result = running.pop(future), future.result()
            if is_undone(result):
                running[submit(item)] = item
            else:
                yield result
