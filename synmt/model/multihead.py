"""Multi-head attention: projections around `attend`, the heads owned by variants, and caches for
decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from synmt.model.attention import Attend, Terms, blend, join_heads, split_heads, xavier
from synmt.model.positions import Rotary, alibi, alibi_slopes
from synmt.model.variant import Syntax, Variant


class SelfAttention(nn.Module):
    """Attention of a sequence to itself; each variant edits the terms of the heads that it owns."""

    def __init__(
        self, model_dim: int, heads: int, *, dropout: float = 0.0, variants: Sequence[Variant] = ()
    ) -> None:
        super().__init__()
        self.heads, self.attend = heads, Attend(dropout)
        self.project = xavier(nn.Linear(model_dim, 3 * model_dim), parts=3)
        self.output = xavier(nn.Linear(model_dim, model_dim))
        self.variants = nn.ModuleList(variants)
        self._prepare_positions(heads, model_dim // heads)

    def _prepare_positions(self, heads: int, head_dim: int) -> None:
        """Make what positions inside attention need."""

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        syntax: Syntax | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Attend from x to itself, and to the positions in the cache: (B, T, D) -> (B, T, D)."""
        outputs = [self.attend(part) for part in self._edited(self._terms(x, mask, cache), syntax)]
        return self.output(join_heads(_concatenate(outputs)))

    def weights(self, x: Tensor, mask: Tensor | None, syntax: Syntax | None = None) -> Tensor:
        """Compute the attention weights of every head: (B, T, D) -> (B, H, T, T)."""
        return _concatenate([part.normalize(part.scores()) for part in self.terms(x, mask, syntax)])

    def terms(self, x: Tensor, mask: Tensor | None, syntax: Syntax | None = None) -> list[Terms]:
        """Compute the edited terms, one item for each group of consecutive heads: x (B, T, D)."""
        return list(self._edited(self._terms(x, mask), syntax))

    def _terms(self, x: Tensor, mask: Tensor | None, cache: Cache | None = None) -> Terms:
        q, k, v = self._projected(x, cache)  # (B, H, T, d)
        if cache is not None:
            k, v = cache.extend(k, v)  # (B, H, Tk, d)
        return Terms(x, q, k, v, mask)

    def _projected(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, ...]:
        """Compute q, k and v: (B, H, T, d) each."""
        return tuple(split_heads(part, self.heads) for part in self.project(x).chunk(3, -1))

    def _edited(self, terms: Terms, syntax: Syntax | None) -> Iterator[Terms]:
        """Yield the edited terms of each variant's heads, then the terms of the free heads."""
        first = 0
        owners = [variant for variant in cast(list[Variant], self.variants) if variant.place.heads]
        if syntax is not None:
            for variant in owners:
                last = first + variant.place.heads
                plain = terms.heads(first, last)
                edited = variant.edit(plain, syntax)
                yield edited if variant.share is None else blend(plain, edited, variant.share)
                first = last
        if first < self.heads:
            yield terms.heads(first, self.heads) if first else terms


def _concatenate(heads: list[Tensor]) -> Tensor:
    return heads[0] if len(heads) == 1 else torch.cat(heads, 1)


class RotaryAttention(SelfAttention):
    """Self-attention whose queries and keys are turned by their positions, before variants edit
    them."""

    def _prepare_positions(self, heads: int, head_dim: int) -> None:
        self.rotary = Rotary(head_dim)

    def _projected(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, ...]:
        projected = split_heads(self.project(x), 3 * self.heads)  # (B, 3 H, T, d)
        first = 0 if cache is None else cache.length
        query_key = self.rotary(projected[:, : 2 * self.heads], first)  # (B, 2 H, T, d)
        return *query_key.chunk(2, 1), projected[:, 2 * self.heads :]


class AlibiAttention(SelfAttention):
    """Self-attention with a penalty on distance, which variants do not see as a bias."""

    slopes: Tensor

    def _prepare_positions(self, heads: int, head_dim: int) -> None:
        self.register_buffer("slopes", alibi_slopes(heads), persistent=False)

    def _terms(self, x: Tensor, mask: Tensor | None, cache: Cache | None = None) -> Terms:
        terms = super()._terms(x, mask, cache)
        penalty = alibi(terms.q.size(2), terms.k.size(2), self.slopes)  # (H, Tq, Tk)
        return terms.edit(position=penalty)

    def _edited(self, terms: Terms, syntax: Syntax | None) -> Iterator[Terms]:
        for part in super()._edited(terms, syntax):
            yield part.with_position_in_bias()


class CrossAttention(nn.Module):
    """Attention of the decoder to the source; its keys and values are computed once for each
    sentence."""

    def __init__(self, model_dim: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.attend = heads, Attend(dropout)
        self.query = xavier(nn.Linear(model_dim, model_dim))
        self.key_value = xavier(nn.Linear(model_dim, 2 * model_dim), parts=2)
        self.output = xavier(nn.Linear(model_dim, model_dim))

    def keys_values(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Project the source states: (B, Tk, D) -> two of (B, H, Tk, d)."""
        k, v = self.key_value(states).chunk(2, -1)  # (B, Tk, D)
        return split_heads(k, self.heads), split_heads(v, self.heads)

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Attend from x (B, Tq, D) where mask (B, 1, 1, Tk) allows: (B, Tq, D)."""
        return self.output(join_heads(self.attend(self._terms(x, keys_values, mask))))

    def weights(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """Compute the attention weights of every head: (B, Tq, D) -> (B, H, Tq, Tk)."""
        terms = self._terms(x, keys_values, mask)
        return terms.normalize(terms.scores())

    def _terms(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor) -> Terms:
        return Terms(x, split_heads(self.query(x), self.heads), *keys_values, mask)


@dataclass
class Cache:
    """Keys and values of the pieces decoded so far, in a buffer with room for more.

    both: (2, N, H, capacity, d); the first `length` positions are filled.
    """

    both: Tensor | None = None
    length: int = 0

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append keys and values, (N, H, T, d) each, and return all of them."""
        end, (rows, heads, _, size) = self.length + k.size(2), k.shape
        before = self.both
        if before is None or before.size(3) < end:
            self.both = k.new_empty(2, rows, heads, max(16, 2 * end), size)
            if before is not None:
                self.both[:, :, :, : self.length] = before[:, :, :, : self.length]
        assert self.both is not None
        self.both[0, :, :, self.length : end] = k
        self.both[1, :, :, self.length : end] = v
        self.length = end
        return self.both[0, :, :, :end], self.both[1, :, :, :end]

    def select(self, rows: Tensor) -> None:
        """Reorder the rows of the batch: (N',)."""
        assert self.both is not None
        before, (_, _, heads, _, size) = self.both, self.both.shape
        # room for one more position, so that the next step does not copy again
        self.both = before.new_empty(2, len(rows), heads, self.length + 1, size)
        for new, old in zip(self.both, before, strict=True):  # (N', H, T + 1, d), (N, H, T, d)
            torch.index_select(old[:, :, : self.length], 0, rows, out=new[:, :, : self.length])
