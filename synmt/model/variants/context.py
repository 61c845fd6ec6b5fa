"""Context-aware self-attention (Yang et al., 2019), as the Deps-SAN paper reproduces it (Peng et
al., 2022).

    q̂_t = (1 - λ_t) q_t + λ_t (c_t U)        λ_t = sigmoid(q_t · v_own + (c_t U) · v_context)

and k̂_t likewise, with its own U and vectors; q̂ and k̂ replace q and k. The gate λ is one number
for each position and head. With x_1, …, x_l the inputs of the layers up to this one, the context
c_t is

    global         mean(x_l)                          the mean over the sentence
    deep           [x_1t; …; x_(l-1)t]                the lower layers, at the same position
    deep_global    [mean(x_1); …; mean(x_l)]

Everything has the size of a head: a head reads its own d-wide slice of every layer, and U and the
vectors are shared by the heads. The equation has no biases; the code of the reproduction has one in
U and one in each gate. In layer 1 `deep` has no lower layer: attention stays plain.

Left out: the authors' own code mixes before the heads are split, with one gate for all heads. The
released code of the reproduction includes padding in its means, and splits the joined layers into
as many chunks as there are heads, so that a head reads one or two layers only; here the mean is
over the sentence, and every head reads every layer.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from synmt.model.attention import Terms, split_heads
from synmt.model.variant import Place, Syntax, Variant


class Context(Variant):
    """Mix a context, the mean of the sentence or lower layers, into queries and keys.

    kind: context that is mixed in: `global`, `deep` or `deep_global`.
    """

    sides = ("source",)
    default_layers = "all"

    def __init__(
        self, place: Place, *, kind: Literal["global", "deep", "deep_global"] = "deep_global"
    ) -> None:
        super().__init__(place)
        self.kind = kind
        layers = {"global": 1, "deep": place.layer - 1, "deep_global": place.layer}[kind]
        mixtures = [Mixture(layers, place.head_dim) for _ in range(2)] if layers else []
        self.mixtures = nn.ModuleList(mixtures)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Mix the context into q and k."""
        if not self.mixtures:
            return terms
        context = self._context(terms, syntax)  # (B, H, 1 or T, n d)
        query, key = self.mixtures
        return terms.edit(q=query(terms.q, context), k=key(terms.k, context))

    def _context(self, terms: Terms, syntax: Syntax) -> Tensor:
        inputs = {
            "global": syntax.states[-1:],
            "deep": syntax.states[:-1],
            "deep_global": syntax.states,
        }[self.kind]
        if self.kind != "deep":
            inputs = [mean_of_sentence(x, terms.mask) for x in inputs]  # n of (B, 1, D)
        return torch.cat([self._own_heads(x) for x in inputs], -1)  # (B, H, 1 or T, n d)

    def _own_heads(self, x: Tensor) -> Tensor:
        first = self.place.first_head
        heads = split_heads(x, self.place.model_dim // self.place.head_dim)  # (B, all heads, T, d)
        return heads[:, first : first + self.place.heads]


class Mixture(nn.Module):
    """Mix the context from some layers into queries, or into keys, with the same weights for every
    head."""

    def __init__(self, layers: int, head_dim: int) -> None:
        super().__init__()
        self.context = nn.Linear(layers * head_dim, head_dim, bias=False)
        self.own_gate = nn.Linear(head_dim, 1, bias=False)
        self.context_gate = nn.Linear(head_dim, 1, bias=False)
        for linear in (self.context, self.own_gate, self.context_gate):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, own: Tensor, context: Tensor) -> Tensor:
        """(B, H, T, d), (B, H, 1 or T, n d) -> (B, H, T, d)."""
        context = self.context(context)  # (B, H, 1 or T, d)
        gate = torch.sigmoid(self.own_gate(own) + self.context_gate(context))  # (B, H, T, 1)
        return (1 - gate) * own + gate * context


def mean_of_sentence(x: Tensor, mask: Tensor | None) -> Tensor:
    """Average over the real positions: (B, T, D), mask (B, 1, 1, T) -> (B, 1, D)."""
    if mask is None:
        return x.mean(1, keepdim=True)
    real = mask[:, 0, 0, :, None]  # (B, T, 1)
    return (x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
