"""What the variants with latent trees share: which pieces may be parents, and the choice of one of them."""

from __future__ import annotations

import torch
from torch import Tensor


def possible_parents(words: Tensor, ids: Tensor, excluded: Tensor) -> Tensor:
    """Tell which words may be parents; all of a sentence in which otherwise none could: (B, T).

    words: (B, T), True at the words of the tree.
    ids: (B, T) pieces.
    excluded: (P,) pieces that may not be parents.
    """
    parents = words & ~torch.isin(ids, excluded)  # (B, T)
    return parents | words & ~parents.any(-1, keepdim=True)  # (B, T)


def straight_through(weights: Tensor) -> Tensor:
    """Put 1 at the largest weight of each row and 0 elsewhere, with the gradient of the weights: (…, T) -> (…, T).

    A row of zeros stays one.
    """
    largest, place = weights.detach().max(-1, keepdim=True)  # (…, 1), (…, 1)
    chosen = torch.zeros_like(weights).scatter(-1, place, (largest > 0).to(weights.dtype))  # (…, T)
    return chosen + (weights - weights.detach())
