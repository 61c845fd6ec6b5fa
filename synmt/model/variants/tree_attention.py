"""Heads whose weights are marginals of dependency trees: structured attention (Kim et al., 2017) in
a Transformer.

    S_tj = q_t · k_j / √d        O_t = Σ_j P_tj v_j        P_tj = P(parent of t is j)
    P_tt = P(t is the root)

The marginals P of all trees with one root (matrix-tree theorem, Koo et al., 2007) replace the
softmax. S_tj is the score of j as the parent of t; S_tt, which a tree does not use otherwise, is
the score of t as the root. So the head has only the ordinary weights. Kim et al. use projective
trees and separate scores for pairs; Tran & Bisk (2018) use these trees to annotate the states of an
LSTM (latent_tree). No published system has them in the heads of a Transformer. EOS is not a word of
the tree and attends to itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt.data.vocabulary import EOS
from synmt.model.attention import Terms
from synmt.model.blocks.matrix_tree import tree_marginals
from synmt.model.blocks.parents import ParentFilter, straight_through
from synmt.model.variant import Place, Syntax, Variant


class TreeAttention(Variant):
    """Let heads attend to parents in trees that are learned from translation alone.

    hard: whether a head attends to the most probable parent only; the gradient is that of the
        marginals (straight-through).
    punctuation: whether punctuation may be a parent.
    """

    sides = ("source",)
    induces_trees = True
    default_heads = 1

    def __init__(self, place: Place, *, hard: bool = False, punctuation: bool = False) -> None:
        super().__init__(place)
        self.hard = hard
        self.may_be_parent = ParentFilter(() if punctuation else place.punctuation)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace the softmax by the marginals."""
        assert terms.mask is not None
        assert syntax.ids is not None
        words = terms.mask[:, 0, 0] & (syntax.ids != EOS)  # (B, T)
        allowed = self.may_be_parent(syntax.ids)  # (B, T)

        def normalize(scores: Tensor) -> Tensor:
            roots = scores.diagonal(dim1=-2, dim2=-1)  # (B, H, T)
            weights = tree_marginals(
                scores, roots, words[:, None], allowed[:, None]
            )  # (B, H, T, T)
            if self.hard:
                weights = straight_through(weights)  # (B, H, T, T)
            return weights + torch.diag_embed(~words[:, None]).to(weights.dtype)  # (B, H, T, T)

        return terms.edit(normalize=normalize)
