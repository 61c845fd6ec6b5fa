"""Absolute positions in the tree, added to the embeddings (Wang, Tu, Wang & Shi, 2019).

    x_i = e_i + PE(i) + tanh(W PE(depth_i) + b)

depth_i counts the steps from the word of piece i to the root, PE are the sinusoids of the
Transformer, and e_i is the scaled embedding. The paper joins both positions in one function; we
remember tanh(W [PE(i); PE(depth_i)] + b), but could not check it. Here PE(i) stays what it is in
the plain model, and the depth is added to it. A piece without a word, such as EOS, has no depth,
and nothing is added to it.

The relative positions of the same paper are `structural_positions`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from synmt.model.attention import xavier
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.kinship import DEPTH


class StructuralDepth(Variant):
    """Add a learned function of each word's depth in the tree to its embedding."""

    reads = (DEPTH,)
    sides = ("source",)

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        width = place.embedding_dim or place.model_dim
        self.project = xavier(nn.Linear(width - width % 2, width))

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Add tanh(W PE(depth) + b) to the pieces of words: (B, T, D) -> same."""
        depths = syntax.signals["depth"]  # (B, T)
        waves = sinusoids_at(
            depths, self.project.in_features, self.project.weight.dtype
        )  # (B, T, width)
        added = self.project(waves).tanh()  # (B, T, D)
        return x + added.masked_fill((depths < 0)[..., None], 0).to(x.dtype)


def sinusoids_at(positions: Tensor, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Compute position vectors, with sines in the first half and cosines in the second: (B, T) ->
    (B, T, width)."""
    half = width // 2
    step = math.log(10_000) / max(1, half - 1)
    rates = torch.exp(
        -step * torch.arange(half, dtype=dtype, device=positions.device)
    )  # (width / 2,)
    angles = positions[..., None] * rates  # (B, T, width / 2)
    return torch.cat((angles.sin(), angles.cos()), -1)  # (B, T, width)
