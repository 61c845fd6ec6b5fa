"""The inner layer of the feed-forward sub-layer as one function that keeps only its output for the gradient."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from synmt.model.dropout import dropout, scaled_mask
from synmt.model.linear import forward_product, linear_gradients, product_dtype, suits


def dropped_relu(projection: nn.Linear, x: Tensor, probability: float = 0.0) -> Tensor:
    """Compute dropout(relu(x Wᵀ + b)): (…, D) -> (…, D').

    Where the output is positive, the gradient passes, scaled; elsewhere either ReLU or dropout stops it.
    """
    weight, bias, dtype = projection.weight, projection.bias, product_dtype(x)
    wants_gradient = torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)
    if not wants_gradient or not suits(x, dtype) or not suits(weight, dtype):
        return dropout(F.relu(projection(x)), probability)
    return _DroppedRelu.apply(x, weight, bias, probability, dtype)  # type: ignore[return-value]


class _DroppedRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, probability: float, dtype: torch.dtype) -> Tensor:
        ctx.types = x.dtype, weight.dtype
        x, weight = x.to(dtype), weight.to(dtype)
        output = forward_product(x, weight, bias.to(dtype), relu=True)  # (…, D')
        ctx.scale = 1.0
        if probability:
            mask, ctx.scale = scaled_mask(output.shape, probability, dtype)
            output.mul_(mask).mul_(ctx.scale)
        ctx.save_for_backward(x, weight, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight, output = ctx.saved_tensors
        slope = torch.ops.aten.threshold_backward(slopes[0], output, 0)  # (…, D')
        slope = (slope.mul_(ctx.scale) if ctx.scale != 1 else slope).flatten(0, -2)  # (N, D')
        return (*linear_gradients(slope, x, weight, ctx.needs_input_grad, ctx.types), None, None)
