"""The inner layer of the feed-forward sub-layer, with a gradient that needs only its output."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from synmt.fast.dropout import dropout, scaled_mask
from synmt.fast.linear import linear_gradients, mapped, onednn_applies, pad_rows, product_dtype


def dropped_relu(projection: nn.Linear, x: Tensor, probability: float = 0.0) -> Tensor:
    """Compute dropout(relu(x Wᵀ + b)): (…, D) -> (…, D').

    Where the output is positive, the gradient passes, scaled; elsewhere either ReLU or dropout
    stops it.
    """
    weight, bias, dtype = projection.weight, projection.bias, product_dtype(x)
    wants_gradient = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    if not wants_gradient or not onednn_applies(x, dtype) or not onednn_applies(weight, dtype):
        return dropout(F.relu(projection(x)), probability)
    return _DroppedRelu.apply(x, weight, bias, probability, dtype)  # type: ignore[return-value]


class _DroppedRelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, probability: float, dtype: torch.dtype
    ) -> Tensor:
        ctx.shape, ctx.types = x.shape, (x.dtype, weight.dtype)
        rows, weight = pad_rows(x.reshape(-1, x.size(-1)), dtype), weight.to(dtype)  # (P, D)
        output = mapped(rows, x.shape, weight, bias, relu=True)  # (…, D')
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
        return (
            *linear_gradients(ctx, slope.mul_(ctx.scale) if ctx.scale != 1 else slope),
            None,
            None,
        )
