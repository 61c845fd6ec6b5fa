"""The device of a model and the precision of its products."""

from __future__ import annotations

import contextlib

import torch

from synmt.errors import UsageError, counted

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def choose_device(name: str) -> torch.device:
    """Turn `auto`, `cpu`, `cuda` or `cuda:1` into a device; auto takes a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"there is no device '{name}'", allowed="Devices: auto, cpu, cuda, cuda:1 and so on")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        gpus = counted(torch.cuda.device_count(), "GPU")
        raise UsageError(f"PyTorch sees {gpus}", where=f"device {name}", do="Use auto")
    return device


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out; on a CPU only the message of PyTorch's error says so."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Compute products in `bf16` or `fp16`; `float32` changes nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, AUTOCAST[precision])
