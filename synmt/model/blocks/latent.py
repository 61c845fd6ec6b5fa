"""Parts of the variants with latent trees: which pieces may be parents, and the choice of one
parent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ParentFilter(nn.Module):
    """Tells which pieces may be parents: all of a vocabulary except the excluded ones
    (punctuation)."""

    excluded: Tensor

    def __init__(self, excluded: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer(
            "excluded", torch.tensor(excluded, dtype=torch.int64), persistent=False
        )

    def forward(self, ids: Tensor) -> Tensor:
        """Mark the pieces that may be parents: (B, T) -> (B, T), boolean."""
        return ~torch.isin(ids, self.excluded)


def straight_through(weights: Tensor) -> Tensor:
    """Put 1 at the largest weight of each row and 0 elsewhere, with the gradient of the weights:
    (…, T) -> (…, T).

    A row of zeros stays zero.
    """
    largest, place = weights.detach().max(-1, keepdim=True)  # (…, 1), (…, 1)
    one_hot = torch.zeros_like(weights).scatter(
        -1, place, (largest > 0).to(weights.dtype)
    )  # (…, T)
    return one_hot + (weights - weights.detach())
