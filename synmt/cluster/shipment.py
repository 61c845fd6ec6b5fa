"""What a worker of a cluster needs for its work, and the work itself.

A kit comes to each worker once: the function and its state, pickled, and the files that the state
reads. A worker that has no kit says so instead of working, and gets it; so workers may come and go
at any time.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Protocol, runtime_checkable

from synmt.errors import SynmtError
from synmt.files.own_code import ALLOW
from synmt.files.reading import cache_folder, fingerprint, stored_sha256
from synmt.files.writing import write_content
from synmt.parallel.engine import versions
from synmt.parallel.worker_log import LoggedResult, run_logged

_KEPT = 4
"""Kits that a worker keeps in memory: those of a few commands that use the cluster at once."""
_LOOK = 0.5
"""Seconds between two looks at whether the driver still waits for an item."""


@runtime_checkable
class Portable(Protocol):
    """A state that reads files, of which a worker on another machine needs copies."""

    def files(self) -> Mapping[str, Path]:
        """Name the files by their paths in a folder of copies."""
        ...

    def relocated(self, folder: Path) -> Any:
        """Make the same state, which reads the copies in this folder."""
        ...


def portable(state: Any) -> Any:
    """Return what travels in the place of a state: what it names as its `portable`, or itself."""
    name = getattr(state, "portable", None)
    return resolve_name(f"synmt.cluster.{name}")(state) if name else state


def files_of(state: Any) -> Mapping[str, Path]:
    """Name the files that a state reads, by their paths in a folder of copies."""
    return state.files() if isinstance(state, Portable) else {}


@dataclass(frozen=True)
class Kit:
    """What all items have in common.

    content: the function and the state, pickled.
    hashes: SHA-256 of each file that the state reads, by its path in a folder of copies.
    key: identifies the kit.
    """

    content: bytes = field(repr=False)
    hashes: dict[str, str]
    key: str

    @classmethod
    def pack(cls, work: Callable[[Any, Any], Any], state: Any) -> Kit:
        """Pickle a function and its state, and hash the files that the state reads."""
        hashes = {name: stored_sha256(path) for name, path in sorted(files_of(state).items())}
        content = pickle.dumps((work, state))
        return cls(content, hashes, hashlib.sha256(content + repr(hashes).encode()).hexdigest())

    def folder(self) -> Path:
        """Name the folder of the copies on this machine."""
        return cache_folder() / "workers" / fingerprint(*self.hashes.items())

    def missing(self) -> list[str]:
        """List the files that this machine has no copy of, or a damaged one."""
        folder = self.folder()
        return [
            name
            for name, digest in self.hashes.items()
            if not (path := folder / name).is_file() or stored_sha256(path) != digest
        ]

    def open(self) -> Callable[[Any], Any]:
        """Make the function of an item."""
        work, state = pickle.loads(self.content)
        return partial(work, state.relocated(self.folder()) if self.hashes else state)


@dataclass(frozen=True)
class MissingKit:
    """A worker has no kit, and did no work; the address is the worker's."""

    address: str


@contextmanager
def watching(watch: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run a function in a thread next to a block, at whose end its event is set."""
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(done,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


# the functions below run in a worker

_kits: OrderedDict[str, Kit] = OrderedDict()
_tasks: dict[str, LoggedResult] = {}
_ended: set[str] = set()
_at_work: list[str] = []
_one_at_a_time = threading.Lock()


def receive(kit: Kit) -> tuple[dict[str, str], list[str]]:
    """Take a kit without its files; returns this worker's versions, and the files that it needs."""
    # a kit is code of the user who runs the command; the command has asked before it sends a
    # recipe's
    os.environ[ALLOW] = "1"
    _kits[kit.key] = kit
    _ended.discard(kit.key)
    _kits.move_to_end(kit.key)
    while len(_kits) > _KEPT:
        key, _ = _kits.popitem(last=False)
        _tasks.pop(key, None)
    return versions(), kit.missing()


def receive_file(kit: str, name: str, content: bytes) -> None:
    """Store a copy of a file of a kit."""
    write_content(_kits[kit].folder() / name, content)


def perform(key: str, item: Any) -> LoggedResult | MissingKit:
    """Work on an item with a kit."""
    address = str(import_module("distributed").get_worker().address)
    # models are not made for several threads
    with _one_at_a_time:
        kit = _kits.get(key)
        if kit is None or (key not in _tasks and kit.missing()):
            return MissingKit(address)
        try:
            _at_work[:] = [key]
            opened = _tasks.get(key) or _tasks.setdefault(key, run_logged(Kit.open, kit))
            return run_logged(opened.result, item, opened.remarks)
        except MemoryError:
            raise SynmtError(
                "out of memory",
                where=f"worker {address}",
                do="Give the workers more memory, and run again",
            ) from None


def cancel(key: str) -> None:
    """Ask the work with a kit to end early."""
    _ended.add(key)


@contextmanager
def ending_with_driver() -> Iterator[threading.Event]:
    """Provide an event for work that takes hours: it is set when the driver asks for an end, or no
    longer waits."""
    worker = import_module("distributed").get_worker()
    item, kit = worker.get_current_task(), _at_work[0]
    stop = threading.Event()

    def watch(done: threading.Event) -> None:
        while kit not in _ended and _is_awaited(worker, item) and not done.wait(_LOOK):
            pass
        stop.set()

    with watching(watch):
        yield stop


def driver_waits() -> bool:
    """Return whether the driver still waits for the item in work, and this worker is not shutting
    down."""
    worker = import_module("distributed").get_worker()
    return _is_awaited(worker, worker.get_current_task())


def _is_awaited(worker: Any, item: str) -> bool:
    task = worker.state.tasks.get(item)
    return task is not None and task.state == "executing" and worker.status.name != "closing"
