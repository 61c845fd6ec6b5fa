"""Parts of heads that find dependency parents: biaffine scores (after Dozat & Manning, 2017), the
loss on a gold tree, and for latent trees which pieces may be parents and the choice of one.

    S_tj = (q_t U) · k_j / √d + k_j · u        loss = - Σ_t log softmax(S_t)[parent of t]

The first term is an edited q and the second a bias for each key, so the fused kernel can compute
the attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synmt.model.attention import Terms


class Biaffine(nn.Module):
    """U and u of every head; U is initialized by Xavier's rule times `gain`, u by zeros."""

    def __init__(self, heads: int, head_dim: int, *, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))  # (H, d, d)
        self.key_bias = nn.Parameter(torch.zeros(heads, head_dim))  # (H, d)
        for weight in self.weight:
            nn.init.xavier_uniform_(weight, gain)

    def forward(self, terms: Terms) -> Terms:
        """Replace q by q U and set the bias to k · u, one number for each key: (B, H, 1, Tk)."""
        q = terms.q @ self.weight  # (B, H, Tq, d)
        bias = terms.k @ self.key_bias[..., None]  # (B, H, Tk, 1)
        return terms.edit(q=q, bias=bias.transpose(-1, -2))


def parent_loss(scores: Tensor, parents: Tensor, supervised: Tensor) -> Tensor:
    """Sum -log softmax(scores) at the parents over the batch, in nats, and average over the heads:
    ().

    scores: (B, H, T, T), -inf where a query may not attend.
    parents: (B, T), position of the parent; any number where `supervised` is False.
    supervised: (B, T), True at positions with a parent; those whose parent is masked are dropped.
    """
    parents = parents.where(supervised, 0)  # (B, T)
    gold = parents[:, None, :, None].expand(-1, scores.size(1), -1, -1)  # (B, H, T, 1)
    hidden = scores.gather(-1, gold).isneginf()  # (B, H, T, 1)
    dropped = hidden | ~supervised[:, None, :, None]  # (B, H, T, 1)
    # a dropped row may be all -inf, and then the softmax and its gradient are nan
    rows = scores.masked_fill(dropped, 0.0)  # (B, H, T, T)
    log_likelihood = rows.log_softmax(-1).gather(-1, gold)  # (B, H, T, 1)
    return -log_likelihood.masked_fill(dropped, 0.0).sum() / scores.size(1)


class ParentFilter(nn.Module):
    """Marks the pieces that may be parents: all of a vocabulary except the excluded ones
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
