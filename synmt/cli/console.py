"""What users see: remarks, progress and tables on stderr, data on stdout."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.files import reporting_os_errors

if TYPE_CHECKING:
    from rich.console import Console


@dataclass
class _Settings:
    quiet: bool = False
    debug: bool = False


_settings = _Settings()
_logger = logging.getLogger("synmt")
"""Library code logs below this name; what it says reaches users through the handlers that `configure` adds."""


class _OnStderr(logging.Handler):
    """Write messages of the library to stderr: warnings with a word in front, remarks as they are."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        print(f"warning: {text}" if record.levelno >= logging.WARNING else text, file=sys.stderr, flush=True)


def configure(*, quiet: bool = False, verbose: bool = False, debug: bool = False, log_file: Path | None = None) -> None:
    """Apply the options that come before the subcommand.

    quiet: only warnings and errors; verbose: details too.
    log_file: receives everything, with the time of each message.
    """
    _settings.quiet, _settings.debug = quiet, debug
    for handler in list(_logger.handlers):
        _logger.removeHandler(handler)
        handler.close()
    _logger.setLevel(logging.DEBUG if verbose or log_file else logging.INFO)
    shown = _OnStderr(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    _logger.addHandler(shown)
    if log_file:
        with reporting_os_errors(log_file):
            written_to = logging.FileHandler(log_file, encoding="utf-8")
        written_to.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _logger.addHandler(written_to)


def debug() -> bool:
    """Tell whether errors are shown with their Python traceback."""
    return _settings.debug


def remark(text: str) -> None:
    """Write a remark to stderr, unless --quiet."""
    _logger.info("%s", text)


def warn(text: str) -> None:
    """Write a warning to stderr, also with --quiet."""
    _logger.warning("%s", text)


@contextmanager
def written(what: str, path: Path) -> Iterator[None]:
    """Say, once the block has written a file, where it is and whether another one was there."""
    replaced = path.exists()
    yield
    remark(f"{what}: {path}" + " (replaced)" * replaced)


def table(title: str, columns: list[str], rows: list[list[str]], *, to_stdout: bool = False) -> None:
    """Print a table; columns after the first are right-aligned."""
    if _settings.quiet and not to_stdout:
        return
    from rich.table import Table

    # rich takes 80 columns for a pipe; a table that is cut there is no data
    wide = None if (sys.stdout if to_stdout else sys.stderr).isatty() else 200
    shown = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        shown.add_column(name, justify="left" if index == 0 else "right")
    for row in rows:
        shown.add_row(*row)
    printer(wide, to_stdout=to_stdout).print(shown)


def printer(width: int | None, *, to_stdout: bool) -> Console:
    """Make what prints tables, so many columns wide, or as wide as the terminal."""
    from rich.console import Console

    out = Console(stderr=not to_stdout, width=width, highlight=False, markup=False, emoji=False)
    # rich would leave with 1 by itself; `run` knows what a closed pipe is
    out.on_broken_pipe = _raise_again
    return out


def _raise_again() -> None:
    raise


Advance = Callable[[float], None]


@contextmanager
def progress(what: str, total: float | None, unit: str, *, every: float = 5.0) -> Iterator[Advance]:
    """Show how far a job is: a bar on a terminal, else a plain line every few seconds.

    Gives a function that takes what has been done since its last call, in `unit`.
    """
    if _settings.quiet:
        yield lambda amount: None
    elif sys.stderr.isatty():
        with _bar(what, total, unit) as advance:
            yield advance
    else:
        yield _plain_lines(what, total, unit, every)


@contextmanager
def _bar(what: str, total: float | None, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def advance(amount: float) -> None:
            bar.advance(task, amount)
            speed = bar.tasks[0].speed
            bar.update(task, rate=_rate(speed) if speed else "")

        yield advance


def _plain_lines(what: str, total: float | None, unit: str, every: float) -> Advance:
    began = last = time.monotonic()
    done = 0.0

    def advance(amount: float) -> None:
        nonlocal last, done
        done += amount
        now = time.monotonic()
        if now - last < every:
            return
        last = now
        rate = done / (now - began)
        left = f", {_duration((total - done) / rate)} left" if total and _FEW <= done < total else ""
        of = f" of {total:,.0f}" if total else ""
        remark(f"{what}: {done:,.0f}{of} {unit}, {_rate(rate)}{left}")

    return advance


_FEW = 5
"""So much must have been done before the time that is left is said: the first of anything is slow."""


def _rate(each_second: float) -> str:
    return f"{each_second:,.1f}/s" if each_second < 9.95 else f"{each_second:,.0f}/s"


def _duration(seconds: float) -> str:
    if seconds <= 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"
