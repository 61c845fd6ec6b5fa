"""Dropout whose masks take a quarter of the time on a CPU.

torch draws a number of 64 bits for each element of a mask. Here such a number serves four elements,
whose probability is therefore a multiple of 2⁻¹⁶. On other devices and in compiled models, torch
draws.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_STEPS = 1 << 16
"""How many different probabilities there are."""


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero elements with a probability, and scale the others by 1 / (1 - probability): any shape ->
    same."""
    if not probability:
        return x
    return _Dropped.apply(x, probability) if draws_fast(x) else F.dropout(x, probability)  # type: ignore[return-value]


def add_dropped(x: Tensor, y: Tensor, probability: float) -> Tensor:
    """Compute x + dropout(y) in one pass, in the more exact type of both: same shapes -> same."""
    if not probability or not draws_fast(x):
        return x + dropout(y, probability)
    return _AddDropped.apply(x, y, probability)  # type: ignore[return-value]


def draws_fast(x: Tensor) -> bool:
    """Return whether `scaled_mask` draws the masks for a tensor."""
    return x.device.type == "cpu" and x.numel() > 0 and not torch.compiler.is_compiling()


def scaled_mask(shape: torch.Size, probability: float, dtype: torch.dtype) -> tuple[Tensor, float]:
    """Draw a mask, 0 with a probability and else 1, and give the number by which the rest is
    scaled."""
    count = shape.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    zeros = min(round(probability * _STEPS), _STEPS - 1)
    mask = torch.empty(shape, dtype=dtype)
    torch.ge(words.view(torch.int16)[:count].view(shape), zeros - _STEPS // 2, out=mask)
    return mask, _STEPS / (_STEPS - zeros)


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        mask, ctx.scale = scaled_mask(x.shape, probability, x.dtype)
        ctx.save_for_backward(mask)
        return (x * mask).mul_(ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        return (slopes[0] * mask).mul_(ctx.scale), None


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, probability: float) -> Tensor:
        dtype = torch.promote_types(x.dtype, y.dtype)
        mask, ctx.scale = scaled_mask(y.shape, probability, dtype)
        ctx.save_for_backward(mask)
        ctx.types = x.dtype, y.dtype
        return torch.addcmul(x.to(dtype), y.to(dtype), mask, value=ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (mask,) = ctx.saved_tensors
        slope = slopes[0]
        return slope.to(ctx.types[0]), (slope * mask).mul_(ctx.scale).to(ctx.types[1]), None
