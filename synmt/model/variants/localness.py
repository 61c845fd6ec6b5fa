"""Localness of self-attention (Yang et al., 2018), as Peng et al. (2022) compare it with Deps-SAN.
It reads no parse.

    S_ij = q_i · k_j / √d + G_ij          G_ij = -(j - P_i)² / (2 σ_i²)          σ_i = D_i / 2

    P_i = I · sigmoid(U_p tanh(W_p q_i))

Every query i of every head predicts a centre P_i and prefers keys in a window of D_i pieces around
it; I is the length of the sentence with EOS. The window is one of

    fixed:      D = size
    layer:      D = I · sigmoid(U_d tanh(W_d k̄))         k̄: mean of the keys of the sentence
    query:      D_i = I · sigmoid(U_d tanh(W_p q_i))

q_i and k_j are the projections of one head; W_p, W_d (d x d) and U_p, U_d (d -> 1), with biases,
are shared by the heads of a layer. Positions count from 0.

Peng et al.'s released code predicts from q_i / √d and includes padding in j and in the mean, but
not in P_i, so the result for a sentence depends on its neighbours in the batch. Yang et al.'s code
predicts from the whole query, before it is split into heads, uses I - 1 for the centre, and adds
0.1 to the window.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from synmt.model.attention import Terms, exact, xavier
from synmt.model.variant import Place, Syntax, Variant

SMALLEST = 0.1
"""Smallest window, in pieces: G divides by the square of the window, which a saturated sigmoid
would make 0."""


class Localness(Variant):
    """Prefer the keys around a centre that each query predicts.

    window: size of the window: `fixed`, or predicted, one for each sentence and head (`layer`) or
        one for each query (`query`).
    size: size of the `fixed` window, in pieces (paper: 10).
    """

    sides = ("source",)
    default_layers = (1, 2, 3)

    def __init__(
        self,
        place: Place,
        *,
        window: Literal["fixed", "layer", "query"] = "query",
        size: Annotated[float, Field(ge=SMALLEST)] = 10.0,
    ) -> None:
        super().__init__(place)
        self.window, self.size = window, size
        width = place.head_dim
        self.w_p, self.u_p = xavier(nn.Linear(width, width)), xavier(nn.Linear(width, 1))
        if window == "layer":
            self.w_d = xavier(nn.Linear(width, width))
        if window != "fixed":
            self.u_d = xavier(nn.Linear(width, 1))

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias to G: (B, H, T, T)."""
        real = torch.ones_like(terms.x[..., 0], dtype=torch.bool)  # (B, T)
        if terms.mask is not None:
            real = terms.mask[:, 0, 0]  # (B, T)
        lengths = real.sum(1)[:, None, None]  # (B, 1, 1)
        # bfloat16 has 8 bits: from position 64 on, it would round a centre to half pieces
        with torch.autocast(terms.q.device.type, enabled=False):
            hidden = torch.tanh(self.w_p(exact(terms.q)))  # (B, H, T, d)
            centres = lengths * _share(self.u_p, hidden)  # (B, H, T)
            if self.window == "fixed":
                windows = torch.full_like(centres, self.size)  # (B, H, T)
            elif self.window == "layer":
                keys = exact(terms.k)
                shares = real.to(keys.dtype) / real.sum(1, keepdim=True)  # (B, T)
                mean = shares[:, None, None] @ keys  # (B, H, 1, d)
                windows = lengths * _share(self.u_d, torch.tanh(self.w_d(mean)))  # (B, H, 1)
            else:
                windows = lengths * _share(self.u_d, hidden)  # (B, H, T)
            return terms.edit(bias=locality(centres, windows.clamp(min=SMALLEST)))  # (B, H, T, T)


def locality(centres: Tensor, windows: Tensor) -> Tensor:
    """Compute G, where keys and queries are the same pieces: (B, H, T), (B, H, T or 1) -> (B, H, T,
    T)."""
    keys = torch.arange(centres.size(-1), device=centres.device, dtype=centres.dtype)  # (T,)
    deviation = windows[..., None] / 2  # (B, H, T or 1, 1)
    return -((keys - centres[..., None]) / deviation).square() / 2  # (B, H, T, T)


def _share(projection: nn.Linear, hidden: Tensor) -> Tensor:
    """Predict a share of the sentence's length, between 0 and 1: (B, H, T, d) -> (B, H, T)."""
    return projection(hidden).squeeze(-1).sigmoid()  # (B, H, T)
