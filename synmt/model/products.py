"""Products of matrices around the output layer, where a loss computes its gradient by itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class Products:
    """Products by torch; `synmt.fast` has faster ones."""

    def padded(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Convert (N, D) to a precision; rows of zeros may follow: (P, D)."""
        return x.to(dtype)

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Compute x Wᵀ without a gradient: (N, D), (D', D) -> (N, D')."""
        return F.linear(x, weight)

    def add_outer(self, total: Tensor, slope: Tensor, x: Tensor) -> None:
        """Add sᵀ x to a total: (D', D), (N, D'), (N, D)."""
        total.add_(slope.T @ x)
