"""Dropout, the inner layer of the feed-forward sub-layer and attention, with custom gradients for CPUs.

Masks of dropout take a quarter of the time: torch draws a number of 64 bits for each element of a mask. Here such a
number serves four elements, whose probability is therefore a multiple of 2⁻¹⁶. The inner layer keeps only its output
for the gradient. Attention is three products: in bfloat16, the gradient of torch's fused kernel takes five times as
long on a CPU (torch 2.13), and with dropout there is no fused kernel. On other devices and in compiled models, torch
computes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from synmt.fast.linear import linear_gradients, onednn_applies, pad_rows, product, product_dtype

_STEPS = 1 << 16
"""How many different probabilities there are."""


class Dropout(nn.Dropout):
    """nn.Dropout that computes by `dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> same."""
        return dropout(input, self.p if self.training else 0.0)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute x + dropout(y), of the same shape."""
        return add_dropped(x, y, self.p if self.training else 0.0)


def dropout(x: Tensor, probability: float) -> Tensor:
    """Zero elements with a probability, and scale the others by 1 / (1 - probability): any shape -> same."""
    if not probability:
        return x
    return _Dropped.apply(x, probability) if draws_fast(x) else F.dropout(x, probability)  # type: ignore[return-value]


def add_dropped(x: Tensor, y: Tensor, probability: float) -> Tensor:
    """Compute x + dropout(y) in one pass, in the more exact type of both: same shapes -> same."""
    if not probability or not draws_fast(x):
        return x + dropout(y, probability)
    return _AddDropped.apply(x, y, probability)  # type: ignore[return-value]


def draws_fast(x: Tensor) -> bool:
    """Tell whether `scaled_mask` draws the masks for a tensor."""
    return x.device.type == "cpu" and x.numel() > 0 and not torch.compiler.is_compiling()


def scaled_mask(shape: torch.Size, probability: float, dtype: torch.dtype) -> tuple[Tensor, float]:
    """Draw a mask, 0 with a probability and else 1, and give the number by which the rest is scaled."""
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


def dropped_relu(projection: nn.Linear, x: Tensor, probability: float = 0.0) -> Tensor:
    """Compute dropout(relu(x Wᵀ + b)): (…, D) -> (…, D').

    Where the output is positive, the gradient passes, scaled; elsewhere either ReLU or dropout stops it.
    """
    weight, bias, dtype = projection.weight, projection.bias, product_dtype(x)
    wants_gradient = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    if not wants_gradient or not onednn_applies(x, dtype) or not onednn_applies(weight, dtype):
        return dropout(F.relu(projection(x)), probability)
    return _DroppedRelu.apply(x, weight, bias, probability, dtype)  # type: ignore[return-value]


class _DroppedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, probability: float, dtype: torch.dtype) -> Tensor:
        ctx.shape, ctx.types = x.shape, (x.dtype, weight.dtype)
        rows, weight = pad_rows(x.reshape(-1, x.size(-1)), dtype), weight.to(dtype)  # (P, D)
        output = product(rows, weight, bias.to(dtype), relu=True)  # (P, D')
        output = output[: x.shape[:-1].numel()].view(*x.shape[:-1], -1)  # (…, D')
        ctx.scale = 1.0
        if probability:
            mask, ctx.scale = scaled_mask(output.shape, probability, dtype)
            output.mul_(mask).mul_(ctx.scale)
        ctx.save_for_backward(rows, weight, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        slope = torch.ops.aten.threshold_backward(slopes[0], ctx.saved_tensors[2], 0)  # (…, D')
        return (*linear_gradients(ctx, slope.mul_(ctx.scale) if ctx.scale != 1 else slope), None, None)


def outruns_fused_kernel(q: Tensor, dropout: float, bias: Tensor | None = None) -> bool:
    """Tell whether `masked_attention` is faster than torch's fused kernel, which has no gradient of a bias."""
    learned = bias is not None and bias.requires_grad
    return outruns_steps(q) and (dropout > 0 or q.dtype == torch.bfloat16 or learned)


def outruns_steps(q: Tensor, factor: Tensor | None = None) -> bool:
    """Tell whether `masked_attention` is faster than the same in single steps; the factor may need no gradient."""
    fixed = factor is None or not factor.requires_grad
    return fixed and draws_fast(q) and torch.is_grad_enabled() and q.requires_grad


def masked_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    dropout: float = 0.0,
    *,
    factor: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute A = dropout(softmax(mask((q kᵀ / √d) ⊙ F + B))) and A v.

    (B, H, Tq, d), two of (B, H, Tk, d) -> A v (B, H, Tq, d) and A (B, H, Tq, Tk)

    mask: boolean, broadcasts to (B, H, Tq, Tk), True where a query may attend.
    factor: broadcasts to the same shape; it gets no gradient.
    bias: broadcasts to the same shape.
    """
    return _MaskedAttention.apply(q, k, v, mask, dropout, factor, bias)  # type: ignore[return-value]


class _MaskedAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        dropout: float,
        factor: Tensor | None,
        bias: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        ctx.heads, scale = q.shape[:2], 1 / math.sqrt(q.size(-1))
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))  # (B H, Tq, d), (B H, Tk, d), (B H, Tk, d)
        exact = torch.promote_types(q.dtype, torch.float32)
        ctx.scale = scale if factor is None else factor.to(exact) * scale
        scores = torch.bmm(q, k.mT).to(exact).unflatten(0, ctx.heads).mul_(ctx.scale)  # (B, H, Tq, Tk)
        ctx.bias = None if bias is None else (bias.shape, bias.dtype)
        if bias is not None:
            scores.add_(bias)
        if mask is not None:
            scores.masked_fill_(~mask, -math.inf)
        weights = scores.flatten(0, 1).softmax(-1)  # (B H, Tq, Tk)
        used, kept, ctx.kept_scale = weights.to(q.dtype), None, 1.0
        if dropout:
            kept, ctx.kept_scale = scaled_mask(used.shape, dropout, q.dtype)
            used = (used * kept).mul_(ctx.kept_scale)  # (B H, Tq, Tk)
        ctx.save_for_backward(q, k, v, weights, used, kept)
        ctx.set_materialize_grads(False)
        return torch.bmm(used, v).unflatten(0, ctx.heads), used.unflatten(0, ctx.heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, weights, used, kept = ctx.saved_tensors
        slope, own = (None if slope is None else slope.flatten(0, 1) for slope in slopes)
        if slope is None:
            slope = torch.zeros_like(q)  # (B H, Tq, d)
        to_weights = torch.bmm(slope, v.mT)  # (B H, Tq, Tk)
        if own is not None:
            to_weights += own
        if kept is not None:
            to_weights = (to_weights * kept).mul_(ctx.kept_scale)  # (B H, Tq, Tk)
        to_weights = to_weights.to(weights.dtype)
        to_scores = torch.ops.aten._softmax_backward_data(to_weights, weights, -1, weights.dtype)  # (B H, Tq, Tk)
        to_scores = to_scores.unflatten(0, ctx.heads)  # (B, H, Tq, Tk)
        to_bias = None
        if ctx.needs_input_grad[6]:
            shape, dtype = ctx.bias
            to_bias = to_scores.sum_to_size(shape).to(dtype)
        # the gradient of a bias may be the very same memory
        scaled = to_scores.mul_(ctx.scale) if to_bias is None else to_scores * ctx.scale
        to_scores = scaled.flatten(0, 1).to(q.dtype)  # (B H, Tq, Tk)
        gradients = torch.bmm(to_scores, k), torch.bmm(to_scores.mT, q), torch.bmm(used.mT, slope)
        return (*(gradient.unflatten(0, ctx.heads) for gradient in gradients), None, None, None, to_bias)
