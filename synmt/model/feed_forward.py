"""Feed-forward sub-layers: two projections with a function between them."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import xavier


class FeedForward(nn.Module):
    """Two projections with a ReLU between them (Vaswani et al., 2017, section 3.3)."""

    activation: Callable[[Tensor], Tensor] = staticmethod(F.relu)
    parts, bias = 1, True

    def __init__(self, model_dim: int, inner_dim: int, dropout: float) -> None:
        super().__init__()
        self.inner = xavier(
            nn.Linear(model_dim, self.parts * inner_dim, bias=self.bias), self.parts
        )
        self.output = xavier(nn.Linear(inner_dim, model_dim, bias=self.bias))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.output(self.dropout(self.activation(self.inner(x))))


class Gelu(FeedForward):
    """Two projections with GELU, x Φ(x), between them (Hendrycks & Gimpel, 2016)."""

    activation = staticmethod(F.gelu)


def gated(x: Tensor) -> Tensor:
    """Multiply the second half by Swish, z σ(z), of the first: (…, 2 F) -> (…, F)."""
    gate, value = x.chunk(2, -1)  # (…, F) both
    return F.silu(gate) * value


class Swiglu(FeedForward):
    """SwiGLU (Shazeer, 2020): (Swish(x W) ⊙ x V) U without biases; W and V are joined in
    `inner`."""

    activation = staticmethod(gated)
    parts, bias = 2, False
