"""What every command shares: its arguments, how it starts and ends: exit codes, Ctrl-C, closed
pipes, errors."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from synmt.cli import console
from synmt.errors import SynmtError, naming_lack_of_memory
from synmt.files.writing import AnyPath, discard_unwritten, open_streams
from synmt.options import Option

INTERRUPTED = 130


WHICH_RECIPE = (
    "A file, or the name of a shipped recipe, such as nc11-pascal. All keys: synmt train --keys."
)
Data = Annotated[Path, Option("Folder of trees and prepared corpora.", metavar="FOLDER")]
DryRun = Annotated[
    bool, Option("List the steps and stop: which are done, and the size of the rest.")
]
DEVICES = "Device: auto, cpu, cuda, cuda:1 …, mps"
Device = Annotated[str, Option(DEVICES)]

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


def is_run(path: AnyPath) -> bool:
    """Return whether an argument names a run folder, which `--run` may name instead."""
    return str(path).startswith("hf:") or os.path.isfile(os.path.join(path, "run.json"))


def newest_run() -> Path:
    """Find the run to use if the user names none, and print its folder."""
    from synmt.run_folder import find_run

    folder = find_run(None).folder
    console.remark(f"run: {folder}")
    return folder


def spelling(parameter: Any) -> str:
    """Join the long forms of an option, such as `--metrics/--metric`; an argument has its name on
    the help page."""
    forms = parameter.opts + parameter.secondary_opts
    return "/".join(form for form in forms if form.startswith("--")) or parameter.metavar


def run(app: typer.Typer) -> None:
    """Run the app, then exit: 0 success, 1 failure, 2 wrong usage, 130 interrupted."""
    open_streams()
    # SIGTERM ends the command as Ctrl-C does: it cleans up and exits with 130
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = _interrupt_again
    try:
        with naming_lack_of_memory():
            code = typer.main.get_command(app)(prog_name="synmt", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
        sys.exit(code if isinstance(code, int) else 0)
    except SynmtError as error:
        _leave(error.exit_code, f"error: {error}")
    except (KeyboardInterrupt, typer.Abort):
        _leave(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        _leave(1, f"error: {error.filename or 'output'}: {error.strerror or error}.")
    except _ClickException as error:
        _leave(error.exit_code, f"error: {error.format_message()}")  # type: ignore[attr-defined]
    finally:
        discard_unwritten()
        # Python would search all objects for garbage before the process ends, half a second after
        # torch was loaded
        gc.freeze()


def _interrupt_again(ignored: Any) -> None:
    """Repeat a Ctrl-C that arrived in a finalizer, where Python drops exceptions."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(ignored)


# typer has its own copy of click
_ClickException: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _leave(code: int, message: str) -> None:
    if console.debug():
        traceback.print_exc()
    with suppress(OSError):
        console.show_error(message)
    sys.exit(code)
