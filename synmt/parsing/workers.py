"""Processes that parse shards in parallel, and end when their parent does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path

from synmt.errors import SynmtError
from synmt.parsing.parser import Parser
from synmt.parsing.shards import Manifest, Shard, write_shard

_parser: Parser | None = None


def write_shards(parser: Parser, shards: Iterator[Shard], folder: Path, workers: int) -> Iterator[Manifest]:
    """Parse shards and yield their manifests in the order in which they finish; one worker is this process itself.

    At most two shards per worker are in memory.
    """
    if workers == 1:
        yield from (write_shard(parser, shard, folder) for shard in shards)
        return
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _prepare, (parser,))
    try:
        yield from _feed(pool, shards, folder, 2 * workers)
        pool.shutdown()
    except BrokenProcessPool:
        raise SynmtError(
            "a worker process was killed, most likely for lack of memory",
            where=str(folder),
            do="Run the same command again with fewer workers (--workers 1): finished shards are kept",
        ) from None
    finally:
        # after Ctrl-C or an error, the shards that are still being parsed are not needed
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
            child.join()
        pool.shutdown(wait=False, cancel_futures=True)


def _feed(pool: ProcessPoolExecutor, shards: Iterator[Shard], folder: Path, limit: int) -> Iterator[Manifest]:
    running: set[Future[Manifest]] = set()
    while True:
        running |= {pool.submit(_work, shard, folder) for shard in islice(shards, limit - len(running))}
        if not running:
            return
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in finished)


def _prepare(parser: Parser) -> None:
    global _parser
    _parser = parser
    # Ctrl-C reaches every process of the terminal, but only the parent reacts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _work(shard: Shard, folder: Path) -> Manifest:
    assert _parser is not None
    return write_shard(_parser, shard, folder)
