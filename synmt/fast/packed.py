"""Linear maps for inference: the weight is stored once in the layout in which the processor
multiplies it.

    y = relu(x Wᵀ + b) + r            bias, ReLU and residual are part of one operator

In bf16, x and W are rounded to 8 bits of mantissa and products are summed in float32. On a CPU the
operators are those that torch.compile uses, from oneDNN; where a build of torch lacks them, and on
a GPU, the same is written out. Linear maps in int8 are in `synmt.fast.quantized`.
"""

from __future__ import annotations

import logging
import math
from functools import cache
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.fast.instructions import multiplies
from synmt.fast.linear import FastLinear, linear, pad_rows
from synmt.fast.quantized import QuantizedLinear, multiplies_int8
from synmt.model.device import InferencePrecision, check_precision
from synmt.model.variant import Variant

_logger = logging.getLogger(__name__)
_onednn = torch.ops.mkldnn

_ROWS = 64
"""Rows that the layout is chosen for; it serves every number of rows."""
_SMALL = 1 << 16
"""Numbers in a weight by which few rows are multiplied faster than oneDNN prepares to."""
_WIDE = 256
"""Numbers in a row whose products in int8 save more than rounding the row takes."""


class PackedLinear:
    """y = x Wᵀ + b for one weight (D', D) and bias (D',), without gradients; the weight must not
    change afterwards."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, precision: InferencePrecision = "float32"
    ) -> None:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.bias = None if bias is None else bias.detach().to(dtype)
        self.weight = self._packed = weight.detach().to(dtype)
        self.dtype, self._plain, self._most = dtype, linear, math.inf
        if can_pack(dtype) and weight.device.type == "cpu":
            self._packed = _onednn._reorder_linear_weight(self.weight, _ROWS)
            self._plain, self._most = F.linear, _ROWS
            if dtype != torch.float32 or weight.numel() > _SMALL:
                self.weight, self._most = self._packed, -1

    def __call__(self, x: Tensor) -> Tensor:
        """Compute x Wᵀ + b: (N, D) -> (N, D'), x in the precision of the weight."""
        if len(x) <= self._most:
            return self._plain(x, self.weight, self.bias)
        return _onednn._linear_pointwise(x, self._packed, self.bias, "none", [], "")

    def relu(self, x: Tensor) -> Tensor:
        """Compute relu(x Wᵀ + b): (N, D) -> (N, D')."""
        if len(x) <= self._most:
            return F.relu(self(x))
        return _onednn._linear_pointwise(x, self._packed, self.bias, "relu", [], "")

    def added_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """Compute r + x Wᵀ + b: (N, D'), (N, D) -> (N, D')."""
        if len(x) <= self._most:
            return residual + self(x)
        return _onednn._linear_pointwise.binary(x, residual, self._packed, self.bias, "add")


def packed_weight(
    weight: Tensor, bias: Tensor | None, precision: InferencePrecision
) -> PackedLinear | QuantizedLinear:
    """Pack a weight (D', D) and its bias (D',)."""
    return (
        QuantizedLinear(weight, bias)
        if precision == "int8"
        else PackedLinear(weight, bias, precision)
    )


def packed(layer: nn.Linear, precision: InferencePrecision) -> PackedLinear | QuantizedLinear:
    """Pack the weight of a layer."""
    return packed_weight(layer.weight, layer.bias, precision)


class _ReducedLinear(nn.Linear):
    """A layer that rounds its input and weight to bf16 or int8, and gives back the type of its
    input."""

    multiply: PackedLinear | QuantizedLinear

    def forward(self, input: Tensor) -> Tensor:
        """(…, D) -> (…, D')."""
        rows = pad_rows(input.flatten(0, -2), self.multiply.dtype)  # (P, D)
        output = self.multiply(rows)[: input.shape[:-1].numel()]  # (N, D')
        return output.to(input.dtype).unflatten(0, input.shape[:-1])


def layer_precision(precision: InferencePrecision, width: int) -> InferencePrecision:
    """Return the precision of the layers of a model of this width, apart from its output layer."""
    if precision != "int8" or width >= _WIDE:
        return precision
    return "bf16" if multiplies("bf16") else "float32"


def reduce_layers(model: nn.Module, precision: InferencePrecision) -> None:
    """Make linear layers compute in bf16 or int8, except those of variants; the model cannot be
    trained then."""
    of_variants = {
        part
        for variant in model.modules()
        if isinstance(variant, Variant)
        for part in variant.modules()
    }
    for module in model.modules():
        if (
            isinstance(module, nn.Linear)
            and type(module) in (nn.Linear, FastLinear)
            and module not in of_variants
        ):
            module.__class__ = _ReducedLinear
            cast(_ReducedLinear, module).multiply = packed(module, precision)


def usable_precision(precision: InferencePrecision, device: torch.device) -> InferencePrecision:
    """Return the precision to compute in: float32 where there are no instructions for a lower one,
    which is logged.

    Raises UsageError if there is no such precision.
    """
    check_precision(precision)
    if device.type == "cpu":
        lacks = not (multiplies_int8() if precision == "int8" else multiplies(precision))
        reason = f"this processor has no instructions for {precision}"
    else:
        lacks, reason = precision == "int8", "int8 is for CPUs"
    if lacks:
        _logger.warning("%s, so everything is computed in float32", reason)
        return "float32"
    return precision


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Return whether this build of torch has the operators, and the processor the instructions that
    they need."""
    try:
        x = torch.ones(1, 1, dtype=dtype)
        weight = _onednn._reorder_linear_weight(x, 1)
        _onednn._linear_pointwise.binary(x, x, weight, None, "add")
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True
