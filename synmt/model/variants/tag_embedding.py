"""Tag embedding: features of words in the embeddings of their pieces (Sennrich & Haddow, 2016).

    x_t = [E(piece_t) ; L_1(feature_1 of t) ; … ; L_K(feature_K of t)]

Their features are lemma, subword tag, morphology, part of speech and relation, and the width of
E(piece) is what the others leave of the whole. Bugliarello & Okazaki (2020) have the relation only:

    x_t = [√D · E(piece_t)_{1 … D - size} ; L(relation_t)]

The last components of the piece's embedding are replaced, without scaling: this is
`combine: replace`. `concatenate` keeps all components and projects the whole to D again, W [√D ·
E(piece_t) ; L_1 ; … ; L_K]; `sum` adds the features, √D · E(piece_t) + Σ_k U_k L_k, where U_k
widens an embedding that is narrower than D. Positions are added afterwards. Every piece of a word
has the features of its word, except for subword tags, which differ; EOS and pieces without a word
have a row of their own in each table, and all values that are not in its list share another.

Sennrich & Haddow's tables have the values of the training text. Here, those of lemmas, fine tags
and morphology are learned from it, and the other lists are fixed. The released code of the
re-implementation misplaces the relations in padded rows; here every piece has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from synmt.arrays import Strings
from synmt.errors import UsageError
from synmt.model.attention import xavier
from synmt.model.blocks.factors import factor_signals, factor_table
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.feature_signals import FeatureName
from synmt.syntax.signals import Signals

Widths = Mapping[FeatureName, PositiveInt]


class TagEmbedding(Variant):
    """Embed features of words, in addition to pieces.

    size: number of components for the relation, where `features` is empty (paper: 10).
    relations: names of the relations; an empty list means those of Universal Dependencies and of
        Stanford together.
    features: width of each feature by its name (relation, tag, fine_tag, lemma, morphology, subword
        or case), in their order; where it is empty, the relation is the only feature.
    combine: how features enter the embedding of a piece: `replace` its last components,
        `concatenate` and project, or `sum`.
    most: maximum number of lemmas, fine tags and morphologies with an embedding, the most frequent
        ones of the training text.
    """

    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        size: PositiveInt = 10,
        relations: Strings = (),
        features: Widths = MappingProxyType({}),
        combine: Literal["replace", "concatenate", "sum"] = "replace",
        most: PositiveInt = 50_000,
    ) -> None:
        super().__init__(place)
        self.combine, self.widths = combine, _widths(size, features)
        signals = factor_signals(self.widths, most=most, relations=relations)
        self.signals = dict(zip(self.widths, [signal.name for signal in signals], strict=True))
        tables = {
            name: factor_table(name, width, place, most=most, relations=relations)
            for name, width in self.widths.items()
        }
        # weights of earlier versions have this name
        if "relation" in tables:
            self.table = tables.pop("relation")
        self.tables = nn.ModuleDict(tables)  # type: ignore[arg-type]
        self._project(place.embedding_dim or place.model_dim)

    def _project(self, whole: int) -> None:
        """Make the projections to the width of the whole embedding that `combine` needs."""
        if self.combine == "concatenate":
            self.projection = xavier(nn.Linear(whole + sum(self.widths.values()), whole))
        if self.combine == "sum":
            narrow = {name: width for name, width in self.widths.items() if width != whole}
            self.widening = nn.ModuleDict(
                {n: xavier(nn.Linear(width, whole, bias=False)) for n, width in narrow.items()}
            )

    @classmethod
    def reads_for(
        cls, *, size: int, relations: Strings, features: Widths, most: int, **options: Any
    ) -> Signals:
        """List the signals that number the values of the features."""
        return factor_signals(_widths(size, features), most=most, relations=relations)

    @classmethod
    def check(
        cls, place: Place, *, size: int, features: Widths, combine: str, **options: Any
    ) -> None:
        """Refuse features that are wider than an embedding."""
        widths, width = _widths(size, features), place.embedding_dim or place.model_dim
        if combine == "replace" and sum(widths.values()) > width:
            raise UsageError(
                f"the size of tag_embedding is {sum(widths.values())}",
                allowed=f"1 to {width}, the width of an embedding",
            )

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Join the embeddings of pieces and of features: (B, T, D) -> same."""
        features = {
            name: self._table(name)(syntax.signals[self.signals[name]]).to(x.dtype)
            for name in self.widths
        }
        if self.combine == "sum":
            for name, feature in features.items():
                x = x + (
                    self.widening[name](feature) if name in self.widening else feature
                )  # (B, T, D)
            return x
        if self.combine == "concatenate":
            return self.projection(torch.cat((x, *features.values()), -1))  # (B, T, D)
        return torch.cat(
            (x[..., : -sum(self.widths.values())], *features.values()), -1
        )  # (B, T, D)

    def _table(self, name: FeatureName) -> nn.Module:
        return self.table if name == "relation" else self.tables[name]


def _widths(size: int, features: Widths) -> dict[FeatureName, int]:
    return dict(features) or {"relation": size}
