"""A Dask cluster as the engine: Dask schedules, repeats the work of workers that died, and lets
workers join.

Only what Dask does not know is here: which versions a worker must have, and how files reach it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from synmt.arrays import Values
from synmt.cluster.sent_items import NOT_BEGUN, Item, LongWork, SentItem
from synmt.cluster.shipment import (
    Kit,
    MissingKit,
    cancel,
    files_of,
    perform,
    portable,
    receive,
    receive_file,
    watching,
)
from synmt.cluster.slurm import most_workers, slurm_jobs
from synmt.cluster.worker_errors import AGAIN, INSTALL, check_versions, incapable
from synmt.errors import SynmtError, UsageError
from synmt.parallel.processes import feed
from synmt.parallel.worker_log import result_of

_logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_WAIT = "10s"
"""How long a scheduler may take to answer."""
_PLENTY = 1 << 20
"""No limit on the number of queued items."""


class Cluster:
    """A connection to a Dask cluster.

    grows: whether workers are started when work waits; most: how many, if there is a limit.
    """

    def __init__(self, client: Any, *, grows: bool = False, most: int = 0) -> None:
        self._client, self._grows, self._most = client, grows, most
        self._workers = 0

    @classmethod
    @contextmanager
    def connect(cls, address: str) -> Iterator[Cluster]:
        """Connect for the length of a block; jobs of Slurm end with it."""
        if importlib.util.find_spec("distributed") is None:
            raise UsageError(
                "a cluster needs Dask, which is not installed", where="--cluster", do=INSTALL
            )
        import_module("distributed")
        settings = import_module("dask.config")

        # synmt reports what happens to the connection in one sentence; distributed sets the level
        # when it is imported
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        # an item is a shard of text, not a graph of tasks
        settings.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        grows = address == "slurm"
        jobs = slurm_jobs() if grows else nullcontext(address)
        with jobs as scheduler, _client(scheduler, address) as client:
            workers = len(client.nthreads())
            _logger.info(
                "cluster: %s, workers: %s, dashboard: %s",
                client.scheduler.address,
                workers,
                client.dashboard_link,
            )
            if not workers and not grows:
                _logger.warning("cluster: no worker has joined yet; the work waits for one")
            yield cls(client, grows=grows, most=most_workers() if grows else 0)

    def run(
        self,
        work: Callable[[S, T], R],
        state: S,
        items: Iterator[T],
        *,
        where: Path,
        long: LongWork | None = None,
    ) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish.

        long: for items that take hours.
        """
        state = portable(state)
        kit, files = Kit.pack(work, state), files_of(state)
        demand = {"GPU": 1} if long and long.gpu and self._gpus() else None
        sent: WeakSet[Any] = WeakSet()

        def submit(item: Item) -> SentItem:
            sent.add(
                future := self._client.submit(
                    perform, kit.key, item.content, pure=False, resources=demand
                )
            )
            return SentItem(future, item, long, where)

        def is_undone(result: Any) -> bool:
            if isinstance(result, MissingKit):
                self._equip(kit, files, [result.address])
                if long and long.stop.is_set():
                    self._call(cancel, kit.key, workers=[result.address])
            return isinstance(result, MissingKit)

        try:
            self._equip(kit, files, self._client.nthreads())
            with self._stopping(long.stop, kit, sent) if long else nullcontext():
                room = partial(self._room, long, demand)
                logged = feed(submit, map(Item, items), room, is_undone)
                results = map(result_of, logged)
                yield from (result for result in results if result is not NOT_BEGUN)
        except (CancelledError, OSError, asyncio.TimeoutError) as error:
            # Dask's own errors have no errno
            of_system = getattr(error, "errno", None) is not None
            if of_system and self._client.status == "running":
                raise
            raise SynmtError(
                "the connection to the scheduler is lost",
                where=where,
                do=f"Start the scheduler, and {AGAIN}",
            ) from None
        finally:
            # after Ctrl-C or an error, the items that are still in work are not needed
            with suppress(OSError, asyncio.TimeoutError):
                self._client.cancel(list(sent))

    def _room(self, long: LongWork | None, demand: Mapping[str, int] | None) -> int:
        threads = self._client.nthreads()
        if self._workers and not threads:
            _logger.warning("cluster: no worker is left; the work waits for one")
        self._workers = len(threads)
        # Slurm's workers come only if work waits
        if long is None:
            return max(2 * len(threads) + 2, self._most)
        # items queued at a worker that is busy for hours would not move to a worker that joins
        return _PLENTY if self._grows else max(1, self._gpus() if demand else sum(threads.values()))

    def _gpus(self) -> int:
        declared = self._client.run_on_scheduler(
            lambda dask_scheduler: [
                state.resources.get("GPU", 0) for state in dask_scheduler.workers.values()
            ]
        )
        return int(sum(declared))

    @contextmanager
    def _stopping(self, stop: threading.Event, kit: Kit, sent: WeakSet[Any]) -> Iterator[None]:
        """Inform workers when the driver has to stop, and cancel queued items, which may wait for
        hours."""

        def watch(done: threading.Event) -> None:
            while not stop.is_set() and not done.wait(0.2):
                pass
            if not done.is_set():
                with suppress(OSError, asyncio.TimeoutError):
                    self._call(cancel, kit.key, workers=self._client.nthreads())
            while not done.wait(0.2):
                # RuntimeError: an item was sent meanwhile
                with suppress(OSError, asyncio.TimeoutError, RuntimeError):
                    waiting = self._client.run_on_scheduler(_keys_without_worker)
                    self._client.cancel([future for future in sent if future.key in waiting])

        with watching(watch):
            yield

    def _equip(self, kit: Kit, files: Mapping[str, Path], workers: Iterable[str]) -> None:
        """Send a kit to workers, and its files to those that lack them; one that dies meanwhile is
        left out."""
        lacking: dict[str, list[str]] = {}
        for address, answer in self._call(receive, kit, workers=workers).items():
            if isinstance(answer, OSError):
                continue
            if isinstance(answer, Exception):
                raise incapable(address, answer)
            check_versions(address, answer[0])
            # a worker names files of the kit, and no others
            for name in files.keys() & set(answer[1]):
                lacking.setdefault(name, []).append(address)
        for name, addresses in lacking.items():
            _logger.debug("cluster: sending %s to %s", name, ", ".join(addresses))
            content = files[name].read_bytes()
            for address, answer in self._call(
                receive_file, kit.key, name, content, workers=addresses
            ).items():
                if isinstance(answer, Exception) and not isinstance(answer, OSError):
                    raise incapable(address, answer)

    def _call(
        self, function: Callable[..., Any], *arguments: Any, workers: Iterable[str]
    ) -> Values:
        # to reach a worker that has died takes half a minute
        present = self._client.nthreads()
        there = [worker for worker in workers if worker in present]
        return (
            self._client.run(function, *arguments, workers=there, on_error="return")
            if there
            else {}
        )


def _keys_without_worker(dask_scheduler: Any) -> set[str]:
    return {
        key for key, task in dask_scheduler.tasks.items() if task.state in ("no-worker", "queued")
    }


@contextmanager
def _client(scheduler: Any, address: str) -> Iterator[Any]:
    if isinstance(scheduler, str) and "://" not in scheduler:
        if not Path(scheduler).is_file():
            raise UsageError(
                "no such scheduler file",
                where=f"--cluster {scheduler}",
                allowed="Addresses: tcp://HOST:PORT, the file of `dask scheduler "
                "--scheduler-file`, or slurm",
            )
        where = {"scheduler_file": scheduler}
    else:
        where = {"address": scheduler}
    try:
        client = import_module("distributed").Client(**where, timeout=_WAIT, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError, asyncio.TimeoutError) as error:
        # what Dask raises if certificates are missing, or if it has to use them
        encrypted = address.startswith("tls:") or isinstance(error, TypeError | RuntimeError)
        raise SynmtError(
            f"no Dask scheduler answers ({str(error).strip() or type(error).__name__})",
            where=f"--cluster {address}",
            do="Start one with `dask scheduler`, and give the address that it shows"
            + ". Check the certificates in Dask's configuration (synmt --docs scale)" * encrypted,
        ) from None
    try:
        yield client
    finally:
        with suppress(OSError, asyncio.TimeoutError):
            client.close(timeout=2)
