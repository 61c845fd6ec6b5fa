"""Which files of synmt a journey goes through."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import synmt

PACKAGE = Path(synmt.__file__).parent


def files_entered(run: Callable[[], object]) -> set[str]:
    """Run something, and name the files of synmt whose functions it calls, not those that it only imports."""
    files = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        # only the code of functions is optimised
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {Path(file).relative_to(PACKAGE).as_posix() for file in files if file.startswith(f"{PACKAGE}/")}
