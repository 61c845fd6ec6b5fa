"""Linear maps in int8 for inference (Jacob et al., 2018, equation 1, with symmetric scales, one for
each row):

    y_mn = s_m t_n Σ_k q_mk w_nk + b_n,    q_mk = round(x_mk / s_m),    w_nk = round(W_nk / t_n)

s_m is the largest |x_mk| of a row divided by 127, t_n that of a row of W divided by 127, or by 64
on a processor without VNNI, whose sum of two products has only 16 bits. The sum is one of integers,
so it is exact, and a row does not depend on the other rows. Products are oneDNN's, as in PyTorch's
quantized models.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

_LARGEST = 127
_LARGEST_WITHOUT_VNNI = 64
"""Of weights: the largest |w| with 2 · 255 w < 2¹⁵, where 255 is the largest unsigned input."""
_ZERO = 128
"""What oneDNN subtracts from an unsigned input: products of signed ones are not fast on all
processors."""
_ROWS = 64
_SMALLEST = torch.finfo(torch.float32).tiny


class QuantizedLinear:
    """y = x Wᵀ + b for one weight (D', D) and bias (D',), without gradients, with the interface of
    `PackedLinear`."""

    dtype = torch.float32

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        weight = weight.detach().float()
        quantized, scale = quantize_rows(weight, _LARGEST if _has_vnni() else _LARGEST_WITHOUT_VNNI)
        self.bias = None if bias is None else bias.detach().float()
        self._scale = scale.flatten()
        self._zeros = torch.zeros(len(weight), dtype=torch.int32)
        self._weight = torch.ops.onednn.qlinear_prepack(quantized, [_ROWS, weight.size(1)])

    def __call__(self, x: Tensor) -> Tensor:
        """Compute x Wᵀ + b: (N, D) -> (N, D')."""
        quantized, scale = quantize_rows(x.detach().float())
        # two's complement with the other sign bit is the number plus 128
        unsigned = quantized.view(torch.uint8).bitwise_xor_(_ZERO)
        sums = torch.ops.onednn.qlinear_pointwise(
            unsigned,
            1.0,
            _ZERO,
            self._weight,
            self._scale,
            self._zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )  # (N, D'), t_n Σ_k q_mk w_nk
        if self.bias is None:
            return sums.mul_(scale)
        return torch.addcmul(self.bias, sums, scale, out=sums)

    def relu(self, x: Tensor) -> Tensor:
        """Compute relu(x Wᵀ + b): (N, D) -> (N, D')."""
        return self(x).relu_()

    def added_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """Compute r + x Wᵀ + b: (N, D'), (N, D) -> (N, D')."""
        return self(x).add_(residual)


def quantize_rows(x: Tensor, limit: int = _LARGEST) -> tuple[Tensor, Tensor]:
    """Round each row to integers from -limit to limit: (N, D) -> int8 (N, D), scales (N, 1)."""
    # without |x|, whose memory takes longer than a second look
    largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True)).clamp_min_(
        _SMALLEST
    )  # (N, 1)
    # a conversion to int8 cuts off
    return (x * (limit / largest)).round_().to(torch.int8), largest / limit


def _has_vnni() -> bool:
    return getattr(torch.cpu, "_is_vnni_supported", bool)()


@cache
def multiplies_int8() -> bool:
    """Return whether the processor has fast instructions for int8, and torch computes with them
    exactly."""
    if not getattr(torch.cpu, "_is_avx2_supported", bool)():
        return False
    # the largest sums: here they saturate first
    weight = torch.full((1, 64), 1.0)
    try:
        sums = [sign * QuantizedLinear(sign * weight, None)(weight).item() for sign in (1, -1)]
    except (AttributeError, RuntimeError, TypeError):
        return False
    return all(math.isclose(result, 64.0, rel_tol=1e-5) for result in sums)
