"""The door to the wing `synmt.fast`, which computes the same as the rest of synmt, but faster.

Nothing else imports the wing. Without its folder, everything works as before, only slower.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WING = "synmt.fast"


def fast(name: str) -> Any:
    """Import a module of the wing; None where the wing has been left out."""
    try:
        import_module(_WING)
        return import_module(f"{_WING}.{name}")
    except ModuleNotFoundError as error:
        # another module may be missing, which is another fault
        if not f"{error.name}.".startswith(f"{_WING}."):
            raise
        return None
