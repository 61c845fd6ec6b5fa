"""Linear maps, computed by the fastest library for the processor.

On a CPU, torch multiplies float32 by MKL, which uses only AVX2 on processors that are not from Intel. There oneDNN,
which is part of torch, is twice as fast (measured on a Zen 5), forward and backward. Its operator has no gradient, so
it gets one here. Layers and variants are written with torch's nn.Linear: `use_fast_linear` converts a whole model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


def use_fast_linear(model: nn.Module) -> None:
    """Let every nn.Linear of a model compute by `linear`; names and values of its parameters stay."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear


class Linear(nn.Linear):
    """nn.Linear that computes by `linear`."""

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


def repeated(projection: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Return a projection for many steps of one pass that computes the gradient of its weight once, for all steps.

    Otherwise each step writes and adds a gradient of the weight: a tenth of the time of an LSTM's training step at 20
    sentences, a fortieth at 40.
    """
    weight, bias = projection.weight, projection.bias
    if not (torch.is_grad_enabled() and weight.requires_grad) or torch.compiler.is_compiling():
        return projection
    kind = weight.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    uses: _Uses = {}
    token = _Collected.apply(weight, bias, uses)
    fixed = weight.detach().to(dtype), None if bias is None else bias.detach().to(dtype)
    return lambda x: _Use.apply(x.to(dtype), token, *fixed, uses)  # type: ignore[return-value]


_Uses = dict[int, list[tuple[Tensor, Tensor]]]
"""By backward pass, inputs and gradients of outputs: (N, D), (N, D')."""


class _Collected(torch.autograd.Function):
    """Precedes all uses of a weight in the graph, so that its backward runs after theirs."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor | None, uses: _Uses) -> Tensor:
        ctx.uses, ctx.dtype, ctx.has_bias = uses, weight.dtype, bias is not None
        return weight.new_empty(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *ignored: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        uses = ctx.uses.pop(torch._C._current_graph_task_id())
        x, slope = (torch.cat(part) for part in zip(*uses, strict=True))  # (N, D), (N, D')
        to_weight = linear(slope.T, x.T)  # (D', D)
        to_bias = slope.sum(0, dtype=ctx.dtype) if ctx.has_bias else None  # (D',)
        return to_weight.to(ctx.dtype), to_bias, None


class _Use(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, token: Tensor, weight: Tensor, bias: Tensor | None, uses: _Uses) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses = uses
        return linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        # one backward pass may end before it reaches the weight, so uses are kept separately for each
        ctx.uses.setdefault(torch._C._current_graph_task_id(), []).append((x, slopes[0]))
        return linear(slopes[0], weight.T), slopes[0].new_empty(0), None, None, None


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
    # the operator is internal to torch.compile: builds without oneDNN lack it, and other releases may rename it
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        _onednn(torch.ones(1, 1), torch.ones(1, 1))
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


_ONEDNN = _has_onednn()
