"""What people see: remarks, progress and tables on stderr, data on stdout, errors as sentences."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from synmt.errors import SynmtError

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130


@dataclass
class _Settings:
    quiet: bool = False
    debug: bool = False


_settings = _Settings()


def configure(*, quiet: bool, debug: bool) -> None:
    """Set what the options before the subcommand ask for."""
    _settings.quiet = _settings.quiet or quiet
    _settings.debug = _settings.debug or debug


def run(app: typer.Typer) -> None:
    """Run the app and leave with 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.unraisablehook = _interrupt_again
    # whoever asks it to end gets what Ctrl-C gets: everything put away, and 130
    signal.signal(signal.SIGTERM, _interrupt)
    # a shell lets what it runs in the background ignore Ctrl-C
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        code = _guarded(app)(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except SynmtError as error:
        _leave(error.exit_code, f"error: {error}")
    except (_Interrupted, KeyboardInterrupt, typer.Abort):
        _leave(INTERRUPTED, "interrupted")
    except (_PipeClosed, BrokenPipeError):
        # the reader has seen enough; keep Python from complaining when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        _leave(1, f"error: {error.filename or 'output'}: {error.strerror or error}.")
    except MemoryError:
        _leave(1, "error: out of memory. Lower the batch size.")
    except _ClickException as error:
        error.show()  # type: ignore[attr-defined]
        sys.exit(error.exit_code)  # type: ignore[attr-defined]


# some versions of typer bring their own copy of click
_ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


class _Interrupted(Exception):
    """Ctrl-C, so that typer does not see it and choose an exit code of its own."""


class _PipeClosed(Exception):
    """A closed pipe, likewise."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not inside an import: libraries try imports, and would swallow it or break."""
    if not _imports(frame):
        raise KeyboardInterrupt
    # a Timer would want a lock that whoever was interrupted may hold
    _thread.start_new_thread(_send_later, (number,))


def _send_later(number: int) -> None:
    time.sleep(0.01)
    os.kill(os.getpid(), number)


def _imports(frame: FrameType | None) -> bool:
    """Tell whether a module is just being imported, seen from the innermost call out to `run`."""
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _interrupt_again(ignored: Any) -> None:
    """Repeat a Ctrl-C that came while Python was in a finalizer, where exceptions are dropped."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


def _guarded(app: typer.Typer) -> Callable[..., Any]:
    command = typer.main.get_command(app)
    invoke = command.invoke

    def guarded(context: Any) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt:
            raise _Interrupted from None
        except BrokenPipeError:
            raise _PipeClosed from None

    command.invoke = guarded  # type: ignore[method-assign]
    return command


def _leave(code: int, message: str) -> None:
    if _settings.debug:
        traceback.print_exc()
    print(f"synmt: {message}", file=sys.stderr)
    sys.exit(code)


def remark(text: str) -> None:
    """Say something on stderr, unless --quiet."""
    if not _settings.quiet:
        print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Say on stderr what may be wrong, also with --quiet."""
    print(f"warning: {text}", file=sys.stderr, flush=True)


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
