"""Token embeddings, with and without sinusoidal positions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from synmt.data.vocabulary import PAD
from synmt.model.fused import Dropout
from synmt.model.variant import Syntax, Variant


class PieceEmbedding(nn.Module):
    """Embed pieces without scaling and positions, for recurrent models."""

    def __init__(self, table: nn.Embedding, variants: Sequence[Variant] = ()) -> None:
        super().__init__()
        self.table = table
        # a tuple, because the model or its layers register the variants as their modules
        self._variants = tuple(variants)

    def forward(self, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Embed ids (B, T): (B, T, E)."""
        return self.varied(self.table(ids), syntax)

    def varied(self, x: Tensor, syntax: Syntax | None) -> Tensor:
        """Let the variants edit the embeddings: (B, T, E) -> same."""
        if syntax is not None:
            for variant in self._variants:
                x = variant.embed(x, syntax)  # (B, T, E)
        return x


class Embedding(PieceEmbedding):
    """Embed pieces, scaled by √D, and add positions (Vaswani et al., 2017, sections 3.4 and 3.5)."""

    positions: Tensor

    def __init__(self, table: nn.Embedding, *, dropout: float, variants: Sequence[Variant] = ()) -> None:
        super().__init__(table, variants)
        self.dropout = Dropout(dropout)
        self.register_buffer("positions", sinusoids(512, table.embedding_dim), persistent=False)

    def forward(self, ids: Tensor, syntax: Syntax | None = None, *, first: int = 0) -> Tensor:
        """Embed ids (B, T) at the positions from `first` on: (B, T, D)."""
        last = first + ids.size(1)
        # another thread may replace the table by a shorter one meanwhile
        positions = self.positions
        if last > positions.size(0):
            self.positions = positions = sinusoids(2 * last, self.table.embedding_dim).to(positions)
        x = self.varied(self.table(ids) * math.sqrt(self.table.embedding_dim), syntax)  # (B, T, D)
        return self.dropout(x + positions[first:last])


def piece_table(pieces: int, model_dim: int) -> nn.Embedding:
    """Make a table of embeddings whose scaled rows have a norm of about √D; padding is zero."""
    table = nn.Embedding(pieces, model_dim, padding_idx=PAD)
    nn.init.normal_(table.weight, std=model_dim**-0.5)
    with torch.no_grad():
        table.weight[PAD].zero_()
    return table


def sinusoids(length: int, model_dim: int) -> Tensor:
    """Compute position vectors, with sines in the first half and cosines in the second: (T, D)."""
    half = model_dim // 2
    step = math.log(10_000) / max(1, half - 1)
    rates = torch.exp(-step * torch.arange(half, dtype=torch.float64))  # (D/2,)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # (T, D/2)
    return torch.cat((angles.sin(), angles.cos()), 1).float()
