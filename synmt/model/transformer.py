"""The Transformer (Vaswani et al., 2017), as published or with newer parts, with variants in its
layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.arrays import SIDES
from synmt.data.batch import Sequences
from synmt.model.attention import Memory, xavier
from synmt.model.multihead import (
    AlibiAttention,
    Cache,
    CrossAttention,
    RotaryAttention,
    SelfAttention,
)
from synmt.model.seq2seq import WAVES, Embedding, Seq2Seq, piece_table, rows_of
from synmt.model.variant import Syntax, Variant
from synmt.recipe.schema import ModelRecipe


class FeedForward(nn.Module):
    """Two projections with a ReLU between them (Vaswani et al., 2017, section 3.3)."""

    activation: Callable[[Tensor], Tensor] = staticmethod(F.relu)
    parts, bias = 1, True

    def __init__(self, model_dim: int, inner_dim: int, dropout: float) -> None:
        super().__init__()
        self.inner = xavier(
            nn.Linear(model_dim, self.parts * inner_dim, bias=self.bias), self.parts
        )
        self.output = xavier(nn.Linear(inner_dim, model_dim, bias=self.bias))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.output(self.dropout(self.activation(self.inner(x))))


class Gelu(FeedForward):
    """Two projections with GELU, x Φ(x), between them (Hendrycks & Gimpel, 2016)."""

    activation = staticmethod(F.gelu)


class Swish(FeedForward):
    """Two projections with Swish, x σ(x), between them (Ramachandran et al., 2017)."""

    activation = staticmethod(F.silu)


def gated(x: Tensor) -> Tensor:
    """Multiply the second half by Swish, z σ(z), of the first: (…, 2 F) -> (…, F)."""
    gate, value = x.chunk(2, -1)  # (…, F) both
    return F.silu(gate) * value


class Swiglu(FeedForward):
    """SwiGLU (Shazeer, 2020): (Swish(x W) ⊙ x V) U without biases; W and V are joined in
    `inner`."""

    activation = staticmethod(gated)
    parts, bias = 2, False


VariantLayers = Sequence[Sequence[Variant]]
"""The variants of each layer of one side, first layer first."""


FEED_FORWARDS = {"relu": FeedForward, "gelu": Gelu, "swish": Swish, "swiglu": Swiglu}
SELF_ATTENTIONS = {"rotary": RotaryAttention, "alibi": AlibiAttention}
"""By the recipe's positions; others know none."""

_EPSILON = 1e-6
"""Of RMSNorm, whose paper has none: the usual number."""


def _norm_of(recipe: ModelRecipe) -> nn.LayerNorm | nn.RMSNorm:
    """Make a norm: (x - mean) / √variance · g + b, or (rms) x / √mean(x²) · g (Zhang & Sennrich,
    2019)."""
    if recipe.norm_kind == "rms":
        return nn.RMSNorm(recipe.model_dim, _EPSILON)
    return nn.LayerNorm(recipe.model_dim)


class Residual(nn.Module):
    """x + f(x), with a norm after the sum (post) or before f (pre)."""

    def __init__(self, recipe: ModelRecipe) -> None:
        super().__init__()
        self.norm = _norm_of(recipe)
        self.pre = recipe.norm == "pre"
        self.dropout = nn.Dropout(recipe.dropout)

    def forward(self, x: Tensor, sub_layer: Callable[[Tensor], Tensor]) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.pre:
            return x + self.dropout(sub_layer(self.norm(x)))
        return self.norm(x + self.dropout(sub_layer(x)))


def _self_attention(recipe: ModelRecipe, heads: int, variants: Sequence[Variant]) -> SelfAttention:
    kind = SELF_ATTENTIONS.get(recipe.positions, SelfAttention)
    return kind(recipe.model_dim, heads, dropout=recipe.attention_dropout, variants=variants)


def _feed_forward(recipe: ModelRecipe) -> FeedForward:
    kind = FEED_FORWARDS[recipe.feed_forward]
    return kind(recipe.model_dim, recipe.feedforward_dim, recipe.activation_dropout)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, recipe: ModelRecipe, heads: int, variants: Sequence[Variant]) -> None:
        super().__init__()
        self.self_attention = _self_attention(recipe, heads, variants)
        self.feed_forward = _feed_forward(recipe)
        self.residuals = nn.ModuleList(Residual(recipe) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor, syntax: Syntax | None) -> Tensor:
        """(B, T, D), mask (B, 1, 1, T) -> (B, T, D)."""
        if syntax is not None:
            syntax.states.append(x)
        attention, feed_forward = self.residuals
        x = attention(x, lambda x: self.self_attention(x, mask, syntax))
        return feed_forward(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, feed-forward."""

    def __init__(self, recipe: ModelRecipe, variants: Sequence[Variant]) -> None:
        super().__init__()
        self.self_attention = _self_attention(recipe, recipe.heads, variants)
        self.cross_attention = CrossAttention(
            recipe.model_dim, recipe.heads, dropout=recipe.attention_dropout
        )
        self.feed_forward = _feed_forward(recipe)
        self.residuals = nn.ModuleList(Residual(recipe) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        source: tuple[Tensor, Tensor],
        seen: Tensor,
        mask: Tensor | None,
        syntax: Syntax | None,
        cache: Cache | None = None,
    ) -> Tensor:
        """(B K, T, D), keys and values of the source (B, H, Ts, d), its mask (B, 1, 1, Ts) -> (B K,
        T, D)."""
        if syntax is not None:
            syntax.states.append(x)
        attention, cross, feed_forward = self.residuals
        x = attention(x, lambda x: self.self_attention(x, mask, syntax, cache))
        x = cross(x, lambda x: self._attend_to_source(x, source, seen))
        return feed_forward(x, self.feed_forward)

    def _attend_to_source(self, x: Tensor, source: tuple[Tensor, Tensor], seen: Tensor) -> Tensor:
        # the hypotheses of a sentence are queries of one attention, so its keys and values are not
        # copied for each
        queries = x.view(len(seen), -1, x.size(-1))  # (B, K T, D)
        return self.cross_attention(queries, source, seen).view_as(x)


@dataclass
class TransformerState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    mask: (B, 1, 1, Ts), True at real pieces of the source.
    source: keys and values of the source for each layer, (B, H, Ts, d) each, shared by the
        hypotheses.
    caches: keys and values of the target so far for each layer, with B · K rows.
    beams: K.
    """

    mask: Tensor
    source: list[tuple[Tensor, Tensor]]
    caches: list[Cache]
    beams: int = 1

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these hypotheses of each,
        (B', K')."""
        if sentences is not None:
            self.mask = self.mask.index_select(0, sentences)
            self.source = [
                (k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.source
            ]
        rows = rows_of(sentences, beams, self.beams)  # (B' K',)
        for cache in self.caches:
            cache.select(rows)
        self.beams = beams.size(1)


class Transformer(Seq2Seq):
    """Encoder and decoder over pieces."""

    def __init__(
        self,
        recipe: ModelRecipe,
        source_pieces: int,
        target_pieces: int,
        source_variants: VariantLayers = (),
        target_variants: VariantLayers = (),
    ) -> None:
        source = source_variants or [()] * recipe.encoder_layers
        target = target_variants or [()] * recipe.decoder_layers
        super().__init__(chain(*source), chain(*target))
        target_table = piece_table(target_pieces, recipe.model_dim)
        shared = recipe.embeddings == "shared"
        source_table = target_table if shared else piece_table(source_pieces, recipe.model_dim)
        embed = partial(
            Embedding,
            scale=math.sqrt(recipe.model_dim),
            waves=WAVES.get(recipe.positions),
            dropout=recipe.dropout,
        )
        self.source_embedding = embed(source_table, self.variants["source"])
        self.target_embedding = embed(target_table, self.variants["target"])
        layers = zip(recipe.heads_of("source"), source, strict=True)
        self.encoder = nn.ModuleList(
            EncoderLayer(recipe, heads, variants) for heads, variants in layers
        )
        self.decoder = nn.ModuleList(DecoderLayer(recipe, variants) for variants in target)
        norms = (_norm_of(recipe) if recipe.norm == "pre" else nn.Identity() for _ in SIDES)
        self.encoder_norm, self.decoder_norm = norms
        separate = recipe.embeddings == "separate"
        self.output = piece_table(target_pieces, recipe.model_dim) if separate else target_table
        if recipe.output_bias:
            self.output_bias = nn.Parameter(torch.zeros(target_pieces))

    @property
    def output_weight(self) -> Tensor:
        """The matrix that turns states into logits: (V, D)."""
        return self.output.weight

    def encode(self, source: Sequences, syntax: Syntax | None = None) -> Memory:
        """Encode source pieces (B, T)."""
        x = self.source_embedding(source.ids, syntax)  # (B, T, D)
        for layer in self.encoder:
            x = layer(x, source.mask[:, None, None], syntax)  # (B, T, D)
        if syntax is not None:
            syntax.states.append(x)
        return Memory(self.encoder_norm(x), source.mask)

    def decode(self, memory: Memory, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Compute the states that predict what follows each piece of (B, T): (B, T, D)."""
        length = ids.size(1)
        past = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()  # (T, T)
        seen = memory.mask[:, None, None]  # (B, 1, 1, Ts)
        x = self.target_embedding(ids, syntax)  # (B, T, D)
        for layer in cast(list[DecoderLayer], self.decoder):
            source = layer.cross_attention.keys_values(memory.states)  # (B, H, Ts, d) each
            x = layer(x, source, seen, past, syntax)  # (B, T, D)
        if syntax is not None:
            syntax.states.append(x)
        return self.decoder_norm(x)

    def start(self, memory: Memory) -> TransformerState:
        """Begin decoding with one beam for each sentence."""
        layers = cast(list[DecoderLayer], self.decoder)
        source = [layer.cross_attention.keys_values(memory.states) for layer in layers]
        return TransformerState(memory.mask[:, None, None], source, [Cache() for _ in self.decoder])

    def step(self, state: TransformerState, pieces: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the states for the next
        one: (B, K, D)."""
        batch, beams = pieces.shape
        first = state.caches[0].length
        x = self.target_embedding(pieces.view(-1, 1), syntax, first=first)  # (B K, 1, D)
        for layer, source, cache in zip(self.decoder, state.source, state.caches, strict=True):
            x = layer(x, source, state.mask, None, syntax, cache)  # (B K, 1, D)
        return self.decoder_norm(x).view(batch, beams, -1)
