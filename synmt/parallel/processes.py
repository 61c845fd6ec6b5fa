"""Processes of this machine that work in parallel, and end when their parent does."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Lock
from pathlib import Path
from typing import Any, TypeVar

from synmt.errors import SynmtError
from synmt.parallel.feeding import feed
from synmt.parallel.relay import Relay, Told, only_tell, tell
from synmt.parallel.threads import chosen_cores, use_threads

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_started: ContextVar[_Pool | None] = ContextVar("pool", default=None)


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
    fewer: str = "`--threads 1`",
    keeps: bool = True,
) -> Iterator[R]:
    """Yield `work(state, item)` of each item in the order in which they finish; one worker is this process itself.

    At most two items per worker are in memory.

    state: is sent to each worker once.
    workers: in a block of `started_processes`, all of its processes work instead.
    where: the folder that errors name.
    fewer: how the user asks for one worker.
    keeps: whether the same command goes on from what is finished, and does not start from the beginning.
    """
    if workers == 1:
        yield from (work(state, item) for item in items)
        return
    pool = _started.get() or _Pool(workers)
    try:
        yield from pool.run(work, state, items)
    except BrokenProcessPool:
        raise pool.why_broken(where, fewer, keeps=keeps) from None
    finally:
        if pool is not _started.get():
            pool.end()


def can_fork() -> bool:
    """Tell whether processes may be copies of this one: nobody would release there what other threads have locked."""
    # the libraries of macOS have threads of their own
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def started_processes(workers: int, *, forked: bool = False) -> Iterator[None]:
    """Start processes at once, for all works of this block that need more than one; one worker starts none.

    forked: they are copies of this process, start in no time and share its memory; `can_fork` says when.
    """
    if workers == 1:
        yield
        return
    pool = _Pool(workers, "fork" if forked else "spawn")
    before = _started.set(pool)
    try:
        yield
    finally:
        _started.reset(before)
        pool.end()


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block; processes that start in it are deaf to it from their first moment on."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    seen: list[int] = []
    # the mask is for the processes, which inherit it; here, another thread may get the signal
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if seen:
            signal.raise_signal(signal.SIGINT)


class _Pool:
    """Processes that do one work after the other, as long as none fails."""

    def __init__(self, workers: int, start: str = "spawn") -> None:
        self._workers = workers
        self._works = 0
        self._processes = set[BaseProcess]()
        self._others = set(multiprocessing.active_children())
        context = multiprocessing.get_context(start)
        # a large state among the arguments of a process would let the next one start only when this one has read it
        self._states, self._writer = context.Pipe(duplex=False)
        self._writing = threading.Lock()
        self._executor = ProcessPoolExecutor(workers, context, _prepare, (self._states, context.Lock(), start))
        self._busy = True
        try:
            # those that cannot start are told of when they are needed
            with suppress(BrokenProcessPool):
                for _ in range(workers):
                    self._submit(_nothing)
        except KeyboardInterrupt:
            self.end()
            raise
        self._busy = False

    def run(self, work: Callable[[S, T], R], state: S, items: Iterator[T]) -> Iterator[R]:
        """Yield `work(state, item)` of each item in the order in which they finish."""
        self._works += 1
        message = pickle.dumps((self._works, work, state))
        threading.Thread(target=self._hand_out, args=(message,), daemon=True).start()
        submit = partial(self._submit, _work, self._works)
        self._busy = True
        yield from map(Relay().result_of, feed(submit, items, lambda: 2 * self._workers))
        self._busy = False

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
        """End the processes; after Ctrl-C or an error, the items that are still in work are not needed."""
        if not self._busy:
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
        # its thread waits for the processes, too: before it ends, one that it has waited for may have no exit code here
        self._executor.shutdown()
        # a process that was killed has a negative exit code, and one whose start failed has 0 or 1
        if any(process.exitcode in (0, 1) for process in self._processes):
            return SynmtError(
                "a worker process could not start, as its message above says",
                where=str(where),
                do="Workers import your script: put what it does under `if __name__ == '__main__':`",
            )
        return SynmtError(
            "a worker process was killed, most likely for lack of memory",
            where=str(where),
            do=f"Run the same command again with fewer processes ({fewer})" + ": what is finished is kept" * keeps,
        )


class _Worker:
    """What a process knows: the work that it does now, and where it reads the next one."""

    states: Connection
    reading: Lock
    number = 0
    task: Told


def _prepare(states: Connection, reading: Lock, start: str) -> None:
    # Ctrl-C reaches every process of the terminal, but only the parent reacts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # each process has a core
    use_threads(1)
    if start == "fork":
        _forget_parent()
    _Worker.states, _Worker.reading = states, reading
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _forget_parent() -> None:
    """Let go of what a copy has from its parent: handlers of signals and of the log, threads, processes."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    only_tell()
    _started.set(None)
    # torch has read the number of threads long ago
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _nothing() -> None:
    pass


def _work(number: int, item: Any) -> Told:
    while _Worker.number < number:
        _read_work()
    return tell(_Worker.task.result, item, _Worker.task.remarks)


def _read_work() -> None:
    with _Worker.reading:
        message = _Worker.states.recv_bytes()
    try:
        read = tell(pickle.loads, message)
    except Exception:
        # what cannot be read here cannot be read by the others
        traceback.print_exc()
        os._exit(1)
    _Worker.number, work, state = read.result
    _Worker.task = Told(partial(work, state), read.remarks)
