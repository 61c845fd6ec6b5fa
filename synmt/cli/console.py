"""What users see: remarks, progress and tables on stderr, data on stdout."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt import __version__
from synmt.analysis.report import TextTable
from synmt.errors import visible
from synmt.evaluation.table_formats import table_as
from synmt.files.writing import reporting_os_errors
from synmt.parallel.worker_log import DropRepeated
from synmt.reporting.progress import Advance, plain_lines, rate_text

if TYPE_CHECKING:
    from rich.console import Console

    from synmt.reporting.formats import Format
    from synmt.reporting.values import Report


_NAME_WIDTH = 20
"""The first column of a table is never made narrower than this."""


@dataclass
class _Settings:
    quiet: bool = False
    debug: bool = False


_settings = _Settings()
_logger = logging.getLogger("synmt")
"""The parent of all loggers of the library. `configure` adds the handlers that show their messages to users."""


class _Visible(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _StderrHandler(logging.Handler):
    """Write messages of the library to stderr: remarks as they are, warnings with `warning:` before them."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        # errors are printed without it, as some occur before any handler is there
        if record.levelno < logging.ERROR and not hasattr(record, "printed"):
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
    shown = _StderrHandler(logging.WARNING if quiet else logging.DEBUG if verbose else logging.INFO)
    shown.addFilter(DropRepeated())
    shown.setFormatter(_Visible())
    _logger.addHandler(shown)
    if log_file:
        with reporting_os_errors(log_file):
            handler = logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace")
        handler.setFormatter(_Visible("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _logger.addHandler(handler)
    _logger.debug("synmt %s: %s", __version__, shlex.join(sys.argv[1:]))


def debug() -> bool:
    """Tell whether errors are shown with their Python traceback."""
    return _settings.debug


def show_error(message: str) -> None:
    """Write the message that ends the command to stderr, and to the log file if there is one."""
    print(f"synmt: {visible(message)}", file=sys.stderr)
    log_error(message.removeprefix("error: "))


def log_error(message: str) -> None:
    """Write an error to the log file, if there is one."""
    if _logger.handlers:
        _logger.error("%s", message)


def remark(text: str) -> None:
    """Write a remark to stderr, unless --quiet."""
    _logger.info("%s", text)


def warn(text: str) -> None:
    """Write a warning to stderr, also with --quiet."""
    _logger.warning("%s", text)


@contextmanager
def written(what: str, path: Path) -> Iterator[None]:
    """Report the file that the block has written, and whether it replaced another one."""
    replaced = path.exists()
    yield
    remark(f"{what}: {path}" + " (replaced)" * replaced)


def table(title: str, columns: list[str], rows: list[list[str]], *, to_stdout: bool = False) -> None:
    """Print a table that fits into the terminal; columns after the first are right-aligned.

    Nothing is cut off: a cell that is too wide continues on the next line.
    """
    if not to_stdout:
        lines = "".join("\n" + "\t".join(row) for row in [columns, *rows])
        _logger.debug("%s%s", title, lines, extra={"printed": True})
    if _settings.quiet and not to_stdout:
        return
    from rich.table import Table

    is_terminal = (sys.stdout if to_stdout else sys.stderr).isatty()
    if is_terminal or not to_stdout:
        title, columns, *rows = visible(title), *([visible(cell) for cell in row] for row in [columns, *rows])
    widths, gap = fit(columns, rows, printer(None, to_stdout=to_stdout).width if is_terminal else None)
    drawn = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold"
    )
    for index, (name, width) in enumerate(zip(columns, widths, strict=True)):
        drawn.add_column(name, width=width, overflow="fold", justify="left" if index == 0 else "right")
    for row in rows:
        drawn.add_row(*row)
    printer(sum(widths) + gap * len(widths), to_stdout=to_stdout).print(drawn)


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
    is_terminal = sys.stdout.isatty()
    width = printer(None, to_stdout=True).width if is_terminal else None
    print(render(reports, kind, width=width, bold=is_terminal), end="")


def print_tables(tables: Iterable[Sequence[list[str]]], remarks: Iterable[str], kind: str = "text") -> None:
    """Print tables, whose first rows have the names of the columns, and remarks, as `print_parts` does."""
    parts = [part for header, *rows in tables for part in (TextTable(header, rows), "")]
    print_parts([*parts, *remarks], kind)


def print_parts(parts: Iterable[str | TextTable], kind: str = "text") -> None:
    """Print lines and tables to stdout as text, tsv, latex or markdown; lines next to a TSV table go to stderr."""
    tables = 0
    for part in parts:
        if isinstance(part, str):
            _print_lines(part, kind)
        elif kind == "text":
            rows = part.shown() if part.shared else [list(row) for row in part.rows]
            table("", list(part.columns), rows, to_stdout=True)
        else:
            drawn = table_as(kind, part.columns, part.rows, shared=part.shared)
            # an empty line ends each table of Markdown; in other formats it is between two tables
            if kind == "markdown":
                show(drawn)
            else:
                show("\n" + drawn if tables else drawn, end="")
            tables += 1


def _print_lines(text: str, kind: str) -> None:
    if kind == "text":
        show(text)
        return
    for line in text.strip("\n").splitlines():
        if kind == "tsv":
            remark(line)
        else:
            show(f"% {line}" if kind == "latex" else f"{line}\n")


def fit(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int | None) -> tuple[list[int], int]:
    """Find the width of each column of a table, and the gap between columns, so that it fits into a terminal.

    Columns after the first become narrower first, but not narrower than their longest word; then the first column does.
    If that is not enough, the table is too wide. A Chinese character is as wide as two letters.

    room: the width of the terminal; None for as wide as necessary.
    """
    from rich.cells import cell_len

    cells = [[column, *(row[index] for row in rows)] for index, column in enumerate(columns)]
    whole = [max(cell_len(line) for cell in column for line in cell.splitlines() or [""]) for column in cells]
    if room is None or sum(whole) + 2 * (len(whole) - 1) <= room:
        return whole, 2
    words = [
        max((cell_len(word) for cell in column for word in cell.replace(" %", "_%").split()), default=1)
        for column in cells
    ]
    names, others = whole[0], words[1:]
    for gap in (2, 1):
        left_for_names = room - sum(others) - gap * len(others)
        if names <= left_for_names:
            return [names, *others], gap
    narrowest = min(names, _NAME_WIDTH)
    return [max(left_for_names, narrowest), *others], 1


def printer(width: int | None, *, to_stdout: bool) -> Console:
    """Make a rich console of a given width in columns; without one, as wide as the terminal."""
    from rich.console import Console

    out = Console(stderr=not to_stdout, width=width, highlight=False, markup=False, emoji=False)
    # rich would exit with 1; command.py exits as a shell expects after a closed pipe
    out.on_broken_pipe = _raise_again
    return out


def _raise_again() -> None:
    raise


@contextmanager
def progress(what: str, total: float | None, unit: str, *, every: float = 5.0) -> Iterator[Advance]:
    """Show the progress of a job: a bar on a terminal, otherwise a plain line every few seconds.

    Yields a function that takes the amount of work done since its last call, in `unit`.
    """
    if _settings.quiet:
        yield lambda amount: None
    elif sys.stderr.isatty():
        with _bar(what, total, unit) as advance:
            yield advance
    else:
        yield plain_lines(remark, what, total, unit, every)


@contextmanager
def _bar(what: str, total: float | None, unit: str) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # texts are shown as they are, and not read as markup
    name, *each = (TextColumn(text, markup=False) for text in ("{task.description}", unit, "{task.fields[rate]}"))
    columns = [name, BarColumn(), MofNCompleteColumn(), *each, TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(what), total=total, rate="")

        def advance(amount: float) -> None:
            bar.advance(task, amount)
            bar.update(task, rate=rate_text(speed) if (speed := bar.tasks[0].speed) else "")

        yield advance
