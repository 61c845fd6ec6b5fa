"""Dependency-based self-attention (Deguchi, Tamura & Ninomiya, 2019).

    S_tj = (q_t U) · k_j / √d + k_j · u        loss = λ · - Σ_t log softmax(S_t)[parent of t]

q and k are the head's ordinary projections. The parent of the last piece of a word is the first
piece of the parent word, for the last piece of the root it is that piece itself, and for every
other piece it is the next piece of the word. The loss is summed over the pieces of words, without
BOS, EOS and padding. On the target side the future is masked, and a piece whose parent is to its
right adds no loss. λ is the recipe's `loss_weight`. Translating needs no parser.

Equation 14 adds Q U₂, where all columns of U₂ are equal: the same number for every key, which a
softmax ignores. Here the bias depends on the key, as in Dozat & Manning (2017) and in the released
code. That code differs in other ways. In step-by-step decoding it adds k · u of the newest key to
all keys; here each key keeps its own, as in training. One matrix mixes several heads, which share
one bias; here each head has its own U and u, and the loss is their mean. Its defaults are the first
layer and λ = 0.5 (paper: 4 and 1), and it multiplies the loss by tokens per dependency.
"""

from __future__ import annotations

import math

from synmt.model.attention import Terms
from synmt.model.blocks.parents import Biaffine, parent_loss
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import PARENT_CHAIN, WORD


class Dbsa(Variant):
    """Let a head learn to attend to dependency parents; for the source, the target or both."""

    learns = (PARENT_CHAIN, WORD)
    default_layers = (4,)
    default_heads = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.biaffine = Biaffine(place.heads, place.head_dim, gain=1 / math.sqrt(2))

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace q by q U and set the bias to k · u; in training, learn the parents."""
        edited = self.biaffine(terms)
        if gold := self.gold(syntax):
            parents, words = gold  # (B, T), (B, T)
            self.supervise(syntax, parent_loss(edited.scores(), parents, words >= 0))
        return edited
