"""Threads: how many of them compute, and how they wait for each other.

OpenMP, which torch computes with, reads its settings from the environment when torch is loaded;
nothing here loads it.
"""

from __future__ import annotations

import os
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


def usable_cores(
    groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> int:
    """Count the cores that this process may use: by its affinity and the quota of its control
    group; at least 1.

    groups, root: where Linux tells the groups of this process, and where it keeps their settings.
    """
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quotas = [quota for folder in _folders(groups, root) if (quota := _quota(folder)) is not None]
    # round half a core up: 1.5 cores are two threads
    return max(1, min(allowed, *(int(quota + 0.5) for quota in quotas)) if quotas else allowed)


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


def _folders(groups: Path, root: Path) -> list[Path]:
    """List the folders whose quota limits this process: those of its group and of all groups around
    it."""
    try:
        lines = [line.split(":", 2) for line in groups.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return []
    folders = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        # version 2 has one hierarchy without a name; version 1 one for each set of controllers
        if controllers and "cpu" not in controllers.split(","):
            continue
        for base in (root / controllers, root / "cpu") if controllers else (root, root / "unified"):
            group = base / path.lstrip("/")
            folders += [
                group,
                *(parent for parent in group.parents if base in (parent, *parent.parents)),
            ]
    return list(dict.fromkeys(folders))


def _quota(folder: Path) -> float | None:
    """Read the quota of a control group in cores; None if there is none."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota, period = (
                (folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii")
                for name in ("quota", "period")
            )
        cores = float(quota) / float(period)
    except (OSError, ValueError, ZeroDivisionError):
        # no such file, or `max`
        return None
    return cores if cores > 0 else None
