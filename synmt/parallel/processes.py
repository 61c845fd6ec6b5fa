"""Processes of this machine that work in parallel, and end when their parent does."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import islice
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from synmt.errors import SynmtError, naming_lack_of_memory
from synmt.parallel.threads import chosen_cores, use_threads
from synmt.parallel.worker_log import LoggedResult, detach_handlers, result_of, run_logged

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_LOOK = 5
"""Seconds until the number of items that may be submitted is computed again: items may take hours,
and workers join."""

_FEWER = (
    "Run the same command again with fewer processes: `--threads 1` or `--workers 1`, in a recipe "
    "`parser.workers=1`"
)

_started: ContextVar[Pool | None] = ContextVar("pool", default=None)


def process_count(items: int) -> int:
    """Compute how many processes should work on a number of items: one for each core, at most."""
    return max(1, min(chosen_cores(), items))


def in_processes(
    work: Callable[[S, T], R],
    state: S,
    items: Iterator[T],
    workers: int,
    *,
    where: Path,
    pool: Pool | None = None,
) -> Iterator[R]:
    """Yield `work(state, item)` of each item in the order in which they finish; one worker is this
    process itself.

    At most two items per worker are in memory.

    state: is sent to each worker once.
    workers: in a block of `started_processes`, all of its processes work instead.
    pool: processes that have started already, which work instead.
    where: the folder that errors name.
    """
    if workers == 1:
        yield from (work(state, item) for item in items)
        return
    assert pool is None or not pool.busy
    existing = pool or _started.get()
    # one whose work waits for its caller, a generator, cannot do another one
    pool = Pool(workers) if existing is None or existing.busy else existing
    try:
        yield from pool.run(work, state, items)
    except BrokenProcessPool:
        raise SynmtError(
            "a worker process was killed, most likely for lack of memory, or could not start",
            where=where,
            allowed="Workers import your script: what it does must be under "
            "`if __name__ == '__main__':`",
            do=_FEWER,
        ) from None
    finally:
        if pool is not existing:
            pool.end()


def can_fork() -> bool:
    """Return whether processes may be forked: a fork would inherit locks of other threads, which
    nobody can release."""
    # the libraries of macOS start threads
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def started_processes(workers: int) -> Iterator[None]:
    """Start processes at once, for all works of this block that need more than one; one worker
    starts none."""
    if workers == 1:
        yield
        return
    pool = Pool(workers)
    before = _started.set(pool)
    try:
        yield
    finally:
        _started.reset(before)
        pool.end()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block; processes that start in it inherit the mask, and
    ignore it from the start."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


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


class Pool:
    """Processes that do one work after the other, as long as none fails.

    busy: whether a work is still running, or has failed.
    inherited: if it is given, the processes are forks of this one and have it, too (`inherited`):
        they start at once and share memory. `can_fork` says when.

    Raises SynmtError if the system starts none.
    """

    def __init__(self, workers: int, *, inherited: Any = None) -> None:
        self._workers = workers
        self._processes = set[BaseProcess]()
        self._others = set(multiprocessing.active_children())
        context = multiprocessing.get_context("spawn" if inherited is None else "fork")
        self._executor = ProcessPoolExecutor(workers, context, _prepare, (inherited,))
        self.busy = True
        try:
            # processes that could not start are reported when they are first needed
            with suppress(BrokenProcessPool):
                for _ in range(workers):
                    self._submit(os.getpid)
        except BaseException as error:
            self.end()
            if not isinstance(error, OSError):
                raise
            raise SynmtError(f"no other process can start ({error.strerror})", do=_FEWER) from None
        self.busy = False

    def run(self, work: Callable[[S, T], R], state: S, items: Iterator[T]) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish."""
        self.busy = True
        with TemporaryDirectory(prefix="synmt-") as folder:
            # a large state in every item would be sent again and again
            task = Path(folder, "task")
            task.write_bytes(pickle.dumps((work, state)))
            submit = partial(self._submit, _do, task)
            yield from map(result_of, feed(submit, items, lambda: 2 * self._workers))
        self.busy = False

    def _submit(self, what: Callable[..., R], *arguments: Any) -> Future[R]:
        with _ctrl_c_later():
            future = self._executor.submit(what, *arguments)
            self._processes.update(set(multiprocessing.active_children()) - self._others)
        return future

    def end(self) -> None:
        """End the processes; after Ctrl-C or an error, the items that are still in work are not
        needed."""
        if not self.busy:
            self._executor.shutdown()
        for child in self._processes:
            child.terminate()
            child.join()
        self._executor.shutdown(wait=False, cancel_futures=True)


# the functions below run in a worker


class _Worker:
    """What a process knows: the work that it does now, the file that it comes from, and what its
    parent gave to copies of itself."""

    file: Path | None = None
    task: LoggedResult
    inherited: Any = None


def inherited() -> Any:
    """Return what the parent gave to this copy of itself."""
    return _Worker.inherited


def _prepare(inherited: Any) -> None:
    # Ctrl-C reaches every process of the terminal, but only the parent reacts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # each process has a core
    use_threads(1)
    if inherited is not None:
        # a copy lets go of its parent's handlers of signals and of the log
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        detach_handlers()
        # torch has read the number of threads long ago
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)
    _Worker.inherited = inherited
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _do(file: Path, item: Any) -> LoggedResult:
    """Work on an item of the work in a file."""
    # what led to an error stays here
    with naming_lack_of_memory():
        if _Worker.file != file:
            _Worker.file, _Worker.task = file, run_logged(pickle.loads, file.read_bytes())
        work, state = _Worker.task.result
        return run_logged(partial(work, state), item, _Worker.task.remarks)
