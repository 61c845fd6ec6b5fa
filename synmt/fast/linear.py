"""Linear maps, computed by the fastest library for the processor.

torch multiplies float32 on a CPU by MKL, which uses only AVX2 on processors that are not from
Intel. If they have AVX-512, oneDNN, which is part of torch, is twice as fast (measured on a Zen 5);
if not, MKL makes a training step 1.15 times as fast (Zen 3). On processors from Intel MKL is as
fast, for few rows faster (measured on a Xeon with AMX). In bfloat16, oneDNN is faster there, too.
Its operator has no gradient, so it gets one here.

oneDNN generates code for each new shape. In bfloat16 this takes as long as a few products, and
nearly every batch has another number of rows: `pad_rows` rounds this number up, so that few shapes
occur.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class FastLinear(nn.Linear):
    """nn.Linear that computes by `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """(…, D) -> (…, D')."""
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x Wᵀ + b: (…, D), (D', D), (D',) -> (…, D'), with autocast in its precision."""
    dtype = product_dtype(x)
    if not onednn_applies(x, dtype) or not onednn_applies(weight, dtype):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return _Linear.apply(x, weight, bias, dtype)  # type: ignore[return-value]
    return mapped(pad_rows(x.reshape(-1, x.size(-1)), dtype), x.shape, weight.to(dtype), bias)


def product_dtype(x: Tensor) -> torch.dtype:
    """Return the precision of products of x: that of autocast, else its own."""
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def onednn_applies(x: Tensor, dtype: torch.dtype) -> bool:
    """Return whether oneDNN multiplies this tensor, converted to this precision."""
    return (
        dtype in _ONEDNN
        and x.device.type == "cpu"
        and x.numel() > 0
        and not torch.compiler.is_compiling()
    )


def repeated(projection: nn.Linear) -> Callable[[Tensor], Tensor]:
    """Return a projection for many steps of one pass that computes the gradient of its weight once,
    for all steps.

    Otherwise each step writes and adds a gradient of the weight: a tenth of the time of an LSTM's
    training step at 20 sentences, a fortieth at 40.
    """
    weight, bias = projection.weight, projection.bias
    if not (torch.is_grad_enabled() and weight.requires_grad) or torch.compiler.is_compiling():
        return projection
    dtype = product_dtype(weight)
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
    def forward(
        ctx: Any, x: Tensor, token: Tensor, weight: Tensor, bias: Tensor | None, uses: _Uses
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses = uses
        return linear(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        # one backward pass may end before it reaches the weight, so uses are kept separately for
        # each
        ctx.uses.setdefault(torch._C._current_graph_task_id(), []).append((x, slopes[0]))
        return linear(slopes[0], weight.T), slopes[0].new_empty(0), None, None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        ctx.shape, ctx.types = x.shape, (x.dtype, weight.dtype)
        rows, weight = pad_rows(x.reshape(-1, x.size(-1)), dtype), weight.to(dtype)  # (P, D)
        ctx.save_for_backward(rows, weight)
        return mapped(rows, x.shape, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        return (*linear_gradients(ctx, slopes[0]), None)


def mapped(
    rows: Tensor, shape: torch.Size, weight: Tensor, bias: Tensor | None, *, relu: bool = False
) -> Tensor:
    """Compute x Wᵀ + b, or its ReLU, without a gradient, from the rows of x that `pad_rows` gives,
    (P, D), and the shape of x: (…, D')."""
    bias = None if bias is None else bias.to(rows.dtype)
    output = product(rows, weight, bias, relu=relu)  # (P, D')
    return output[: shape[:-1].numel()].view(*shape[:-1], -1)


def linear_gradients(ctx: Any, slope: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Compute the gradients of x Wᵀ + b by x (…, D), W (D', D) and b (D',), those that are needed:
    slope (…, D').

    ctx: has `shape` of x, `types` of x and of the weights before they were converted, and the first
        two saved tensors are x as `pad_rows` gives it, (P, D), and W.
    """
    rows, weight = ctx.saved_tensors[:2]
    slope = slope.reshape(-1, slope.size(-1))  # (N, D')
    full = pad_rows(slope, rows.dtype)  # (P, D')
    to_x = to_weight = None
    if ctx.needs_input_grad[0]:
        to_x = product(full, weight.T)[: len(slope)].view(ctx.shape).to(ctx.types[0])  # (…, D)
    if ctx.needs_input_grad[1]:
        to_weight = outer_product(full, rows).to(ctx.types[1])  # (D', D)
    return to_x, to_weight, slope.sum(0).to(ctx.types[1]) if ctx.needs_input_grad[2] else None


def pad_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert (N, D) to a precision, (P, D); if that is bfloat16, zeros follow the N rows."""
    count = len(x)
    room = _room(count) if dtype == torch.bfloat16 and onednn_applies(x, dtype) else count
    if room == count:
        return x.to(dtype)
    full = x.new_empty(room, x.size(1), dtype=dtype)
    full[:count] = x
    full[count:] = 0
    return full


def _room(count: int) -> int:
    # at most a sixteenth of the rows is zeros, or up to 16 rows, which take the time of one
    step = max(16, 1 << max(0, count.bit_length() - 5))
    return -(-count // step) * step


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, relu: bool = False) -> Tensor:
    """Compute x Wᵀ + b, or its ReLU, without a gradient: (…, D), (D', D), (D',) -> (…, D').

    The inputs must be such that `onednn_applies`.
    """
    if _prefers_torch(x):
        output = F.linear(x, weight, bias)
        return output.relu_() if relu else output
    return _multiply(x, weight, bias, relu=relu)


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None, *, relu: bool) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")


def outer_product(slope: Tensor, x: Tensor) -> Tensor:
    """Compute sᵀ x, summed over rows, without a gradient: (N, D'), (N, D) -> (D', D)."""
    # the libraries copy the operand that has to be transposed: let it be the narrower one
    if slope.size(1) > x.size(1):
        return outer_product(x, slope).T
    # oneDNN's copy in bfloat16 takes longer than the product of two matrices of like width
    like = x.dtype == torch.bfloat16 and x.size(1) < 4 * slope.size(1)
    return slope.T @ x if like else product(slope.T, x.T)


def add_outer_product(total: Tensor, slope: Tensor, x: Tensor) -> None:
    """Add sᵀ x to a total: (D', D), (N, D'), (N, D)."""
    if total.dtype == x.dtype and _prefers_torch(x):
        total.addmm_(slope.T, x)
    else:
        # not by `outer_product`: adding a transposed matrix takes longer than the product
        total.add_(slope.T @ x if x.dtype == torch.bfloat16 else product(slope.T, x.T))


def _prefers_torch(x: Tensor) -> bool:
    return not onednn_applies(x, x.dtype) or (_MKL_IS_FASTER and x.dtype == torch.float32)


def _works(dtype: torch.dtype) -> bool:
    # the operator is internal to torch.compile: builds without oneDNN lack it, and other releases
    # may rename it. Those of `can_pack` start threads, which a process that is forked after this
    # module was imported would wait for
    try:
        _multiply(torch.ones(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype), None, relu=True)
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


def _is_intel() -> bool:
    facts = Path("/proc/cpuinfo")
    return "GenuineIntel" in (
        facts.read_text(errors="replace") if facts.is_file() else platform.processor()
    )


_ONEDNN = {dtype for dtype in (torch.float32, torch.bfloat16) if _works(dtype)}
_OTHERS_WITH_AVX512 = not _is_intel() and getattr(torch.cpu, "_is_avx512_supported", bool)()
_MKL_IS_FASTER = torch.backends.mkl.is_available() and not _OTHERS_WITH_AVX512
