"""A Dask cluster as the engine: Dask schedules, repeats the work of workers that died, and lets workers join.

Only what Dask does not know is here: which versions a worker must have, and how files reach it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from synmt.errors import SynmtError, UsageError
from synmt.parallel.feeding import feed
from synmt.parallel.kit import Kit, Unequipped, files_of, perform, receive, receive_file, versions

_logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_INSTALL = "Install it on this machine and on all workers: `pip install 'synmt[cluster]'`"
_AGAIN = "run the same command again: finished shards are kept"
_WAIT = "10s"
"""How long a scheduler may take to answer."""


class Cluster:
    """A connection to a Dask cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @classmethod
    @contextmanager
    def connect(cls, address: str) -> Iterator[Cluster]:
        """Connect for the length of a block; jobs of Slurm end with it."""
        if importlib.util.find_spec("distributed") is None:
            raise UsageError("a cluster needs Dask, which is not installed", where="--cluster", do=_INSTALL)
        import_module("distributed")
        settings = import_module("dask.config")

        # what happens to the connection, synmt says in a sentence; distributed sets the level when it is imported
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        # an item is a shard of text, not a graph of tasks
        settings.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        jobs = _jobs() if address == "slurm" else nullcontext(address)
        with jobs as scheduler, _client(scheduler, address) as client:
            workers = len(client.nthreads())
            _logger.info(
                "cluster: %s, workers: %s, dashboard: %s", client.scheduler.address, workers, client.dashboard_link
            )
            if not workers and address != "slurm":
                _logger.warning("cluster: no worker has joined yet; the work waits for one")
            yield cls(client)

    def run(self, work: Callable[[S, T], R], state: S, items: Iterator[T], *, where: Path) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish."""
        killed, closed = import_module("distributed").KilledWorker, import_module("distributed.comm").CommClosedError
        kit, files = Kit.pack(work, state), files_of(state)
        sent: WeakSet[Any] = WeakSet()

        def submit(item: T) -> _Sent:
            sent.add(future := self._client.submit(perform, kit.key, item, pure=False))
            return _Sent(future)

        def is_undone(result: Any) -> bool:
            if isinstance(result, Unequipped):
                self._equip(kit, files, [result.address])
            return isinstance(result, Unequipped)

        try:
            self._equip(kit, files, self._client.nthreads())
            yield from feed(submit, items, self._room, is_undone)
        except killed as error:
            raise _killed(error, where) from None
        except (CancelledError, OSError) as error:
            if not isinstance(error, CancelledError | closed) and self._client.status == "running":
                raise
            raise SynmtError(
                "the connection to the scheduler is lost", where=str(where), do=f"Start the scheduler, and {_AGAIN}"
            ) from None
        finally:
            # after Ctrl-C or an error, the items that are still in work are not needed
            with suppress(OSError, asyncio.TimeoutError):
                self._client.cancel(list(sent))

    def _room(self) -> int:
        return 2 * len(self._client.nthreads()) + 2

    def _equip(self, kit: Kit, files: Mapping[str, Path], workers: Iterable[str]) -> None:
        """Give a kit to workers, and its files to those that lack them; one that dies meanwhile is left out."""
        lacking: dict[str, list[str]] = {}
        for address, answer in self._call(receive, kit, workers=list(workers)).items():
            if isinstance(answer, OSError):
                continue
            if isinstance(answer, Exception):
                raise _incapable(address, answer)
            _check_versions(address, answer[0])
            for name in answer[1]:
                lacking.setdefault(name, []).append(address)
        for name, addresses in lacking.items():
            _logger.debug("cluster: sending %s to %s", name, ", ".join(addresses))
            content = files[name].read_bytes()
            for address, answer in self._call(receive_file, kit.key, name, content, workers=addresses).items():
                if isinstance(answer, Exception) and not isinstance(answer, OSError):
                    raise _incapable(address, answer)

    def _call(self, function: Callable[..., Any], *arguments: Any, workers: list[str]) -> dict[str, Any]:
        return self._client.run(function, *arguments, workers=workers, on_error="return") if workers else {}


class _Sent(Future[Any]):
    """An item that was sent to the cluster.

    The executor of Dask does the same, but there a result that is lost with the connection never ends.
    """

    def __init__(self, future: Any) -> None:
        super().__init__()
        future.add_done_callback(self.set_result)

    def result(self, timeout: float | None = None) -> Any:
        return super().result(timeout).result()


@contextmanager
def _client(scheduler: Any, address: str) -> Iterator[Any]:
    if isinstance(scheduler, str) and "://" not in scheduler:
        if not Path(scheduler).is_file():
            raise UsageError(
                "no such scheduler file",
                where=f"--cluster {scheduler}",
                allowed="tcp://HOST:PORT, the file of `dask scheduler --scheduler-file`, or slurm",
            )
        how = {"scheduler_file": scheduler}
    else:
        how = {"address": scheduler}
    try:
        client = import_module("distributed").Client(**how, timeout=_WAIT, set_as_default=False)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise SynmtError(
            f"no Dask scheduler answers ({str(error).strip() or type(error).__name__})",
            where=f"--cluster {address}",
            do="Start one with `dask scheduler`, and give the address that it shows",
        ) from None
    try:
        yield client
    finally:
        with suppress(OSError, asyncio.TimeoutError):
            client.close(timeout=2)


@contextmanager
def _jobs() -> Iterator[Any]:
    """Let Slurm start as many workers as there is work for, within the limits of Dask's configuration."""
    try:
        make = import_module("dask_jobqueue").SLURMCluster
    except ImportError:
        raise UsageError("Slurm needs dask-jobqueue, which is not installed", where="--cluster", do=_INSTALL) from None
    try:
        cluster = make()
    except ValueError as error:
        raise UsageError(
            f"Dask's configuration does not describe the jobs ({error})",
            where="--cluster slurm",
            do="Write the section jobqueue.slurm of ~/.config/dask/jobqueue.yaml, as in docs/scale.md",
        ) from None
    with cluster:
        limits = import_module("dask.config").get("distributed.adaptive")
        cluster.adapt(minimum=limits["minimum"], maximum=limits["maximum"])
        yield cluster


def _check_versions(address: str, theirs: dict[str, str]) -> None:
    ours = versions()
    other = [f"{name} {theirs.get(name)} (here {ours[name]})" for name in ours if theirs.get(name) != ours[name]]
    if other:
        raise SynmtError(
            f"other versions than here: {', '.join(other)}",
            where=f"worker {address}",
            do=f"Install the same versions there, restart the worker, and {_AGAIN}",
        )


def _incapable(address: str, error: Exception) -> SynmtError:
    if isinstance(error, ImportError):
        return SynmtError(
            f"cannot load synmt ({error})",
            where=f"worker {address}",
            do=f"Install the same synmt there, restart the worker, and {_AGAIN}",
        )
    if isinstance(error, SynmtError):
        return error.with_(where=f"worker {address}: {error.where}")
    return SynmtError(f"cannot work ({type(error).__name__}: {error})", where=f"worker {address}")


def _killed(error: Any, where: Path) -> SynmtError:
    return SynmtError(
        f"{error.allowed_failures + 1} workers died while they worked on the same shard, the last of them"
        f" {error.last_worker.address}, most likely for lack of memory",
        where=str(where),
        do=f"Start workers with more memory each (`dask worker --nthreads 1 --memory-limit 8GB`), and {_AGAIN}",
    )
