"""What `torchrun` tells each process that it starts, in the environment; nothing here loads
torch."""

from __future__ import annotations

import os
from dataclasses import dataclass

from synmt.errors import UsageError


@dataclass(frozen=True)
class Started:
    """One of the processes that train together: their number, its own among all, and its own on
    this machine."""

    count: int = 1
    rank: int = 0
    local_rank: int = 0


def started() -> Started:
    """Read which process this is: the only one, if nothing is said; raises UsageError for what
    cannot be."""
    count = (
        _number("WORLD_SIZE", "number of processes", least=1) if os.environ.get("WORLD_SIZE") else 1
    )
    if count == 1:
        return Started()
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        if not os.environ.get(name):
            raise _wrong(
                name, f"WORLD_SIZE says that {count} processes train, but this variable is not set"
            )
    # launchers with one process on each machine leave LOCAL_RANK out
    names = [name for name in ("RANK", "LOCAL_RANK") if os.environ.get(name)]
    return Started(count, *(_number(name, "process counted from 0", below=count) for name in names))


def _number(name: str, what: str, *, least: int = 0, below: int | None = None) -> int:
    text = os.environ[name].strip()
    if not text.isdecimal() or int(text) < least or (below is not None and int(text) >= below):
        raise _wrong(
            name, f"'{text}' is not a {what}" + (f", of {below}" if below is not None else "")
        )
    return int(text)


def _wrong(name: str, what: str) -> UsageError:
    return UsageError(
        what,
        where=name,
        do="Start the command with `torchrun`, which sets this variable, or unset WORLD_SIZE",
    )
