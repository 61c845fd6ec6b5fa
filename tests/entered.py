"""Which files of synmt a piece of work enters, and how often one calls another: counts of its way, no timing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import synmt

PACKAGE = Path(synmt.__file__).parent


def files_entered(run: Callable[[], object]) -> set[str]:
    """Name the files of the package whose functions a call enters, in new threads too; imports do not count."""
    entered, _ = way_through(run)
    return entered


def way_through(run: Callable[[], object]) -> tuple[set[str], int]:
    """Name the files that `files_entered` names; count the calls from one file of the package to another."""
    entered: set[str] = set()
    calls = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add(frame.f_code.co_filename)
            calls += _crosses(frame)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = (Path(name) for name in entered)
    return {path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)}, calls


def _crosses(frame: FrameType) -> bool:
    caller = frame.f_back and frame.f_back.f_code.co_filename
    called = frame.f_code.co_filename
    return caller != called and all(str(name).startswith(f"{PACKAGE}/") for name in (caller, called))
