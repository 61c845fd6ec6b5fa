"""What several benchmarks measure with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# before torch, as in the command: it chooses how threads wait
import synmt  # noqa: F401


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of a call: on the clock, and of processors in this process and in those that it ended."""
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep the machine busy with other processes while a block runs."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
