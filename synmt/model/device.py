"""Where tensors live and in which precision they are multiplied."""

from __future__ import annotations

import contextlib
import resource
import sys
from pathlib import Path

import torch

from synmt.errors import UsageError

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def choose_device(name: str) -> torch.device:
    """Turn `auto`, `cpu`, `cuda` or `cuda:1` into a device; auto takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"there is no device '{name}'", allowed="auto, cpu, cuda, cuda:1, …")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"{torch.cuda.device_count()} GPUs are to be seen here", where=f"device {name}", do="Use auto")
    return device


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether a device or the machine had no room; on a CPU torch says so in words only."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Multiply in `bf16` or `fp16`; float32 leaves everything as it is."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, AUTOCAST[precision])


def peak_memory(device: torch.device) -> int:
    """Measure the most memory held so far, in bytes: of the GPU, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.exists():
        # what getrusage says on Linux is never less than the process that started this one had
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
