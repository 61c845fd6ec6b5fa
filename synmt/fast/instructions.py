"""What the processor and this build of torch can multiply fast."""

from __future__ import annotations

import platform
from functools import cache

import torch


@cache
def multiplies(precision: str) -> bool:
    """Return whether the processor has instructions for products in a precision."""
    if precision == "float32":
        return True
    if precision == "bf16" and platform.machine().lower() in ("x86_64", "amd64"):
        # oneDNN also supports processors that convert every number
        names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        return any(getattr(torch.cpu, name, bool)() for name in names)
    try:
        return bool(getattr(torch.ops.mkldnn, f"_is_mkldnn_{precision}_supported")())
    except (AttributeError, RuntimeError):
        return False
