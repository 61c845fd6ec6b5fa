"""Imports torch without what its compiler alone needs, for commands that answer at once.

A quarter of `import torch` registers which shapes operators give for tensors without data (the device `meta`), in
`torch._meta_registrations`. A stand-in takes the place of that module. The real one is imported before the first module
that needs it: torch's compiler, and libraries that build models without data.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

_LATER = "torch._meta_registrations"
_READERS = frozenset(
    {"torch._dynamo", "torch._inductor", "torch._functorch.aot_autograd", "transformers.modeling_utils", "accelerate"}
)


def import_torch() -> None:
    """Import torch; if it is there already, do nothing."""
    if "torch" in sys.modules:
        return
    sys.modules[_LATER] = _StandIn(_LATER)
    try:
        import_module("torch")
    finally:
        _leave()
    if _READERS & sys.modules.keys():
        import_module(_LATER)
    else:
        sys.meta_path.insert(0, _BeforeReaders())


class _StandIn(ModuleType):
    """Becomes the real module as soon as anything in it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _leave()
        return getattr(import_module(_LATER), name)


class _BeforeReaders(MetaPathFinder):
    """Finds no module, but imports the real one before any that needs it."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname in _READERS:
            import_module(_LATER)


def _leave() -> None:
    if isinstance(sys.modules.get(_LATER), _StandIn):
        del sys.modules[_LATER]
