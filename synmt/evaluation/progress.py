"""Progress of long scoring and analysis: library code reports it, the command line shows it."""

from __future__ import annotations

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
    """Report a job: the `with` block gets a function, and calls it with the work done since the last call."""
    return _display(what, total, unit)
