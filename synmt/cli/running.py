"""How the command ends: exit codes, Ctrl-C, a closed pipe, errors as sentences."""

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
    if console.debug():
        traceback.print_exc()
    print(f"synmt: {message}", file=sys.stderr)
    sys.exit(code)
