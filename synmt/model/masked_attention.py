"""Plain attention as three products with its own gradient, for CPUs where torch's fused kernel is slow.

In bfloat16, the gradient of torch's fused kernel takes five times as long on a CPU as these products (torch 2.13), and
with dropout there is no fused kernel.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from synmt.model.dropout import draws_fast, scaled_mask


def outruns_fused_kernel(q: Tensor, dropout: float) -> bool:
    """Tell whether `masked_attention` is faster than torch's fused kernel."""
    return draws_fast(q) and torch.is_grad_enabled() and q.requires_grad and (dropout > 0 or q.dtype == torch.bfloat16)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
    """Compute dropout(softmax(mask(q kᵀ / √d))) v: (B, H, Tq, d), two of (B, H, Tk, d) -> (B, H, Tq, d).

    mask: boolean, broadcasts to (B, H, Tq, Tk), True where a query may attend.
    """
    return _MaskedAttention.apply(q, k, v, mask, dropout)  # type: ignore[return-value]


class _MaskedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
        ctx.heads, ctx.scale = q.shape[:2], 1 / math.sqrt(q.size(-1))
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))  # (B H, Tq, d), (B H, Tk, d), (B H, Tk, d)
        exact = torch.promote_types(q.dtype, torch.float32)
        scores = torch.bmm(q, k.mT).to(exact).mul_(ctx.scale)  # (B H, Tq, Tk)
        if mask is not None:
            scores.unflatten(0, ctx.heads).masked_fill_(~mask, -math.inf)
        weights = scores.softmax(-1)  # (B H, Tq, Tk)
        used, kept, ctx.factor = weights.to(q.dtype), None, 1.0
        if dropout:
            kept, ctx.factor = scaled_mask(used.shape, dropout, q.dtype)
            used = (used * kept).mul_(ctx.factor)  # (B H, Tq, Tk)
        ctx.save_for_backward(q, k, v, weights, used, kept)
        return torch.bmm(used, v).unflatten(0, ctx.heads)  # (B, H, Tq, d)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, weights, used, kept = ctx.saved_tensors
        slope = slopes[0].flatten(0, 1)  # (B H, Tq, d)
        to_weights = torch.bmm(slope, v.mT)  # (B H, Tq, Tk)
        if kept is not None:
            to_weights = (to_weights * kept).mul_(ctx.factor)  # (B H, Tq, Tk)
        to_weights = to_weights.to(weights.dtype)
        to_scores = torch.ops.aten._softmax_backward_data(to_weights, weights, -1, weights.dtype)  # (B H, Tq, Tk)
        to_scores = to_scores.mul_(ctx.scale).to(q.dtype)
        gradients = torch.bmm(to_scores, k), torch.bmm(to_scores.mT, q), torch.bmm(used.mT, slope)
        return (*(gradient.unflatten(0, ctx.heads) for gradient in gradients), None, None)
