"""Syntax-infused Transformer (Sundararaman et al., 2019): features of words join the embeddings of
their pieces.

    x_t = W [L_1(feature_1 of t) ; … ; L_K(feature_K of t) ; √D · E(piece_t)] + b

The features are tag, relation, case and the place of the piece in its word, each D / K wide, so
that W projects 2D components to D. Positions are added afterwards. This follows a re-implementation
by others: in its list, a fine tag takes the place of the relation, and whether the paper has
relations was not checked. The authors' code was not found.

It is `tag_embedding` with `combine: concatenate`, except for the order of the parts and for the
initial values: here, all components that W reads have a variance of about 1. Neither the paper's
nor the re-implementation's were checked.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor, nn

from synmt.errors import UsageError
from synmt.model.attention import xavier
from synmt.model.blocks.factors import factor_signals, factor_table
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.feature_signals import FeatureName
from synmt.syntax.signals import Signals

FEATURES = ("tag", "relation", "case", "subword")


class SyntaxInfused(Variant):
    """Join features of words and the embedding of each piece, and project them to its width.

    features: features of each word: some of relation, tag, fine_tag, lemma, morphology, subword and
        case.
    size: width of each feature; 0 divides the width of an embedding among them.
    most: maximum number of lemmas, fine tags and morphologies with an embedding, the most frequent
        ones of the training text.
    """

    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        features: tuple[FeatureName, ...] = FEATURES,
        size: NonNegativeInt = 0,
        most: PositiveInt = 50_000,
    ) -> None:
        super().__init__(place)
        whole = place.embedding_dim or place.model_dim
        width = size or whole // len(features)
        self.signals = [signal.name for signal in factor_signals(features, most=most)]
        self.tables = nn.ModuleList(
            factor_table(name, width, place, most=most, std=1.0) for name in features
        )
        self.projection = xavier(nn.Linear(width * len(features) + whole, whole))

    @classmethod
    def reads_for(cls, *, features: tuple[FeatureName, ...], most: int, **options: Any) -> Signals:
        """List the signals that number the values of the features."""
        return factor_signals(features, most=most)

    @classmethod
    def check(
        cls, place: Place, *, features: tuple[FeatureName, ...], size: int, **options: Any
    ) -> None:
        """Refuse no features, one that is named twice, and more than components."""
        whole = place.embedding_dim or place.model_dim
        if not features or len(set(features)) < len(features):
            fault = "names one twice" if features else "is empty"
            raise UsageError(f"`features` of syntax_infused {fault}", allowed="Each feature once")
        if not size and whole < len(features):
            raise UsageError(
                f"an embedding of {whole} components cannot be divided among {len(features)} "
                "features"
            )

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Project the embeddings of features and of the piece to its width: (B, T, D) -> same."""
        looked_up = zip(self.signals, self.tables, strict=True)
        features = (table(syntax.signals[name]).to(x.dtype) for name, table in looked_up)
        return self.projection(torch.cat((*features, x), -1))  # (B, T, D)
