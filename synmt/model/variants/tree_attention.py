"""Heads that attend by the marginals of dependency trees: structured attention (Kim et al., 2017) in a Transformer.

    S_tj = q_t · k_j / √d        O_t = Σ_j P(parent of t is j) v_j        P(t is the root) stands at j = t

The marginals of all trees with one root (matrix-tree theorem, Koo et al., 2007) take the place of the softmax. S_tj is
the score of j as the parent of t, and S_tt, which a tree does not need, that of t as the root; so the head has no
weights but the ordinary ones. Kim et al. use projective trees and a score of their own for each pair, Tran & Bisk
(2018) these trees beside an LSTM's states (latent_tree); no published system has them in the heads of a Transformer.
EOS attends to itself and is no word of the tree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt.data.vocabulary import EOS
from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.latent import Allowed, straight_through
from synmt.model.matrix_tree import tree_marginals
from synmt.model.variant import Place, Syntax, Variant


class TreeAttention(Variant):
    """Let heads attend to the parents in trees that translation alone has taught.

    hard: attend to the most probable parent alone; the gradient is that of the marginals (straight-through).
    punctuation: whether punctuation may be a parent.
    """

    gives_trees = True
    sides = ("source",)
    default_heads = 1

    def __init__(self, place: Place, *, hard: bool = False, punctuation: bool = False) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError(
                "tree_attention reads whole sentences: a decoder does not see its future", allowed="side: source"
            )
        self.hard = hard
        self.allowed = Allowed(() if punctuation else place.punctuation)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace the softmax by the marginals."""
        assert terms.mask is not None
        assert syntax.ids is not None
        words = terms.mask[:, 0, 0] & (syntax.ids != EOS)  # (B, T)
        allowed = self.allowed(syntax.ids)  # (B, T)

        def normalize(scores: Tensor) -> Tensor:
            roots = scores.diagonal(dim1=-2, dim2=-1)  # (B, H, T)
            weights = tree_marginals(scores, roots, words[:, None], allowed[:, None])  # (B, H, T, T)
            if self.hard:
                weights = straight_through(weights)  # (B, H, T, T)
            return weights + torch.diag_embed(~words[:, None]).to(weights.dtype)  # (B, H, T, T)

        return terms.edit(normalize=normalize)
