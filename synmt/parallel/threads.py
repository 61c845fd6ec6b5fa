"""Threads: how many of them compute, and how they wait for each other.

OpenMP, which torch computes with, reads its settings from the environment when torch is loaded;
nothing here loads it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from synmt.errors import UsageError

VARIABLE = "SYNMT_THREADS"
_OPENMP = "OMP_NUM_THREADS"


def use_threads(count: int | None = None) -> None:
    """Choose the number of threads, before torch is loaded: `count`, SYNMT_THREADS, OMP_NUM_THREADS
    or all cores.

    Processes that are started later compute with the same number. Raises UsageError for a wrong
    number.
    """
    chosen = _asked() if count is None else _checked(str(count), "--threads")
    if chosen is not None:
        os.environ[VARIABLE] = os.environ[_OPENMP] = str(chosen)
    else:
        os.environ.setdefault(_OPENMP, str(usable_cores()))


def threads() -> int:
    """Count the threads that may compute at once: SYNMT_THREADS, OMP_NUM_THREADS or all usable
    cores."""
    openmp = os.environ.get(_OPENMP, "").partition(",")[0]
    return _asked() or (int(openmp) if openmp.isdecimal() else 0) or usable_cores()


def chosen_cores() -> int:
    """Count the cores on which processes may work: SYNMT_THREADS, or all usable ones."""
    return _asked() or usable_cores()


def usable_cores(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Count the cores that this process may use: by its affinity and the quota of its container; at
    least 1.

    root: where Linux has the settings of the control group.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    quota = _quota(root)
    # half a core is rounded up: 1.5 cores are two threads
    return allowed if quota is None else max(1, min(allowed, int(quota + 0.5)))


def _asked() -> int | None:
    text = os.environ.get(VARIABLE, "").strip()
    return _checked(text, VARIABLE) if text else None


def _checked(text: str, where: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(
            f"'{text}' is not a number of threads",
            where=where,
            allowed="Allowed: whole numbers from 1 on",
        )
    return int(text)


def _quota(root: Path) -> float | None:
    """Read the quota of a control group, of version 2 or 1, in cores; None if there is none."""
    with suppress(OSError, ValueError):
        if (root / "cpu.max").exists():
            quota, period = map(float, (root / "cpu.max").read_text(encoding="ascii").split())
        else:
            files = (root / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
            quota, period = (float(file.read_text(encoding="ascii")) for file in files)
        return quota / period if quota > 0 else None
    # no such file, or `max`
    return None
