"""What results and faults depend on, apart from the data: versions, commit, processor, GPUs."""

from __future__ import annotations

import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from synmt import __version__

_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """Describe this machine and what is installed; None is not known.

    commit: of a checkout, with `-dirty` if files have changed.
    threads: those that torch computes with.
    """
    import torch

    return {
        "synmt": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "gpus": list(map(torch.cuda.get_device_name, range(torch.cuda.device_count()))),
        "packages": _packages(),
    }


def _commit() -> str | None:
    project = Path(__file__).parents[1]
    # not that of a project whose environment has synmt
    if not (project / ".git").exists():
        return None
    command = ["git", "-C", str(project), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None


def _processor() -> str | None:
    text = _CPU_INFO.read_text("utf-8") if _CPU_INFO.exists() else ""
    named = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    return named[1] if named else platform.processor() or None


def _packages() -> dict[str, str | None]:
    """Find the versions of what synmt needs, by name."""
    needed = [line for line in metadata.requires("synmt") or () if "extra ==" not in line]
    names = [re.split(r"[^\w-]", line)[0] for line in needed]
    return {name: metadata.version(name) for name in names}
