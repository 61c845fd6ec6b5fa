"""Linguistically-informed self-attention for translation (Bugliarello & Okazaki, 2020, appendix A).

    [q; k] = leaky_relu(W x + b)        S_tj = (q_t U) · k_j + k_j · u        loss = - Σ_t log softmax(S_t)[parent of t]

After Strubell et al. (2018): one head attends to the parents that it learns to find. Its queries and keys come from a
feed-forward layer of their own, its values are the ordinary ones, and its scores are not divided by √d. The parent
of a piece is the first piece of the parent word, and of the root's pieces the root's own first. The loss counts the
pieces of words, not EOS or padding, and has weight 1. Translating needs no parser.

The released code lets the softmax run over padding, takes the cross-entropy of weights instead of scores and
along the queries instead of the keys, counts EOS and padding in it, and leaves U uninitialised; here the equations hold
for each sentence alone.
"""

from __future__ import annotations

import math

import torch.nn.functional as F

from synmt.errors import UsageError
from synmt.model.attention import Terms, split_heads, xavier
from synmt.model.biaffine import Biaffine, parent_loss
from synmt.model.linear import Linear
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import PARENT_FIRST, WORD


class Lisa(Variant):
    """Let a head attend to dependency parents that it learns to find, with queries and keys of its own."""

    learns = (PARENT_FIRST, WORD)
    sides = ("source",)
    default_heads = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError("lisa learns the parse of the source", allowed="side: source")
        self.project = xavier(Linear(place.model_dim, place.heads * 2 * place.head_dim), parts=place.heads)
        self.biaffine = Biaffine(place.heads, place.head_dim)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace q and k by those of the biaffine score, and learn the parents where they are known."""
        features = F.leaky_relu(self.project(terms.x), 0.01)  # (B, T, H · 2d)
        q, k = split_heads(features, self.place.heads).chunk(2, -1)  # (B, H, T, d), (B, H, T, d)
        # the division by √d is undone beforehand
        edited = self.biaffine(terms.edit(q=q * math.sqrt(q.size(-1)), k=k))
        if all(signal.name in syntax.signals for signal in self.learns):
            parents, words = syntax.signals["parent_first"], syntax.signals["word"]  # (B, T), (B, T)
            self.supervise(syntax, parent_loss(edited.scores(), parents, words >= 0))
        return edited
