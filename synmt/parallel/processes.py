"""Processes of this machine that work in parallel, and end when their parent does."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from synmt.errors import SynmtError
from synmt.parallel.feeding import feed
from synmt.parallel.threads import chosen_cores
from synmt.parallel.worker import do, do_nothing, prepare
from synmt.parallel.worker_log import Relay

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

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
    fewer: str = "`--threads 1`",
    keeps: bool = True,
) -> Iterator[R]:
    """Yield `work(state, item)` of each item in the order in which they finish; one worker is this
    process itself.

    At most two items per worker are in memory.

    state: is sent to each worker once.
    workers: in a block of `started_processes`, all of its processes work instead.
    pool: processes that have started already, which work instead.
    where: the folder that errors name.
    fewer: how the user asks for one worker.
    keeps: whether the same command goes on from what is finished, and does not start from the
        beginning.
    """
    if workers == 1:
        yield from (work(state, item) for item in items)
        return
    assert pool is None or not pool.busy
    given = pool or _started.get()
    # one whose work waits for its caller, a generator, cannot do another one
    try:
        pool = Pool(workers) if given is None or given.busy else given
    except SynmtError as error:
        raise error.with_(
            where=str(where), do=f"Run the same command again with fewer processes ({fewer})"
        ) from None
    try:
        yield from pool.run(work, state, items)
    except BrokenProcessPool:
        raise pool.why_broken(where, fewer, keeps=keeps) from None
    finally:
        if pool is not given:
            pool.end()


def can_fork() -> bool:
    """Tell whether processes may be forked: a fork would inherit locks of other threads, which
    nobody can release."""
    # the libraries of macOS have threads of their own
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
    """Delay Ctrl-C until the end of the block; processes that start in it ignore it from the
    start."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is None
    ):
        yield
        return
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    # the mask is for the processes, which inherit it; here, another thread may get the signal.
    # Windows has no masks
    change_mask = getattr(signal, "pthread_sigmask", None)
    mask = change_mask and change_mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if change_mask:
            change_mask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if seen:
            signal.raise_signal(signal.SIGINT)


class Pool:
    """Processes that do one work after the other, as long as none fails.

    busy: whether a work is still running, or has failed.
    inherited: if it is given, the processes are forks of this one and have it, too
        (`synmt.parallel.worker.inherited`): they start at once and share memory. `can_fork` says
        when.

    Raises SynmtError if the system starts none.
    """

    def __init__(self, workers: int, *, inherited: Any = None) -> None:
        self._workers = workers
        self._works = 0
        self._processes = set[BaseProcess]()
        self._others = set(multiprocessing.active_children())
        context = multiprocessing.get_context("spawn" if inherited is None else "fork")
        # if a large state were an argument of a process, the next one would start only after this
        # one has read it
        self._states, self._writer = context.Pipe(duplex=False)
        self._writing = threading.Lock()
        self._executor = ProcessPoolExecutor(
            workers, context, prepare, (self._states, context.Lock(), inherited)
        )
        self.busy = True
        try:
            # processes that could not start are reported when they are first needed
            with suppress(BrokenProcessPool):
                for _ in range(workers):
                    self._submit(do_nothing)
        except BaseException as error:
            self.end()
            if not isinstance(error, OSError):
                raise
            raise SynmtError(
                f"no other process can start ({error.strerror})", do="Use fewer processes"
            ) from None
        self.busy = False

    def run(self, work: Callable[[S, T], R], state: S, items: Iterator[T]) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish."""
        self._works += 1
        message = pickle.dumps((self._works, work, state))
        threading.Thread(target=self._hand_out, args=(message,), daemon=True).start()
        submit = partial(self._submit, do, self._works)
        self.busy = True
        yield from map(Relay().result_of, feed(submit, items, lambda: 2 * self._workers))
        self.busy = False

    def _submit(self, what: Callable[..., R], *arguments: Any) -> Future[R]:
        with _ctrl_c_later():
            future = self._executor.submit(what, *arguments)
            self._processes.update(set(multiprocessing.active_children()) - self._others)
        return future

    def _hand_out(self, message: bytes) -> None:
        # workers that have died read none
        with suppress(OSError), self._writing:
            for _ in range(self._workers):
                self._writer.send_bytes(message)

    def end(self) -> None:
        """End the processes; after Ctrl-C or an error, the items that are still in work are not
        needed."""
        if not self.busy:
            self._executor.shutdown()
        for child in self._processes:
            child.terminate()
            child.join()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._states.close()
        with self._writing:
            self._writer.close()

    def why_broken(self, where: Path, fewer: str, *, keeps: bool) -> SynmtError:
        """Tell why processes have ended, and what to do.

        where, fewer, keeps: as for `in_processes`.
        """
        # its thread waits for the processes, too: before it ends, one that it has waited for may
        # have no exit code here
        self._executor.shutdown()
        # a process that was killed has a negative exit code, and one whose start failed has 0 or 1
        if any(process.exitcode in (0, 1) for process in self._processes):
            return SynmtError(
                "a worker process could not start; see its message above",
                where=str(where),
                do="Workers import your script: put what it does under `if __name__ == "
                "'__main__':`",
            )
        return SynmtError(
            "a worker process was killed, most likely for lack of memory",
            where=str(where),
            do=f"Run the same command again with fewer processes ({fewer})"
            + ": what is finished is kept" * keeps,
        )
