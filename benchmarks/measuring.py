"""What benchmarks measure and show with: rounds in which systems take turns, and tables of rows."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

# before torch, as in the command: it chooses how threads wait
import synmt  # noqa: F401
from synmt.reporting.values import Column, Interval, Table, Value

if TYPE_CHECKING:
    from torch import device as Device

Row = dict[str, Value]
"""The values of a row by the titles of their columns."""
Times = list[tuple[float, float]]
"""Seconds of each round: on the clock, and of processors."""
NUMBERS = Column(title="")
"""A column of numbers with two decimals, whole ones without."""


def table(
    rows: Sequence[Row],
    *notes: str,
    forms: Mapping[str, Column] | None = None,
    others: Column = NUMBERS,
) -> Table:
    """Make a table of rows without empty columns; columns of nothing but text are words.

    forms: how columns are written, by what their titles begin with, up to a comma.
    others: how all others are written.
    """
    columns, titles = list[Column](), list(dict.fromkeys(title for row in rows for title in row))
    for title in titles:
        form = (forms or {}).get(title.partition(",")[0], others)
        values = [row[title] for row in rows if row.get(title) is not None]
        words = all(isinstance(value, str) for value in values)
        columns.append(replace(form, title=title, kind="text" if words else form.kind))
    cells = [[row.get(title) for title in titles] for row in rows]
    return Table(columns=columns, rows=cells, notes=notes).without_empty_columns()


def arguments(doc: str | None, *files: str, **options: Any) -> argparse.Namespace:
    """Read a command line that has these options.

    doc: its help.
    files: names of arguments, each one or more files.
    options: the default of each option, which also has its type; a type alone if the option has to
        be given.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in files:
        parser.add_argument(name, nargs="+", type=Path)
    for name, default in options.items():
        settings: dict[str, Any] = {"required": isinstance(default, type)}
        if isinstance(default, bool):
            settings |= {"action": "store_true"}
        elif settings["required"]:
            settings |= {"type": default}
        else:
            several = isinstance(default, list)
            settings |= (
                {"nargs": "+", "type": type(default[0])} if several else {"type": type(default)}
            )
            settings |= {"default": default, "help": f"default: {default}"}
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    return parser.parse_args()


def now(device: Device) -> float:
    """Return the processor time of this process; with a GPU, which works while the processor waits,
    the clock."""
    if device.type == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize(device)
    return time.perf_counter()


def take_turns(systems: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Run systems round by round, so that other work on the machine slows all alike; one more round
    warms up."""
    found: dict[str, Times] = {name: [] for name in systems}
    for _ in range(1 + rounds):
        for name, work in systems.items():
            wall, before = time.perf_counter(), os.times()
            work()
            # of processes that have ended, too
            used = sum(os.times()[:4]) - sum(before[:4])
            found[name].append((time.perf_counter() - wall, used))
    return {name: times for name, (_, *times) in found.items()}


def spread(what: str, values: Sequence[float]) -> Row:
    """Return the median and the range of what rounds gave."""
    return {what: float(np.median(values)), f"{what}, range": Interval(min(values), max(values))}


def speeds(times: Mapping[str, Times], count: int, base_of: Callable[[str], str]) -> Table:
    """Make a table of the medians of speeds and, round by round, of ratios to another system.

    count: the sentences of each round.
    base_of: names the system that one is compared with.
    """
    rows: list[Row] = []
    for name, of_system in times.items():
        rows.append({"system": name})
        for clock, second in enumerate(("second", "processor second")):
            seconds, base = (
                [round_times[clock] for round_times in rounds]
                for rounds in (of_system, times[base_of(name)])
            )
            ratios = np.divide(base, seconds).tolist()
            rows[-1] |= {f"sentences for each {second}": count / float(np.median(seconds))}
            rows[-1] |= spread(f"ratio by {second}", ratios)
    return table(rows)
