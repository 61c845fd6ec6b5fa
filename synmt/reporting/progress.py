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
    say: Callable[[str], None], what: str, total: float | None, unit: str, every: float
) -> Advance:
    """Make the function that takes the work done, and says every few seconds in a line how far a
    job is."""
    began = last = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal last, done
        done += amount
        now = time.monotonic()
        if now - last >= every:
            last = now
            say(f"{what}: {progress_text(done, total, unit, now - began)}")

    return advance


def progress_text(done: float, total: float | None, unit: str, seconds: float) -> str:
    """Say how far a job is after some seconds: `5 of 2,200 lines, 1.0/s, 37 min left`."""
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
    """Write a rough duration: `90 s`, `37 min`, `2 h 5 min`."""
    if seconds <= 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
