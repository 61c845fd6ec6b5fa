"""Biaffine attention to dependency parents (after Dozat & Manning, 2017), and its loss on a gold
tree.

    S_tj = (q_t U) · k_j / √d + k_j · u        loss = - Σ_t log softmax(S_t)[parent of t]

The first term is an edited q and the second a bias for each key, so the fused kernel can compute
the attention.
"""

from __future__ import annotations

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
