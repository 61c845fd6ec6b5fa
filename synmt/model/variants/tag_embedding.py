"""Tag embedding (Sennrich & Haddow, 2016), as re-implemented by Bugliarello & Okazaki (2020).

    x_t = [√D · E(piece_t)_{1 … D - size} ; L(relation_t)]

The last `size` components of the embedding are replaced by an embedding of the relation of the piece's word, without
scaling. Positions are added afterwards. Every piece of a word has the relation of its word; EOS and pieces without a
word have a separate symbol, and all relations that are not in the list share another.

Sennrich & Haddow concatenate embeddings of several features (lemmas, tags, relations), so no component is replaced.
The released code of the re-implementation misplaces the relations in padded rows; here every piece has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from synmt.errors import UsageError
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.relations import KNOWN, unknown_warning
from synmt.syntax.signals import Signal, relation_signal


class TagEmbedding(Variant):
    """Embed the relation of the word in the last components of each embedding.

    size: number of components for the relation (paper: 10).
    relations: names of the relations; an empty list means those of Universal Dependencies and of Stanford together.
    """

    sides = ("source",)

    def __init__(self, place: Place, *, size: PositiveInt = 10, relations: tuple[str, ...] = ()) -> None:
        super().__init__(place)
        self.size, self.signal = size, relation_signal(relations or KNOWN).name
        # row 0 is for EOS and padding; no padding_idx, because EOS is learned
        self.table = nn.Embedding(len(relations or KNOWN) + 2, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    @classmethod
    def reads_for(cls, *, relations: tuple[str, ...], **options: Any) -> tuple[Signal, ...]:
        """List the signal that numbers these relations."""
        return (relation_signal(relations or KNOWN),)

    @classmethod
    def check(cls, place: Place, *, size: int, **options: Any) -> None:
        """Refuse a size that is larger than an embedding."""
        width = place.embedding_dim or place.model_dim
        if size > width:
            raise UsageError(f"the size of tag_embedding is {size}", allowed=f"1 to {width}, the width of an embedding")

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Replace the last components by the embedding of the relation: (B, T, D) -> same."""
        relations = self.table(syntax.signals[self.signal])  # (B, T, size)
        return torch.cat((x[..., : -self.size], relations.to(x.dtype)), -1)  # (B, T, D)

    @classmethod
    def relation_warnings(
        cls, occurrences: Mapping[str, int], *, relations: tuple[str, ...], **options: Any
    ) -> list[str]:
        """Name the relations of the training text that share one embedding because they are not in the list."""
        return unknown_warning("tag_embedding", occurrences, relations or KNOWN, "share one embedding")
