"""What the variants with latent trees share: which pieces may be parents, and the choice of one of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Allowed(nn.Module):
    """Tells which pieces of a vocabulary may be parents: all but the excluded ones, which are punctuation."""

    excluded: Tensor

    def __init__(self, excluded: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("excluded", torch.tensor(excluded, dtype=torch.int64), persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Look at pieces (B, T): (B, T), True where one may be a parent."""
        return ~torch.isin(ids, self.excluded)


def straight_through(weights: Tensor) -> Tensor:
    """Put 1 at the largest weight of each row and 0 elsewhere, with the gradient of the weights: (…, T) -> (…, T).

    A row of zeros stays one.
    """
    largest, place = weights.detach().max(-1, keepdim=True)  # (…, 1), (…, 1)
    chosen = torch.zeros_like(weights).scatter(-1, place, (largest > 0).to(weights.dtype))  # (…, T)
    return chosen + (weights - weights.detach())
