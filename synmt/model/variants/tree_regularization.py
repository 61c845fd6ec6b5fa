"""Tree regularization: TreeReg (Nandi, Manning & Murty, 2024, arXiv 2411.18885).

    score(k) = ⊥(h_k, h_{a-1}) + ⊥(h_b, h_k) + ⊥(h_{k+1}, h_k)        ⊥(x, y) = ‖x - (x·ŷ) ŷ‖
    ŷ = y / ‖y‖

    loss = mean over nodes of -log softmax_k score(k) at the true split

A node of the binary tree covers the pieces a, …, b; a split after piece k makes the pieces a, …, k
its left part. h are the first dimensions of a layer's output. ⊥ is 0 where y is before the first
word. The released code also adds ⊥(h_{b+1}, h_b), which is the same for every k and so changes no
probability. Splits are at the ends of words; a node of two words has one split and teaches nothing.

Each sentence counts as often as it has pieces, so that, divided by the number of target pieces as
the main loss is, the loss is a mean over sentences. The paper trains language models, which see the
left context only, as the layers of a decoder do. There are no parameters, and translation needs no
trees.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from synmt.model.attention import exact
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.constituent_signals import GOLD, SPLIT, SPLITS


class TreeRegularization(Variant):
    """Teach a layer to tell the parts of every phrase apart.

    share: share of the dimensions of the layer's output, the first ones (released code: a quarter).
    """

    learns = (SPLITS,)
    default_layers = (4,)
    only_learns = True

    def __init__(self, place: Place, *, share: Annotated[float, Field(gt=0, le=1)] = 0.25) -> None:
        super().__init__(place)
        self.width = max(1, round(share * place.model_dim))

    def observe(self, x: Tensor, syntax: Syntax) -> None:
        """Learn the true split of every node from the layer's output (B, T, D)."""
        if "splits" in syntax.signals:
            # bfloat16 has no digits left where two states almost agree
            with torch.autocast(x.device.type, enabled=False):
                first = exact(x[..., : self.width])  # (B, T, d)
                self.supervise(syntax, split_loss(first, syntax.signals["splits"]))


def split_loss(states: Tensor, splits: Tensor) -> Tensor:
    """Compute the loss from states (B, T, d) and the rows of the nodes (B, N, T): the sum over
    sentences."""
    gold, text = splits == GOLD, (splits != 0).any(1)  # (B, N, T), (B, T)
    scores = split_scores(residues(states), splits)  # (B, N, T)
    # not -inf: rows of padding have no split at all, and their gradient must stay finite
    scores = scores.masked_fill(splits < SPLIT, torch.finfo(scores.dtype).min)  # (B, N, T)
    losses = scores.logsumexp(-1) - (scores * gold).sum(-1)  # (B, N)
    real = gold.any(-1)  # (B, N)
    means = (losses * real).sum(1) / real.sum(1).clamp(min=1)  # (B,)
    return (means * text.sum(-1)).sum()


def residues(states: Tensor) -> Tensor:
    """Compute ⊥(h_x, h_y), the length of what is left of h_x without its part along h_y: (B, T, d)
    -> (B, T, T)."""
    products = states @ states.mT  # (B, T, T)
    squares = products.diagonal(dim1=1, dim2=2)  # (B, T)
    along = products.square() / squares[:, None].clamp(min=1e-12)  # (B, T, T)
    # a root has no gradient at 0
    return (squares[..., None] - along).clamp(min=1e-12).sqrt()


def split_scores(residue: Tensor, splits: Tensor) -> Tensor:
    """Score a split after each piece: ⊥ (B, T, T), the rows of the nodes (B, N, T) -> (B, N, T)."""
    length, inside = splits.size(-1), splits > 0  # (B, N, T)
    places = torch.arange(length, device=splits.device)  # (T,)
    first = torch.where(inside, places, length).amin(-1)  # (B, N)
    last = torch.where(inside, places, 0).amax(-1)  # (B, N)
    start = torch.where((splits != 0).any(1), places, length).amin(-1)  # (B,)
    left = (
        _rows(residue.mT, first - 1) * (first > start[:, None])[..., None]
    )  # (B, N, T) ⊥(h_k, h_{a-1})
    right = _rows(residue, last)  # (B, N, T) ⊥(h_b, h_k)
    after = residue.diagonal(offset=-1, dim1=1, dim2=2)  # (B, T - 1) ⊥(h_{k+1}, h_k)
    return left + right + torch.nn.functional.pad(after, (0, 1))[:, None]


def _rows(table: Tensor, numbers: Tensor) -> Tensor:
    """Select rows of a table (B, T, T) by their numbers (B, N): (B, N, T)."""
    numbers = numbers.clamp(0, table.size(1) - 1)[..., None].expand(
        -1, -1, table.size(2)
    )  # (B, N, T)
    return table.gather(1, numbers)
