"""How the command ends: exit codes, Ctrl-C, closed pipes, error messages."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

import typer

from synmt.cli import console
from synmt.errors import SynmtError

INTERRUPTED = 130


def run(app: typer.Typer) -> None:
    """Run the app, then exit: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.unraisablehook = _interrupt_again
    # SIGTERM ends the command as Ctrl-C does: it cleans up and exits with 130
    signal.signal(signal.SIGTERM, _interrupt)
    # a shell makes its background jobs ignore Ctrl-C; keep that
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
        # the reader closed the pipe; without this Python reports an error when it flushes at exit
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
    """Ctrl-C in disguise: typer would turn a KeyboardInterrupt into its own exit code."""


class _PipeClosed(Exception):
    """A closed pipe in disguise, for the same reason."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not during an import: `try: import …` would swallow it or leave a broken module."""
    if not _imports(frame):
        raise KeyboardInterrupt
    # not a threading.Timer: it needs a lock that the interrupted code may hold
    _thread.start_new_thread(_send_later, (number,))


def _send_later(number: int) -> None:
    time.sleep(0.01)
    os.kill(os.getpid(), number)


def _imports(frame: FrameType | None) -> bool:
    """Tell whether a module is being imported, searching from the innermost call out to `run`."""
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _interrupt_again(ignored: Any) -> None:
    """Repeat a Ctrl-C that arrived in a finalizer, where Python drops exceptions."""
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
    if console.debug():
        traceback.print_exc()
    console.show_error(message)
    sys.exit(code)
