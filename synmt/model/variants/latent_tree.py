"""Latent trees as annotations of the source: SA-NMT and its control FA-NMT (Tran & Bisk, 2018).

    β = P(parent of i is j; q k / √D, r k / √D)        m_i = Σ_j β_ij v_j        β_ii = P(i is the root)

q, k and v are projections of the encoder's states s; the score of j as the parent of i is q_j · k_i / √D, with the
query on the parent's side, and r is a query for the root. β are the marginals of all trees with one root (matrix-tree
theorem, Koo et al., 2007). In FA-NMT they are softmax(q_j · k_i / √D) over j, flat attention, in which a word may
attend to itself. The decoder reads m_i with the weights by which it attends to s_i, or with its own, and through a gate
(recurrent.py).

    sets: 1        s_i + σ(W s_i) ⊙ m_i takes the place of s_i, and nothing else changes in the decoder
    hard: true     m_i = v_j of the most probable j; the gradient is that of β (straight-through)

The released code multiplies the scores by the identity, so that only the root scores reach the tree; it holds them
between -5 and 7, where here they are what they are (beyond ±57 see matrix_tree.py), and gives punctuation -5 instead of
-inf. With one set, its flat attention adds m_i without the gate. EOS is no word of the tree.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from synmt.errors import UsageError
from synmt.model.attention import Memory
from synmt.model.latent import Allowed, straight_through
from synmt.model.linear import Linear
from synmt.model.matrix_tree import possible_parents, tree_marginals
from synmt.model.variant import Place, Syntax, Variant


class LatentTree(Variant):
    """Annotate each source state with the states of its likely parents, in a tree that translation alone has taught.

    normalize: tree, the marginals of trees; flat, a softmax (FA-NMT).
    attention: shared, the decoder reads annotations with the weights of its attention to the states; separate, with
        an attention of their own.
    sets: 2, states and annotations; 1, each annotation is added to its state.
    hard: take the most probable parent alone.
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
        if place.side != "source":
            raise UsageError("latent_tree annotates the source", allowed="side: source")
        if place.layer != 1:
            raise UsageError("latent_tree annotates the encoder's result, once", allowed="layers: [1]")
        if sets == 1 and attention == "separate":
            raise UsageError("one set is read with one attention", do="Leave out `attention`, or set `sets: 2`")
        self.hard, self.gives_trees = hard, normalize == "tree"
        self.annotation = attention if sets == 2 else "none"
        width = place.model_dim
        self.query, self.key, self.value = (Linear(width, width, bias=False) for _ in range(3))
        self.root = nn.Parameter(torch.randn(width)) if normalize == "tree" else None  # (D,)
        self.gate = Linear(width, width) if sets == 1 else None
        self.allowed = Allowed(() if punctuation else place.punctuation)

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Give every state its annotation, or add it to the state."""
        states = memory.states
        assert syntax.ids is not None
        weights = self.weights(memory, self.allowed(syntax.ids))  # (B, T, T)
        chosen = straight_through(weights) if self.hard else weights  # (B, T, T)
        annotations = chosen.to(states.dtype) @ self.value(states)  # (B, T, D)
        if self.gate is None:
            return memory.edit(annotations=annotations, weights=weights)
        return memory.edit(states=states + self.gate(states).sigmoid() * annotations, weights=weights)

    def weights(self, memory: Memory, allowed: Tensor) -> Tensor:
        """Compute β, parents in columns, where allowed (B, T): (B, T, T), 0 outside the sentence."""
        keys = self.key(memory.states) / math.sqrt(memory.states.size(-1))  # (B, T, D)
        scores = keys @ self.query(memory.states).transpose(1, 2)  # (B, T, T)
        if self.root is not None:
            return tree_marginals(scores, keys @ self.root.to(keys.dtype), memory.mask, allowed)
        parents = possible_parents(memory.mask, allowed)  # (B, T)
        return scores.masked_fill(~parents[:, None], -math.inf).softmax(-1) * memory.mask[..., None]
