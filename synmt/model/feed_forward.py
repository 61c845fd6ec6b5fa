"""Feed-forward sub-layers with other functions than ReLU."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from synmt.fast.fused import dropout
from synmt.model.attention import xavier


class Gelu(nn.Module):
    """Two projections with GELU, x Φ(x), between them (Hendrycks & Gimpel, 2016)."""

    activation: Callable[[Tensor], Tensor] = staticmethod(F.gelu)
    parts, bias = 1, True

    def __init__(self, model_dim: int, inner_dim: int, dropout: float) -> None:
        super().__init__()
        self.inner = xavier(nn.Linear(model_dim, self.parts * inner_dim, bias=self.bias), self.parts)
        self.output = xavier(nn.Linear(inner_dim, model_dim, bias=self.bias))
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        inner = self.activation(self.inner(x))  # (B, T, F)
        return self.output(dropout(inner, self.dropout if self.training else 0.0))


def gated(x: Tensor) -> Tensor:
    """Multiply the second half by Swish, z σ(z), of the first: (…, 2 F) -> (…, F)."""
    gate, value = x.chunk(2, -1)  # (…, F) both
    return F.silu(gate) * value


class Swiglu(Gelu):
    """SwiGLU (Shazeer, 2020): (Swish(x W) ⊙ x V) U without biases; W and V are joined in `inner`."""

    activation = staticmethod(gated)
    parts, bias = 2, False
