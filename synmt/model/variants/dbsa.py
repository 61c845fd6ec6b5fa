"""Dependency-based self-attention (Deguchi, Tamura & Ninomiya, 2019).

    S_tj = (q_t U) · k_j / √d + k_j · u        loss = λ · - Σ_t log softmax(S_t)[parent of t]

q and k are the head's ordinary projections. The last piece of a word has the first piece of the parent word for
its parent, the root's last piece has itself, and every other piece has the next piece of its word. The loss counts the
pieces of words, not BOS, EOS or padding. On the target the future is masked, and a piece whose parent stands to
its right teaches nothing. λ is the recipe's `loss_weight`. Translating needs no parser.

Equation 14 adds Q U₂, all columns of U₂ alike: the same number for every key, which a softmax ignores. The bias stands
here with the key, as in Dozat & Manning (2017) and in the released code. That code differs in other ways: where it
decodes step by step, it adds k · u of the newest key to all keys; here each key keeps its own, as in training.
One matrix mixes several heads, which share one bias; here each has its own U and u, and the loss is their mean. Its
defaults are the first layer and λ = 0.5 (paper: 4 and 1), and it multiplies the loss by tokens per dependency.
"""

from __future__ import annotations

import math

from synmt.model.attention import Terms
from synmt.model.biaffine import Biaffine, parent_loss
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import PARENT_CHAIN, WORD


class Dbsa(Variant):
    """Let a head attend to dependency parents that it learns to find; for the source, the target or both."""

    learns = (PARENT_CHAIN, WORD)
    default_layers = (4,)
    default_heads = 1

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.biaffine = Biaffine(place.heads, place.head_dim, gain=1 / math.sqrt(2))

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Replace q by q U, fill the bias with k · u, and learn the parents where they are known."""
        edited = self.biaffine(terms)
        if all(signal.name in syntax.signals for signal in self.learns):
            parents, words = syntax.signals["parent_chain"], syntax.signals["word"]  # (B, T), (B, T)
            self.supervise(syntax, parent_loss(edited.scores(), parents, words >= 0))
        return edited
