"""A real Dask cluster for tests: a scheduler and workers in separate processes, over TCP; and a
parser for them."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from forked import Forked, wait_for

with contextlib.suppress(ImportError):
    from distributed import get_worker

from synmt.syntax.parse import flat_parse

HERE = Path(__file__).parent
_QUIET = ("--no-dashboard", "--host", "127.0.0.1")


class LocalCluster:
    """Processes on the loopback address; those that a test kills are started again by
    `complete`."""

    def __init__(self, folder: Path, preload: str = "slow_worker.py") -> None:
        self.folder, self.preload, self.workers = folder, preload, []
        self.scheduler = None

    def complete(self, workers: int = 2) -> str:
        """Start what is missing of the scheduler and this number of workers; gives the path of the
        scheduler file."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            path = self.folder / f"scheduler-{time.monotonic_ns()}.json"
            self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(path))
            wait_for(path.exists)
            self.file = str(path)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < workers:
            self.join()
        return self.file

    def join(self, preload: str = "", *options: str, nanny: bool = False) -> Forked:
        """Start another worker, which has an empty cache; a nanny starts it again when it dies."""
        code = str(HERE / (preload or self.preload))
        where = ("--scheduler-file", self.file, "--local-directory", str(self.folder))
        how = ("--nthreads", "1", "--preload", code, "--nanny" if nanny else "--no-nanny")
        self.workers.append(self._start("worker", *how, *where, *options))
        return self.workers[-1]

    def _start(self, kind: str, *options: str) -> Forked:
        own = {"SYNMT_CACHE": str(self.folder / "caches")}
        return Forked(
            _serve, kind, [*_QUIET, *options], self.folder, log=self.folder / "log", **own
        )

    def stop(self) -> None:
        """Kill all processes."""
        for process in filter(None, (self.scheduler, *self.workers)):
            process.kill()
        self.workers.clear()


def _serve(kind, options, folder):
    os.chdir(folder)
    # a nanny starts its workers in a moment, too
    import_module("dask.config").set({"distributed.worker.multiprocessing-method": "fork"})
    import_module(f"distributed.cli.dask_{kind}").main(options)


@dataclass(frozen=True)
class FiledParser:
    """A parser with a file as its model, which writes down the lines that it parses."""

    model: Path
    log: Path
    slow: float = 0.0
    fingerprint = "000000filed0"

    @property
    def identity(self):
        return {"backend": "filed"}

    def processes(self):
        return 1

    def files(self):
        return {"models/one": self.model}

    def relocated(self, folder):
        logging.getLogger("synmt.tests").warning("a copy of the parser is loaded")
        return replace(self, model=folder / "models" / "one")

    def parse(self, lines, *, on_failure=None):
        assert self.model.read_text() == "a model"
        if self.slow:
            time.sleep(self.slow)
            logging.getLogger("synmt.tests").warning("the parser that is filed is slow")
        with open(self.log, "a") as log:
            log.writelines(f"{self.model.parent.name} {line}\n" for line in lines)
        if "out of memory" in lines:
            raise MemoryError
        return [flat_parse(line) for line in lines]


def worker_of(state: None, item: int) -> str:
    """Name the worker that does this, a moment later; the one that does item 13 dies."""
    time.sleep(0.05)
    if item == 13:
        os._exit(1)
    return get_worker().address
