"""Progress of long work: library code reports it, the command line shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[float], None]
"""Is called with the work done since the last call, in the unit of the job."""

Display = Callable[[str, float | None, str], AbstractContextManager[Advance]]
"""Shows the progress of one job: its name, the total amount of work if known, and the unit."""


@contextmanager
def _hidden(what: str, total: float | None, unit: str) -> Iterator[Advance]:
    yield lambda amount: None


_display: Display = _hidden


def show_progress_with(display: Display) -> None:
    """Show all progress with `display`; without a call of this function none is shown."""
    global _display
    _display = display


def progress(what: str, total: float | None, unit: str) -> AbstractContextManager[Advance]:
    """Report a job: the `with` block gets a function, and calls it with the work done since the
    last call."""
    return _display(what, total, unit)


def plain_lines(
    write: Callable[[str], None], what: str, total: float | None, unit: str, every: float
) -> Advance:
    """Make the function that takes the work done, and writes every few seconds how far a job is."""
    began = last = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal last, done
        done += amount
        now = time.monotonic()
        if now - last >= every:
            last = now
            write(f"{what}: {progress_text(done, total, unit, now - began)}")

    return advance


def progress_text(done: float, total: float | None, unit: str, seconds: float) -> str:
    """Write how far a job is after some seconds: `5 of 2,200 lines, 1.0/s, 36 min 35 s left`."""
    rate = done / seconds
    of_all = f" of {total:,.0f}" if total else ""
    text = f"{done:,.0f}{of_all} {unit}, {rate_text(rate)}"
    if total and _FEW <= done < total:
        text += f", {duration((total - done) / rate)} left"
    return text


_FEW = 5
"""Amount of work to be done before the remaining time is estimated: the first items are slow."""


def rate_text(each_second: float) -> str:
    """Write the amount of work that is done in a second; a slow rate has a decimal."""
    return f"{each_second:,.1f}/s" if each_second < 9.95 else f"{each_second:,.0f}/s"


def duration(seconds: float) -> str:
    """Write a duration: `9 s`, `19 min 09 s`, `2 h 05 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
