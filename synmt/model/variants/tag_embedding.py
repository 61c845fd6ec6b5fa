"""Tag embedding (Sennrich & Haddow, 2016), as re-implemented by Bugliarello & Okazaki (2020).

    x_t = [√D · E(piece_t)_{1 … D - size} ; L(relation_t)]

The last `size` components of the embedding are those of the relation of the piece's word, without scaling; they say
nothing of the piece. Positions are added afterwards. Every piece of a word has the relation of its word; EOS, and a
piece without a word, has a symbol of its own, and relations that no list names share one.

Sennrich & Haddow join embeddings of several features (lemmas, tags, relations), so that no component is replaced.
The released code of the re-implementation misplaces the relations in padded rows; here every piece has its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from synmt.errors import UsageError
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.relations import KNOWN, most_frequent, unknown_relations
from synmt.syntax.signals import relation_signal


class TagEmbedding(Variant):
    """Let the last components of each embedding tell the relation of the word.

    size: how many components the relation takes (paper: 10).
    relations: names of a tagset of your own; none stands for Universal Dependencies and Stanford's together.
    """

    default_layers = (1,)

    def __init__(self, place: Place, *, size: int = 10, relations: tuple[str, ...] = ()) -> None:
        super().__init__(place)
        if place.side != "source":
            raise UsageError("tag_embedding reads the parse of the source", allowed="side: source")
        if place.layer != 1:
            raise UsageError("tag_embedding stands before the first layer, and acts once", allowed="layers: [1]")
        width = place.embedding_dim or place.model_dim
        if not 1 <= size <= width:
            raise UsageError(f"the size of tag_embedding is {size}", allowed=f"1 to {width}, the width of an embedding")
        self.size, self.relations = size, relations or KNOWN
        signal = relation_signal(self.relations)
        self.reads, self.relation = (signal,), signal.name
        # 0 is EOS's and padding's; no padding_idx, because EOS learns
        self.table = nn.Embedding(len(self.relations) + 2, size)
        nn.init.normal_(self.table.weight, std=size**-0.5)

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Put the relation's embedding in the place of the last components: (B, T, D) -> same."""
        relations = self.table(syntax.signals[self.relation])  # (B, T, size)
        return torch.cat((x[..., : -self.size], relations.to(x.dtype)), -1)  # (B, T, D)

    def remark(self, relations: Mapping[str, int]) -> str:
        """Name the relations in the training text that share one embedding because no list names them."""
        counts = {name: relations[name] for name in unknown_relations(relations, self.relations)}
        if not counts:
            return ""
        return (
            f"tag_embedding does not know {len(counts)} relations of {sum(counts.values()):,} of "
            f"{sum(relations.values()):,} words, which share one embedding: {most_frequent(counts)}"
        )
