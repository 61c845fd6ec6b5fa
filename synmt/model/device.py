"""The device of a model, its memory and the precision of its products."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sys
from collections.abc import Iterator
from typing import Literal, get_args

import torch

from synmt.errors import SynmtError, UsageError
from synmt.speed import fast

InferencePrecision = Literal["float32", "bf16", "int8"]

_logger = logging.getLogger(__name__)

# names and numbers of glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _HIGHEST_MMAP_THRESHOLD = 1 << 30, 32 << 20


def choose_device(name: str) -> torch.device:
    """Turn `auto`, `cpu`, `cuda`, `cuda:1` or `mps` into a device; auto takes a GPU of CUDA if
    there is one.

    cuDNN then computes LSTMs in float32, which it would round to ten bits, and leaves attention to
    other kernels: its own prepares for half a second for each new shape of a batch.
    """
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    gpus = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    there = {"cpu": 1, **gpus}.get(kind, 0)
    if not (number or "0").isdecimal() or int(number or 0) >= there:
        raise UsageError(
            f"there is no device '{name}'",
            allowed=f"Devices: auto, cpu, cuda, cuda:1 and so on ({gpus['cuda']} here), mps "
            f"({gpus['mps']} here)",
        )
    return torch.device(name)


def sum_type(device: torch.device) -> torch.dtype:
    """Return the type of sums over many numbers: float64, or float32 where there is none."""
    return torch.float32 if device.type == "mps" else torch.float64


def device_name(device: torch.device) -> str:
    """Name a device for people: the model of a GPU, `mps` or `cpu`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def keep_freed_memory() -> None:
    """Keep up to 1 GB of memory that is free in this process, instead of giving it back to Linux
    after every batch.

    Linux fills memory with zeros before it gives it again, page by page: 2 to 5 % of a step on a
    CPU.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_TRIM_THRESHOLD, _KEPT)
        libc.mallopt(_MMAP_THRESHOLD, _HIGHEST_MMAP_THRESHOLD)


@contextlib.contextmanager
def fixed_order(device: torch.device, *, wanted: bool) -> Iterator[None]:
    """Let a GPU use only operations whose sums have a fixed order, before its first product; raises
    SynmtError for one that has none."""
    if device.type != "cuda" or not wanted:
        yield
        return
    # what PyTorch asks for; cuBLAS reads it once
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        raise SynmtError(
            str(error).partition(", but you set")[0], do="Leave out training.deterministic"
        ) from error
    finally:
        torch.use_deterministic_algorithms(False)


def autocast(device: torch.device, precision: str) -> contextlib.AbstractContextManager[object]:
    """Compute products in `bf16` or `fp16`, where lack of instructions for it is logged; `float32`
    changes nothing."""
    if precision == "float32":
        return contextlib.nullcontext()
    instructions = fast("instructions")
    if device.type == "cpu" and instructions and not instructions.multiplies(precision):
        # on a Zen 3, products in bf16 take ten times as long
        _logger.warning(
            "this processor has no instructions for %s: use training.precision=float32, which is "
            "faster here",
            precision,
        )
    return torch.autocast(device.type, torch.bfloat16 if precision == "bf16" else torch.float16)


def check_precision(precision: InferencePrecision) -> None:
    """Raise UsageError if there is no such precision."""
    if precision not in get_args(InferencePrecision):
        allowed = f"Precisions: {', '.join(get_args(InferencePrecision))}"
        raise UsageError(f"unknown precision '{precision}'", allowed=allowed)


def float32_only(precision: InferencePrecision) -> None:
    """Log that translating computes in float32 if that is not the precision; raises UsageError if
    there is no such."""
    check_precision(precision)
    if precision != "float32":
        _logger.warning(
            "without synmt.fast there is no %s, so everything is computed in float32", precision
        )
