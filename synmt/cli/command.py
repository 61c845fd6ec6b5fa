"""What every command shares: its arguments, how it starts and ends: exit codes, Ctrl-C, closed
pipes, errors."""

from __future__ import annotations

import _thread
import errno
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape, glob
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from synmt.cli import console
from synmt.errors import (
    OutOfMemory,
    SynmtError,
    given_value,
    naming_lack_of_memory,
    plain_message,
    visible,
)
from synmt.files.writing import discard_unwritten, open_streams
from synmt.options import Option

INTERRUPTED = 130
_PIPE_CLOSED = 128 + 13  # SIGPIPE, which Windows lacks


def complete_recipe(incomplete: str) -> list[str]:
    """List what a shell may complete: files in YAML, then the names of shipped recipes, also
    without their folder."""
    from synmt.recipe.catalogue import shipped_recipes

    files = sorted(
        path for ending in ("yaml", "yml") for path in glob(f"{escape(incomplete)}*.{ending}")
    )
    names = (
        name if name.startswith(incomplete) else name.rpartition("/")[2]
        for name in shipped_recipes()
    )
    return [*files, *(name for name in names if name.startswith(incomplete))]


WHICH_RECIPE = (
    "A file, or the name of a shipped recipe, such as nc11-pascal. All keys: synmt train --keys."
)
Data = Annotated[Path, Option("Folder of trees and prepared corpora.", metavar="FOLDER")]
DryRun = Annotated[
    bool, Option("List the steps and stop: which are done, and the size of the rest.")
]
Device = Annotated[str, Option("Device: auto, cpu, cuda, cuda:1 …, mps")]

PARSERS = "auto|compact|official|FOLDER"
"""The values of `--parser`, for the help pages."""
WEIGHTS = "final|best|last|average"
"""The values of `--checkpoint`, for the help pages."""

Cluster = Annotated[
    str | None,
    Option(
        "Let a Dask cluster do the work: tcp://HOST:PORT, a scheduler file, or slurm (`synmt "
        "--docs scale`).",
        metavar="ADDRESS",
        variable="SYNMT_CLUSTER",
    ),
]


@contextmanager
def loading() -> Iterator[None]:
    """Disable garbage collection while modules and models are loaded: nearly all of their objects
    stay."""
    gc.disable()
    try:
        yield
    finally:
        # later collections skip the objects that exist now
        gc.freeze()
        gc.enable()


def is_run(path: str | Path) -> bool:
    """Return whether an argument names a run folder, which `--run` may name instead."""
    return os.path.isfile(os.path.join(path, "run.json"))


def newest_run() -> Path:
    """Find the run to use if the user names none, and print its folder."""
    from synmt.run_folder import find_run

    folder = find_run(None).folder
    console.remark(f"run: {folder}")
    return folder


def spelling(parameter: Any) -> str:
    """Join the long forms of an option, such as `--metrics/--metric`; an argument has its name on
    the help page."""
    forms = [form for form in parameter.opts + parameter.secondary_opts if form.startswith("--")]
    return "/".join(forms) or parameter.metavar


def run(app: typer.Typer) -> None:
    """Run the app, then exit: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    open_streams()
    sys.unraisablehook = _interrupt_again
    # SIGTERM ends the command as Ctrl-C does: it cleans up and exits with 130
    signal.signal(signal.SIGTERM, _interrupt)
    # a shell makes its background jobs ignore Ctrl-C; keep that
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        with naming_lack_of_memory():
            code = _guarded(app)(prog_name="synmt", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except OutOfMemory as error:
        _show(f"error: {error}")
        raise AtOnce(1) from None
    except SynmtError as error:
        _leave(error.exit_code, f"error: {error}")
    except (_Interrupted, KeyboardInterrupt, typer.Abort):
        _leave(INTERRUPTED, "interrupted")
    except (_PipeClosed, BrokenPipeError):
        sys.exit(_PIPE_CLOSED)
    except SystemExit as leaving:
        # rich's answer to a closed pipe
        sys.exit(_PIPE_CLOSED if isinstance(leaving.__context__, BrokenPipeError) else leaving.code)
    except OSError as error:
        closed = error.errno == errno.EBADF
        where = (
            "standard output is closed"
            if closed
            else f"{error.filename or 'output'}: {error.strerror or error}"
        )
        _leave(1, f"error: {where}.")
    except _ClickException as error:
        _explain(error)
        message = visible(error.format_message())  # type: ignore[attr-defined]
        error.format_message = lambda: message  # type: ignore[attr-defined]
        with suppress(BrokenPipeError):
            error.show()  # type: ignore[attr-defined]
        console.log_error(message)
        sys.exit(error.exit_code)  # type: ignore[attr-defined]
    finally:
        discard_unwritten()
        # Python would search all objects for garbage before the process ends, half a second after
        # torch was loaded
        gc.freeze()


# typer has its own copy of click
_ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)

_SHARED = {"--quiet": "", "-q": "", "--verbose": "", "-v": "", "--debug": "", "--log-file": " FILE"}
"""The options of `synmt` itself, with the place of their value."""


def _explain(error: Any) -> None:
    """Explain where an option of `synmt` itself is written, and in plain words what a value must
    be."""
    # typer reads values by pydantic
    for problem in getattr(error.__cause__, "errors", list)()[:1]:
        error.message = plain_message(problem) + given_value(problem)
    name = getattr(error, "option_name", "")
    if error.ctx and error.ctx.info_name in ("train", "prepare"):
        error.message += _as_override(name)
    if name in _SHARED:
        command = f"synmt {name}{_SHARED[name]} {error.ctx.info_name} …"
        error.message += f". Write it before the command: `{command}`"


def _as_override(option: str) -> str:
    """Explain how to write a key of the recipe that was typed like an option, such as
    `--max-steps 100`."""
    from synmt.recipe.keys import list_keys

    name = option.strip("-").replace("-", "_")
    _, _, rest = " ".join(sys.argv).partition(option)
    value = rest.lstrip("= ").partition(" ")[0] or "VALUE"
    forms = [
        f"`{key.path}={value}`"
        for key in list_keys()
        if name and f".{key.path}".endswith(f".{name}")
    ]
    return f". Values of a recipe are written without dashes: {' or '.join(forms)}" if forms else ""


class _Interrupted(Exception):
    """Ctrl-C in disguise: typer would turn a KeyboardInterrupt into its own exit code."""


class _PipeClosed(Exception):
    """A closed pipe in disguise, for the same reason."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but not during an import: `try: import …` would swallow it or leave
    a broken module."""
    if not _imports(frame):
        raise KeyboardInterrupt
    # not a threading.Timer: it needs a lock that the interrupted code may hold
    _thread.start_new_thread(_send_later, (number,))


def _send_later(number: int) -> None:
    time.sleep(0.01)
    # on Windows, `os.kill` ends the process; elsewhere, only a signal from outside wakes up a
    # thread that waits
    if os.name == "nt":
        signal.raise_signal(number)
    else:
        os.kill(os.getpid(), number)


def _imports(frame: FrameType | None) -> bool:
    """Return whether a module is being imported, searching from the innermost call out to `run`."""
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _interrupt_again(ignored: Any) -> None:
    """Repeat a Ctrl-C that arrived in a finalizer, where Python drops exceptions."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        threading.Thread(target=_send_later, args=(signal.SIGINT,)).start()
    else:
        sys.__unraisablehook__(ignored)


@cache
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
    _show(message)
    sys.exit(code)


def _show(message: str) -> None:
    if console.debug():
        traceback.print_exc()
    with suppress(BrokenPipeError):
        console.show_error(message)


class AtOnce(SystemExit):
    """Leaves without the ends of libraries, which crash or wait for each other without memory."""
