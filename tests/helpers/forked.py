"""Processes that fork from one which has loaded torch and the package: they begin in a moment and
end like others."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from places import IMPORTABLE

from synmt.cli import main
from synmt.parallel import processes

_CONTEXT = multiprocessing.get_context("forkserver")
# what commands would load in every process
_COMMANDS = ["stanza.pipeline.core", "synmt.cli.train", "synmt.fast.modules", "synmt.training.grid"]
_COMMANDS += ["synmt.data.summary", "rich.table", "synmt.fast.parser.direct", "numpy.ctypeslib"]
_DASK = ["distributed.cli.dask_scheduler", "distributed.cli.dask_worker"]
_CONTEXT.set_forkserver_preload(["ranks", "killing", "filelock", *_COMMANDS, *_DASK])
_LONGEST = 300


def let_pools_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of pools fork, too: else each of them loads everything again."""
    context = _started()
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: context)
    monkeypatch.setattr(processes, "_prepare", partial(_prepare_worker, dict(os.environ)))


def _prepare_worker(variables: dict[str, str], inherited: object) -> None:
    os.environ.update(variables)
    processes._prepare(inherited)


def _started() -> ForkServerContext:
    with patch.dict(os.environ, PYTHONPATH=IMPORTABLE):
        forkserver.ensure_running()
    return _CONTEXT


class Forked:
    """A process that does some work in the caller's folder, with the caller's variables.

    log: gets what it says; the others are added to its variables.
    """

    def __init__(
        self, work: Callable[..., object], *arguments: object, log: Path, **more: str
    ) -> None:
        where = (os.getcwd(), {**os.environ, **more}, str(log))
        self._process = _started().Process(target=_begin, args=(work, arguments, *where))
        self._process.start()
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return how it has ended: 0, or the number of its signal, negative; None if it still
        runs."""
        return self._process.exitcode

    def wait(self, seconds: float = _LONGEST) -> int | None:
        """Wait until it ends, and tell how."""
        self._process.join(seconds)
        return self.poll()

    def kill(self) -> None:
        """End it at once; its end takes a moment to be seen."""
        self._process.kill()
        self._process.join(_LONGEST)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


def _begin(work, arguments, folder, variables, log):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    with open(log, "ab", buffering=0) as stream:
        for standard in (1, 2):
            os.dup2(stream.fileno(), standard)
    work(*arguments)
    sys.stdout.flush()


class Piped(Forked):
    """The command `synmt` in a process that reads from a pipe and writes to two others.

    work: what the process does in place of the command, with the same arguments.
    """

    def __init__(self, *arguments: object, work: Callable[..., object] | None = None) -> None:
        (given, stdin), (stdout, said), (stderr, errors) = os.pipe(), os.pipe(), os.pipe()
        self.stdin = os.fdopen(stdin, "wb", buffering=0)
        self.stdout, self.stderr = (os.fdopen(end, "rb", buffering=0) for end in (stdout, stderr))
        # connections can be sent to another process, unlike the numbers of open files
        own = [
            Connection(given, writable=False),
            *(Connection(end, readable=False) for end in (said, errors)),
        ]
        super().__init__(
            _run_piped, own, work or run_command, *map(str, arguments), log=Path(os.devnull)
        )
        for connection in own:
            connection.close()

    def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """Write the rest of its input, and read all that it says until it ends."""
        self.stdin.write(given)
        self.stdin.close()
        return self.stdout.read(), self.stderr.read()

    def __enter__(self) -> Piped:
        return self

    def __exit__(self, *error: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.kill()
        self.wait()


def _run_piped(connections, work, *arguments):
    for standard, connection in enumerate(connections):
        os.dup2(connection.fileno(), standard)
        connection.close()
    # not those of the process from which it forks: these may be files
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    work(*arguments)


def run_command(*arguments: str) -> None:
    """Be the command `synmt`, in its own session."""
    os.setsid()
    sys.argv = ["synmt", *arguments]
    main()


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is true."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.02)


def run_together(
    count: int, work: Callable[..., object], *arguments: Any, log: Path
) -> list[int | None]:
    """Run processes that do work(rank, count, *arguments) together; gives how each has ended. Those
    that hang are killed."""
    ranks = [Forked(work, rank, count, *arguments, log=log) for rank in range(count)]
    try:
        return [rank.wait() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
