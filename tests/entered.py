"""Which files of synmt a piece of work enters: a count of its way through the package, not a timing."""

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
    entered: set[str] = set()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add(frame.f_code.co_filename)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = (Path(name) for name in entered)
    return {path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)}
