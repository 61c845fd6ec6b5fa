"""Attention as three products with their own gradient.

In bfloat16, the gradient of torch's fused kernel takes five times as long on a CPU (torch 2.13),
with dropout there is no fused kernel, and it has no gradient of a bias. On other devices and in
compiled models, torch computes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from synmt.fast.dropout import draws_fast, dropout, scaled_mask
from synmt.model.attention import Terms, attend, softmax


def attend_fast(terms: Terms, probability: float = 0.0) -> Tensor:
    """Compute O in the fastest way that can handle these terms: (B, H, Tq, d)."""
    if not outruns_torch(terms, probability):
        return attend(terms, probability, dropout)
    q, k, v, mask = terms.q, terms.k, terms.v, terms.mask
    output, weights = masked_attention(
        q, k, v, mask, probability, factor=terms.factor, bias=terms.bias
    )
    return output if terms.relative is None else output + terms.relative.sums(weights)


def outruns_torch(terms: Terms, probability: float) -> bool:
    """Return whether `masked_attention` is faster than torch's kernel or single steps; a factor may
    not be learned."""
    q, factor, bias = terms.q, terms.factor, terms.bias
    if (
        terms.position is not None
        or terms.normalize is not softmax
        or (factor is not None and factor.requires_grad)
    ):
        return False
    if not (draws_fast(q) and torch.is_grad_enabled() and q.requires_grad):
        return False
    has_kernel = (
        factor is None and terms.relative is None and (bias is None or not bias.requires_grad)
    )
    return not has_kernel or probability > 0 or q.dtype == torch.bfloat16


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
        scores = (
            torch.bmm(q, k.mT).to(exact).unflatten(0, ctx.heads).mul_(ctx.scale)
        )  # (B, H, Tq, Tk)
        ctx.bias = None if bias is None else (bias.shape, bias.dtype)
        if bias is not None:
            scores.add_(bias)
        if mask is not None:
            scores.masked_fill_(~mask, -math.inf)
        weights = scores.flatten(0, 1).softmax(-1)  # (B H, Tq, Tk)
        used, dropout_mask, ctx.kept_scale = weights.to(q.dtype), None, 1.0
        if dropout:
            dropout_mask, ctx.kept_scale = scaled_mask(used.shape, dropout, q.dtype)
            used = (used * dropout_mask).mul_(ctx.kept_scale)  # (B H, Tq, Tk)
        ctx.save_for_backward(q, k, v, weights, used, dropout_mask)
        ctx.set_materialize_grads(False)
        return torch.bmm(used, v).unflatten(0, ctx.heads), used.unflatten(0, ctx.heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor | None) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, weights, used, dropout_mask = ctx.saved_tensors
        slope, slope_of_weights = (
            None if slope is None else slope.flatten(0, 1) for slope in slopes
        )
        if slope is None:
            slope = torch.zeros_like(q)  # (B H, Tq, d)
        to_weights = torch.bmm(slope, v.mT)  # (B H, Tq, Tk)
        if slope_of_weights is not None:
            to_weights += slope_of_weights
        if dropout_mask is not None:
            to_weights = (to_weights * dropout_mask).mul_(ctx.kept_scale)  # (B H, Tq, Tk)
        to_weights = to_weights.to(weights.dtype)
        to_scores = torch.ops.aten._softmax_backward_data(
            to_weights, weights, -1, weights.dtype
        )  # (B H, Tq, Tk)
        to_scores = to_scores.unflatten(0, ctx.heads)  # (B, H, Tq, Tk)
        to_bias = None
        if ctx.needs_input_grad[6]:
            shape, dtype = ctx.bias
            to_bias = to_scores.sum_to_size(shape).to(dtype)
        # the gradient of a bias may be the very same memory
        scaled = to_scores.mul_(ctx.scale) if to_bias is None else to_scores * ctx.scale
        to_scores = scaled.flatten(0, 1).to(q.dtype)  # (B H, Tq, Tk)
        gradients = torch.bmm(to_scores, k), torch.bmm(to_scores.mT, q), torch.bmm(used.mT, slope)
        return (
            *(gradient.unflatten(0, ctx.heads) for gradient in gradients),
            None,
            None,
            None,
            to_bias,
        )
