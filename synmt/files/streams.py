"""Standard streams that are closed, full or broken: lost output is an error, a lost message is
not."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def open_streams() -> None:
    """Prepare the standard streams; writing to a standard output that is closed then raises
    OSError.

    Python has None for a closed stream. A file that is opened later must not get its number, and
    with it what libraries and other processes print.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            os.set_inheritable(handle, True)
            # `open_binary` reports a closed standard input
            if name != "stdin":
                setattr(sys, name, os.fdopen(handle, "w"))
    try:
        # nohup lets a command have an input that cannot be read
        os.read(0, 0)
    except OSError:
        sys.stdin = None
    for stream in (sys.stdin, sys.stdout):
        # the name of a file may be no UTF-8
        errors = "surrogateescape" if stream is sys.stdout else "strict"
        if stream is not None:
            stream.reconfigure(encoding="utf-8", newline="\n", errors=errors)  # type: ignore[union-attr]
    if sys.stderr is sys.__stderr__:
        raw = io.BufferedWriter(_Messages(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(
            raw, sys.stderr.encoding, sys.stderr.errors, line_buffering=True
        )


class _Messages(io.FileIO):
    """Standard error: a full disk does not stop the command, but a closed pipe does."""

    def write(self, data: Any, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def discard_unwritten() -> None:
    """Drop what the streams do not take: Python would try again at exit, report an error, and exit
    with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
