"""The errors that name a worker of a cluster, and what to do about it."""

from __future__ import annotations

import re

from synmt.errors import SynmtError
from synmt.parallel.engine import versions

_IMPORT = re.compile(r"\b(ModuleNotFound|Import)Error\b")

INSTALL = "Install it on this machine and on all workers: `pip install 'synmt[cluster]'`"
AGAIN = (
    "run the same command again: `parse`, `prepare`, `train` and `translate -o` keep what is "
    "finished"
)


def check_versions(address: str, theirs: dict[str, str]) -> None:
    """Raise SynmtError if a worker has other versions of what results depend on."""
    other = [
        f"{name} {theirs.get(name)} (here {ours})"
        for name, ours in versions().items()
        if theirs.get(name) != ours
    ]
    if other:
        raise SynmtError(
            f"other versions than here: {', '.join(other)}",
            where=f"worker {address}",
            do=f"Install the same versions there, restart the worker, and {AGAIN}",
        )


def incapable(address: str, error: Exception) -> SynmtError:
    """Make the error of a worker that could not take its work."""
    # Dask wraps what a worker cannot unpickle
    if isinstance(error, ImportError) or _IMPORT.search(str(error)):
        return SynmtError(
            f"cannot load synmt ({error})",
            where=f"worker {address}",
            do=f"Install the same synmt there, restart the worker, and {AGAIN}",
        )
    if isinstance(error, SynmtError):
        return error.with_(where=f"worker {address}: {error.where}")
    return SynmtError(f"cannot work ({type(error).__name__}: {error})", where=f"worker {address}")
