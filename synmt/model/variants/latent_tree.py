"""Latent trees as annotations of the source: SA-NMT and its control FA-NMT (Tran & Bisk, 2018).

    β_ij = P(parent of i is j)        β_ii = P(i is the root)        m_i = Σ_j β_ij v_j

q, k and v are projections of the states s. The score of j as the parent of i is q_j · k_i / √D, so
the parent has the query; the score of i as the root is r · k_i / √D, where r is learned. β are the
marginals of all trees with one root (matrix-tree theorem, Koo et al., 2007). In FA-NMT they are
softmax(q_j · k_i / √D) over j: flat attention, where a word may attend to itself. The decoder reads
the annotations m_i with its attention weights for s_i, or with separate ones, and through a gate
(lstm.py).

    sets: 1        s_i + σ(W s_i) ⊙ m_i replaces s_i; the decoder is the plain one
    hard: true     m_i = v_j of the most probable j; the gradient is that of β (straight-through)

The released code multiplies the scores by the identity, so only the root scores have an effect; it
clamps them to [-5, 7], where here they are not clamped (beyond ±57 see blocks/matrix_tree.py), and
gives punctuation -5 instead of -inf. With one set, its flat attention adds m_i without the gate.
EOS is not a word of the tree.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from synmt.data.vocabulary import EOS
from synmt.model.attention import Memory
from synmt.model.blocks.matrix_tree import possible_parents, tree_marginals
from synmt.model.blocks.parents import ParentFilter, straight_through
from synmt.model.variant import Annotation, Place, Syntax, Variant


class LatentTree(Variant):
    """Annotate each source state with the states of its likely parents, in trees learned from
    translation alone.

    normalize: normalization of the scores: `tree`, the marginals of trees, or `flat`, a softmax
        (FA-NMT).
    attention: attention of the decoder to annotations: the weights of its attention to the states
        (`shared`) or a second attention (`separate`).
    sets: number of sets of vectors that the decoder reads: 2, states and annotations; 1, each
        annotation is added to its state.
    hard: whether only the most probable parent is used.
    punctuation: whether punctuation may be a parent.
    """

    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        normalize: Literal["tree", "flat"] = "tree",
        attention: Literal["shared", "separate"] = "shared",
        sets: Literal[1, 2] = 2,
        hard: bool = False,
        punctuation: bool = False,
    ) -> None:
        super().__init__(place)
        self.hard, self.induces_trees = hard, normalize == "tree"
        width = place.model_dim
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.root = nn.Parameter(torch.randn(width)) if normalize == "tree" else None  # (D,)
        self.gate = nn.Linear(width, width, bias=False) if sets == 1 else None
        self.may_be_parent = ParentFilter(() if punctuation else place.punctuation)

    @classmethod
    def annotation_for(cls, *, sets: int, attention: Annotation, **options: Any) -> Annotation:
        """Annotate the states if there are two sets, and edit them if there is one."""
        return attention if sets == 2 else "none"

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Annotate every state, or add the annotation to the state."""
        states = memory.states
        assert syntax.ids is not None
        words, allowed = memory.mask & (syntax.ids != EOS), self.may_be_parent(syntax.ids)  # (B, T)
        # a Transformer encodes EOS, and a lone one is a word
        words = words | memory.mask & ~words.any(1, keepdim=True)  # (B, T)
        weights = self.weights(states, words, allowed)  # (B, T, T)
        used = straight_through(weights) if self.hard else weights  # (B, T, T)
        annotations = used.to(states.dtype) @ self.value(states)  # (B, T, D)
        if self.gate is None:
            return memory.edit(annotations=annotations, weights=weights)
        return memory.edit(
            states=states + self.gate(states).sigmoid() * annotations, weights=weights
        )

    def weights(self, states: Tensor, words: Tensor, allowed: Tensor) -> Tensor:
        """Compute β with parents in columns, from (B, T, D), (B, T) and (B, T): (B, T, T), 0
        outside the sentence."""
        keys = self.key(states) / math.sqrt(states.size(-1))  # (B, T, D)
        scores = keys @ self.query(states).transpose(1, 2)  # (B, T, T)
        if self.root is not None:
            return tree_marginals(scores, keys @ self.root.to(keys.dtype), words, allowed)
        parents = possible_parents(words, allowed)  # (B, T)
        return scores.masked_fill(~parents[:, None], -math.inf).softmax(-1) * words[..., None]
