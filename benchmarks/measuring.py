"""What several benchmarks measure with: rounds in which systems take turns, and tables of what they took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch

# before torch, as in the command: it chooses how threads wait
import synmt  # noqa: F401
from synmt.reporting.values import Column, Interval, Table, Value, text_column

Times = list[tuple[float, float]]
"""Seconds of each round: on the clock, and of processors."""


def now(device: torch.device) -> float:
    """Return the processor time of this process; with a GPU, which works while the processor waits, the clock."""
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize(device)
    return time.perf_counter()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of a call: on the clock, and of processors in this process and in those that it ended."""
    wall, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    return time.perf_counter() - wall, sum(after[:4]) - sum(before[:4])


def take_turns(systems: Mapping[str, Callable[[], object]], rounds: int, *, warm_up: int = 0) -> dict[str, Times]:
    """Run systems round by round, so that other work on the machine slows all alike.

    warm_up: rounds before that do not count.
    """
    found: dict[str, Times] = {name: [] for name in systems}
    for _ in range(warm_up + rounds):
        for name, work in systems.items():
            found[name].append(timed(work))
    return {name: times[warm_up:] for name, times in found.items()}


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


def median_and_spread(values: Sequence[float]) -> list[Value]:
    """Return the median and the range of what rounds gave; two empty cells of none."""
    return [float(np.median(values)), Interval(min(values), max(values))] if values else [None, None]


def speeds(times: Mapping[str, Times], count: int, unit: str, base_of: Callable[[str], str]) -> Table:
    """Make a table of the medians of speeds and, round by round, of ratios to another system.

    count: what each round processes, in some unit.
    base_of: names the system that one is compared with.
    """
    columns = [text_column("system")]
    for of_what in ("second", "processor second"):
        columns.append(Column(title=f"{unit} for each {of_what}", digits=1))
        columns += [Column(title=f"times as fast, by {of_what}"), Column(title=f"range, by {of_what}")]
    rows: list[list[Value]] = []
    for name, own in times.items():
        row: list[Value] = [name]
        for clock in (0, 1):
            seconds, base = ([one[clock] for one in of_system] for of_system in (own, times[base_of(name)]))
            ratios = [other / second for other, second in zip(base, seconds, strict=True)]
            row += [count / float(np.median(seconds)), *median_and_spread(ratios)]
        rows.append(row)
    return Table(columns=columns, rows=rows)
