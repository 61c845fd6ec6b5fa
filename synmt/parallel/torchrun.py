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
    try:
        count = int(os.environ.get("WORLD_SIZE") or 1)
        if count == 1:
            return Started()
        rank = int(os.environ["RANK"])
        # launchers with one process on each machine leave it out
        local_rank = int(os.environ.get("LOCAL_RANK") or 0)
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            if not os.environ[name]:
                raise KeyError(name)
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"the variables of torchrun are incomplete or wrong ({error})",
            where="WORLD_SIZE, RANK, LOCAL_RANK, MASTER_ADDR, MASTER_PORT",
            do="Start the command with `torchrun`, which sets them, or unset WORLD_SIZE",
        ) from None
    return Started(count, rank, local_rank)
