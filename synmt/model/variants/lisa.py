"""Linguistically-informed self-attention for translation (Bugliarello & Okazaki, 2020, appendix A).

    [q; k] = leaky_relu(W x + b)        S_tj = (q_t U) · k_j + k_j · u
    loss = - Σ_t log softmax(S_t)[parent of t]

After Strubell et al. (2018): one head learns to attend to dependency parents. Its queries and keys
come from an extra feed-forward layer, its values are the ordinary ones, and its scores are not
divided by √d. The parent of a piece is the first piece of the parent word; for the pieces of the
root it is the first piece of the root. The loss is summed over the pieces of words, without EOS and
padding, and has weight 1. Translating needs no parser.

The released code includes padding in the softmax, takes the cross-entropy of weights instead of
scores and along the queries instead of the keys, includes EOS and padding in it, and leaves U
uninitialized; here the equations hold for each sentence alone.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import nn

from synmt.model.attention import Terms, split_heads, xavier
from synmt.model.blocks.parents import Biaffine, parent_loss
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import PARENT_FIRST, WORD


class Lisa(Variant):
    """Let a head learn to attend to dependency parents, with its own queries and keys."""

    learns = (PARENT_FIRST, WORD)
    sides = ("source",)
    default_heads = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.project = xavier(
            nn.Linear(place.model_dim, place.heads * 2 * place.head_dim), parts=place.heads
        )
        self.biaffine = Biaffine(place.heads, place.head_dim)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace q and k by those of the biaffine score; in training, learn the parents."""
        features = F.leaky_relu(self.project(terms.x), 0.01)  # (B, T, H · 2d)
        q, k = split_heads(features, self.place.heads).chunk(2, -1)  # (B, H, T, d), (B, H, T, d)
        # this cancels the division by √d
        edited = self.biaffine(terms.edit(q=q * math.sqrt(q.size(-1)), k=k))
        if gold := self.gold(syntax):
            parents, words = gold  # (B, T), (B, T)
            self.supervise(syntax, parent_loss(edited.scores(), parents, words >= 0))
        return edited
