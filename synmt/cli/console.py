"""What users see: remarks, progress and tables on stderr, data on stdout."""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from synmt import __version__
from synmt.errors import visible
from synmt.files.writing import reporting_os_errors
from synmt.reporting.progress import Advance, plain_lines

if TYPE_CHECKING:
    from synmt.reporting.formats import Format
    from synmt.reporting.values import Report, Table


_settings = {"debug": False, "quiet": False}
_logger = logging.getLogger("synmt")
"""The parent of all loggers of the library. `configure` adds the handlers that show their messages
to users."""


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _Remark(_Visible):
    """A remark as it is, and a warning with `warning:` before it."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return f"warning: {text}" if record.levelno >= logging.WARNING else text


def configure(
    *, quiet: bool = False, verbose: bool = False, debug: bool = False, log_file: Path | None = None
) -> None:
    """Apply the options that come before the subcommand.

    quiet: only warnings and errors; verbose: details too.
    log_file: receives everything, with the time of each message.
    """
    _settings.update(debug=debug, quiet=quiet)
    for handler in list(_logger.handlers):
        _logger.removeHandler(handler)
        handler.close()
    _logger.setLevel(logging.DEBUG if verbose or log_file else logging.INFO)
    shown = logging.StreamHandler(sys.stderr)
    shown.setLevel(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    # errors are printed without it, as some occur before any handler is there
    shown.addFilter(lambda record: record.levelno < logging.ERROR)
    shown.setFormatter(_Remark())
    _logger.addHandler(shown)
    if log_file:
        with reporting_os_errors(log_file):
            handler = logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace")
        handler.setFormatter(_Visible("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _logger.addHandler(handler)
    _logger.debug("synmt %s: %s", __version__, shlex.join(sys.argv[1:]))


def debug() -> bool:
    """Return whether errors are shown with their Python traceback."""
    return _settings["debug"]


def show_error(message: str) -> None:
    """Write the message that ends the command to stderr, and to the log file if there is one."""
    print(f"synmt: {visible(message)}", file=sys.stderr)
    if _logger.handlers:
        _logger.error("%s", message.removeprefix("error: "))


def remark(text: str) -> None:
    """Write a remark to stderr, unless --quiet."""
    _logger.info("%s", text)


def detail(text: str) -> None:
    """Write a detail to stderr, with --verbose."""
    _logger.debug("%s", text)


def warn(text: str) -> None:
    """Write a warning to stderr, also with --quiet."""
    _logger.warning("%s", text)


@contextmanager
def written(what: str, path: Path) -> Iterator[None]:
    """Report the file that the block has written."""
    yield
    remark(f"{what}: {path}")


def show_aside(table: Table) -> None:
    """Print a table to stderr, unless --quiet."""
    from synmt.reporting.text import as_text

    remark(as_text([table], width=_width(sys.stderr)))


def show(text: str, end: str = "\n") -> None:
    """Print text to stdout: as it is, but a terminal gets no control characters."""
    print(visible(text) if sys.stdout.isatty() else text, end=end)


def print_json(values: dict[str, Any]) -> None:
    """Print values to stdout as one object of JSON."""
    from synmt.arrays import json_text

    print(json_text(values, ensure_ascii=False, indent=2))


def show_reports(reports: Mapping[str, Report], kind: Format = "text") -> None:
    """Print reports, given by name, to stdout; what TSV has no place for goes to stderr."""
    from synmt.reporting.formats import remarks, render

    if kind == "tsv":
        for line in remarks(reports):
            remark(line)
    width = _width(sys.stdout)
    text = render(reports, kind, width=width, bold=width is not None)
    if kind == "text":
        # it is safe for a terminal, and may be bold
        print(text, end="")
    else:
        show(text, end="")


def _width(stream: TextIO) -> int | None:
    """Return the number of columns of a terminal; None for a file or a pipe."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


@contextmanager
def progress(what: str, total: float | None, unit: str, *, every: float = 5.0) -> Iterator[Advance]:
    """Show the progress of a job: a bar on a terminal, otherwise a plain line every few seconds.

    Yields a function that takes the amount of work done since its last call, in `unit`.
    """
    if not sys.stderr.isatty():
        yield plain_lines(remark, what, total, unit, every)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=_settings["quiet"]) as bar:
        # the name of a file may look like markup
        task = bar.add_task(escape(visible(f"{what} ({unit})")), total=total)
        yield lambda amount: bar.advance(task, amount)
