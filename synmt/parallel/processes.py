"""Processes of this machine that work in parallel, and end when their parent does."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Lock
from pathlib import Path
from typing import Any, TypeVar

from synmt.errors import SynmtError
from synmt.parallel.feeding import feed
from synmt.parallel.relay import Relay, Told, tell
from synmt.parallel.threads import chosen_cores, use_threads

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

_task: Callable[[Any], Any] | None = None


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
) -> Iterator[R]:
    """Yield `work(state, item)` of each item in the order in which they finish; one worker is this process itself.

    At most two items per worker are in memory.

    state: is sent to each worker once.
    where: the folder that errors name.
    fewer: how the user asks for one worker.
    """
    if workers == 1:
        yield from (work(state, item) for item in items)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    # a large state among the arguments of a process would let the next one start only when this one has read it
    states, writer = context.Pipe(duplex=False)
    handing = threading.Thread(target=_hand_out, args=(writer, pickle.dumps(state), workers), daemon=True)
    pool = ProcessPoolExecutor(workers, context, _prepare, (work, states, context.Lock()))
    started = set[BaseProcess]()

    def submit(item: T) -> Future[Told]:
        future = pool.submit(_work, item)
        started.update(set(multiprocessing.active_children()) - others)
        return future

    handing.start()
    try:
        yield from map(Relay().result_of, feed(submit, items, lambda: 2 * workers))
        pool.shutdown()
    except BrokenProcessPool:
        raise _why_broken(started, where, fewer) from None
    finally:
        # after Ctrl-C or an error, the items that are still in work are not needed
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
            child.join()
        pool.shutdown(wait=False, cancel_futures=True)
        states.close()


def _hand_out(writer: Connection, state: bytes, workers: int) -> None:
    # workers that have died read none
    with suppress(OSError), writer:
        for _ in range(workers):
            writer.send_bytes(state)


def _why_broken(processes: Iterable[BaseProcess], where: Path, fewer: str) -> SynmtError:
    for process in processes:
        process.join()
    # a process that was killed has a negative exit code, and one that cannot read its state has 0
    if any(process.exitcode in (0, 1) for process in processes):
        return SynmtError(
            "a worker process could not start, as its message above says",
            where=str(where),
            do="Workers import your script: put what it does under `if __name__ == '__main__':`",
        )
    return SynmtError(
        "a worker process was killed, most likely for lack of memory",
        where=str(where),
        do=f"Run the same command again with fewer processes ({fewer}): what is finished is kept",
    )


def _prepare(work: Callable[[Any, Any], Any], states: Connection, reading: Lock) -> None:
    global _task
    # Ctrl-C reaches every process of the terminal, but only the parent reacts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # each process has a core
    use_threads(1)
    with reading:
        state = states.recv_bytes()
    _task = partial(work, pickle.loads(state))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _work(item: Any) -> Told:
    assert _task is not None
    return tell(_task, item)
