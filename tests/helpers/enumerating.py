"""Sums over all trees of a few words, written down."""

from __future__ import annotations

import small
import torch
import torch.nn.functional as F
from torch import Tensor


def all_trees(words: int) -> Tensor:
    """Write down the parents of every tree, a root being its own: (trees, W)."""
    return torch.from_numpy(small.all_trees(words))


def enumerated(
    scores: Tensor, roots: Tensor, may_be_parent: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Weigh every tree: the marginals (W, W) [child, parent] and log Z."""
    words = len(roots)
    trees = all_trees(words)
    if may_be_parent is not None:
        trees = trees[may_be_parent[trees].all(-1)]
    potentials = torch.where(torch.eye(words, dtype=torch.bool), roots[:, None], scores)
    weights = potentials[torch.arange(words), trees].sum(-1)  # (trees,)
    arcs = F.one_hot(trees, words).double()  # (trees, W, W)
    return torch.einsum("t,tmh->mh", weights.softmax(0), arcs), weights.logsumexp(0)
