"""The linear map, by the library that is fastest where it runs.

torch multiplies float32 on a CPU by MKL, which takes AVX2 on processors that are not Intel's; there oneDNN, which torch
brings along, is twice as fast (measured on a Zen 5), forward and backward. Its operator has no gradient of its own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """A projection with a bias."""

    def forward(self, input: Tensor) -> Tensor:
        """(…, D) -> (…, D')."""
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x Wᵀ + b: (…, D), (D', D), (D',) -> (…, D')."""
    if torch.compiler.is_compiling() or not _suits(x, weight) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return _Linear.apply(x, weight, bias)  # type: ignore[return-value]
    return _onednn(x, weight, bias)


def product(x: Tensor, weight: Tensor) -> Tensor:
    """Compute x Wᵀ without a gradient: (N, D), (D', D) -> (N, D')."""
    return _onednn(x, weight) if _suits(x, weight) else x @ weight.T


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        slope = slopes[0].flatten(0, -2)  # (N, D')
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        to_x = _onednn(slope, weight.T).view_as(x) if needs_x else None  # (…, D)
        to_weight = _onednn(slope.T, x.flatten(0, -2).T) if needs_weight else None  # (D', D)
        return to_x, to_weight, slope.sum(0) if needs_bias else None


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _suits(x: Tensor, weight: Tensor) -> bool:
    return _ONEDNN and x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and x.numel() > 0


def _has_onednn() -> bool:
    # the operator is torch.compile's own: a build without oneDNN has none, and another release may call it otherwise
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        _onednn(torch.ones(1, 1), torch.ones(1, 1))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


_ONEDNN = _has_onednn()
