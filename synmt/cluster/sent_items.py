"""Items of work that were sent to a cluster: their results, and how many workers have died on
them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from synmt.cluster.shipment import MissingKit
from synmt.cluster.worker_errors import AGAIN
from synmt.errors import SynmtError
from synmt.parallel.worker_log import LoggedResult

NOT_BEGUN = object()
"""Marks a cancelled item, in place of its result."""


@dataclass(frozen=True)
class LongWork:
    """How items that take hours, such as trainings, are worked on.

    stop: when it is set, no other item begins, and those in work end early (`ending_with_driver`).
        Those that wait for a worker have no result.
    lost: makes the result of an item whose workers died over and over; the others go on.
    gpu: whether an item needs a GPU for itself, if any worker declares `GPU` among its resources.
    """

    stop: threading.Event
    lost: Callable[[Any, SynmtError], Any]
    gpu: bool = True


@dataclass
class Item:
    """One item of the work.

    deaths: how many workers have died while they worked on it. Dask counts them only until the item
        is sent again: when a worker that has no kit, such as one that was started anew, takes it.
    """

    content: Any
    deaths: int = 0


class SentItem(Future[Any]):
    """An item that was sent to the cluster.

    The executor of Dask does the same, but there a result that is lost with the connection never
    ends.
    """

    def __init__(self, future: Any, item: Item, long: LongWork | None, where: Path) -> None:
        super().__init__()
        self._item, self._long, self._where = item, long, where
        self._future = future
        future.client.loop.add_callback(self._collect)

    async def _collect(self) -> None:
        # the item ends when its result is here: a worker that dies before that takes the result
        # with it
        try:
            self.set_result(await self._future.client.gather(self._future, asynchronous=True))
        except asyncio.CancelledError:
            self.set_exception(CancelledError())
        except BaseException as error:
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> Any:
        try:
            result = super().result(timeout)
        except import_module("distributed").KilledWorker as error:
            return self._lost(self._item.deaths + error.allowed_failures + 1)
        except CancelledError:
            if self._long is None or not self._long.stop.is_set():
                raise
            return LoggedResult(NOT_BEGUN)
        if isinstance(result, MissingKit):
            deaths, allowed = _count_deaths(self._future)
            self._item.deaths += deaths
            if self._item.deaths > allowed:
                return self._lost(self._item.deaths)
        return result

    def _lost(self, deaths: int) -> Any:
        error = SynmtError(
            f"{deaths} workers died while they worked on the same shard or run, most likely for "
            "lack of memory",
            where=self._where,
            do="Start workers with more memory each (`dask worker --nthreads 1 --memory-limit "
            f"8GB`), and {AGAIN}",
        )
        if self._long is None:
            raise error from None
        return LoggedResult(self._long.lost(self._item.content, error))


def _count_deaths(future: Any) -> tuple[int, int]:
    """Ask the scheduler how many workers have died on an item since it was sent, and how many
    may."""
    key = future.key

    def count(dask_scheduler: Any) -> tuple[int, int]:
        task = dask_scheduler.tasks.get(key)
        return (task.suspicious if task else 0), dask_scheduler.allowed_failures

    return future.client.run_on_scheduler(count)
