"""Localness of self-attention (Yang et al., 2018), as Peng et al. (2022) compare it with Deps-SAN. It reads no parse.

    S_ij = q_i · k_j / √d + G_ij          G_ij = -(j - P_i)² / (2 σ_i²)          σ_i = D_i / 2

    P_i = I · sigmoid(U_p tanh(W_p q_i))

Every head looks around a centre of its own, P_i, through a window of D_i pieces; I is the length of the sentence
with EOS. The window is one of

    fixed:      D = size
    layer:      D = I · sigmoid(U_d tanh(W_d k̄))         k̄: mean of the keys of the sentence
    query:      D_i = I · sigmoid(U_d tanh(W_p q_i))

q_i and k_j are a head's own projections; W_p, W_d (d x d) and U_p, U_d (d -> 1), with biases, are shared by the heads
of a layer. Positions count from 0.

Peng et al.'s released code predicts from q_i / √d, counts padding in j and in the mean, but not in P_i, so a sentence
depends on its neighbours in the batch. Yang et al.'s predicts from the whole query, before it is shared among the
heads, takes I - 1 for the centre, and adds 0.1 to the window.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from synmt.errors import UsageError
from synmt.model.attention import Terms, xavier
from synmt.model.linear import Linear
from synmt.model.variant import Place, Syntax, Variant

SMALLEST = 0.1
"""Of windows, in pieces: G divides by the window's square, which a saturated sigmoid would make 0."""


class Localness(Variant):
    """Favour the keys around a centre that each query predicts.

    window: `fixed` for all, one predicted for each sentence and head of the `layer`, or one for each `query`.
    size: of the `fixed` window, in pieces (paper: 10).
    """

    default_layers = (1, 2, 3)

    def __init__(
        self, place: Place, *, window: Literal["fixed", "layer", "query"] = "query", size: float = 10.0
    ) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError("localness needs the length of the whole sentence", allowed="side: source")
        if size < SMALLEST:
            raise UsageError(f"the size of localness is {size}", allowed=f"a number of pieces from {SMALLEST}")
        self.window, self.size = window, size
        width = place.head_dim
        self.w_p, self.u_p = xavier(Linear(width, width)), xavier(Linear(width, 1))
        if window == "layer":
            self.w_d = xavier(Linear(width, width))
        if window != "fixed":
            self.u_d = xavier(Linear(width, 1))

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Fill the bias with G: (B, H, T, T)."""
        real = real_positions(terms)  # (B, T)
        lengths = real.sum(1)[:, None, None]  # (B, 1, 1)
        exact = torch.promote_types(terms.q.dtype, torch.float32)
        # bfloat16 keeps 8 bits: from position 64 on, it would round a centre to half pieces
        with torch.autocast(terms.q.device.type, enabled=False):
            hidden = torch.tanh(self.w_p(terms.q.to(exact)))  # (B, H, T, d)
            centres = lengths * _share(self.u_p, hidden)  # (B, H, T)
            if self.window == "fixed":
                windows = torch.full_like(centres, self.size)  # (B, H, T)
            elif self.window == "layer":
                mean = mean_of_real(terms.k.to(exact), real)  # (B, H, 1, d)
                windows = lengths * _share(self.u_d, torch.tanh(self.w_d(mean)))  # (B, H, 1)
            else:
                windows = lengths * _share(self.u_d, hidden)  # (B, H, T)
            return terms.edit(bias=locality(centres, windows.clamp(min=SMALLEST)))  # (B, H, T, T)


def locality(centres: Tensor, windows: Tensor) -> Tensor:
    """Compute G for as many keys as there are queries: (B, H, T), (B, H, T or 1) -> (B, H, T, T)."""
    keys = torch.arange(centres.size(-1), device=centres.device, dtype=centres.dtype)  # (T,)
    deviation = windows[..., None] / 2  # (B, H, T or 1, 1)
    return -((keys - centres[..., None]) / deviation).square() / 2  # (B, H, T, T)


def mean_of_real(x: Tensor, real: Tensor) -> Tensor:
    """Take the mean over the pieces that are not padding: (B, H, T, d), (B, T) -> (B, H, 1, d)."""
    weights = real.to(x.dtype) / real.sum(1, keepdim=True)  # (B, T)
    return weights[:, None, None] @ x  # (B, H, 1, d)


def real_positions(terms: Terms) -> Tensor:
    """Tell real pieces from padding: (B, T)."""
    if terms.mask is None:
        return torch.ones_like(terms.x[..., 0], dtype=torch.bool)  # (B, T)
    return terms.mask[:, 0, 0]  # (B, T)


def _share(projection: nn.Linear, hidden: Tensor) -> Tensor:
    """Predict a share of the sentence's length, between 0 and 1: (B, H, T, d) -> (B, H, T)."""
    return projection(hidden).squeeze(-1).sigmoid()  # (B, H, T)
