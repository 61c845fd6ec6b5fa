"""What a process of a pool does: it works on items until its parent ends."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.synchronize import Lock
from typing import Any

from synmt.errors import naming_lack_of_memory
from synmt.parallel.threads import use_threads
from synmt.parallel.worker_log import LoggedResult, detach_handlers, run_logged


class _Worker:
    """What a process knows: the work that it does now, and where it reads the next one.

    inherited: what its parent gave to copies of itself.
    """

    states: Connection
    reading: Lock
    number = 0
    task: LoggedResult
    inherited: Any = None


def prepare(states: Connection, reading: Lock, inherited: Any) -> None:
    """Set up this process.

    inherited: None if it is no copy of its parent.
    """
    # Ctrl-C reaches every process of the terminal, but only the parent reacts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # each process has a core
    use_threads(1)
    if inherited is not None:
        _forget_parent()
    _Worker.states, _Worker.reading, _Worker.inherited = states, reading, inherited
    threading.Thread(target=_end_with_parent, daemon=True).start()


def inherited() -> Any:
    """Return what the parent gave to this copy of itself."""
    return _Worker.inherited


def do(number: int, item: Any) -> LoggedResult:
    """Work on an item of the work with this number."""
    while _Worker.number < number:
        _read_work()
    assert _Worker.number == number
    # what led to an error stays here
    with naming_lack_of_memory():
        return run_logged(_Worker.task.result, item, _Worker.task.remarks)


def do_nothing() -> None:
    """Show that this process has started."""


def _forget_parent() -> None:
    """Let go of what a copy has from its parent: handlers of signals and of the log, and
    threads."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    detach_handlers()
    # torch has read the number of threads long ago
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _read_work() -> None:
    with _Worker.reading:
        message = _Worker.states.recv_bytes()
    try:
        read = run_logged(pickle.loads, message)
    except Exception:
        # what cannot be read here cannot be read by the others
        traceback.print_exc()
        os._exit(1)
    _Worker.number, work, state = read.result
    _Worker.task = LoggedResult(partial(work, state), read.remarks)
