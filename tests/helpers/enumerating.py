"""All trees of a few words, written down, and the sums over them."""

from __future__ import annotations

from functools import cache
from itertools import product

import torch
import torch.nn.functional as F
from small import is_tree
from torch import Tensor


@cache
def all_trees(words: int) -> Tensor:
    """Write down the parents of every tree, a root being its own: (trees, W)."""
    return torch.tensor(
        [parents for parents in product(range(words), repeat=words) if is_tree(parents)]
    )


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
