"""Attention as one equation whose terms variants can edit, and the kernels that compute it.

    O = N( mask( (q kᵀ / √d) ⊙ F + B ) ) (v + R)

F is `factor`, B `bias`, R `relative`, N `normalize`. Plain attention has no F, B and R, and N is
softmax.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.arrays import Values

Normalizer = Callable[[Tensor], Tensor]
Drop = Callable[[Tensor, float], Tensor]
"""Zeroes elements with a probability, and scales the others."""


def exact(x: Tensor) -> Tensor:
    """Convert a tensor to at least float32, before what half precision would round away."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def softmax(scores: Tensor) -> Tensor:
    """Turn scores into weights along the keys: (B, H, Tq, Tk) -> same."""
    return scores.softmax(-1)


@dataclass(frozen=True)
class Terms:
    """The terms of one attention sub-layer, or of some of its heads.

    x: (B, Tq, D) input of the sub-layer.
    q, k, v: (B, H, Tq, d), (B, H, Tk, d), (B, H, Tk, d).
    mask: boolean, broadcasts to (B, H, Tq, Tk), True where a query may attend; None allows all
        keys.
    factor, bias: broadcast to (B, H, Tq, Tk), applied to the scaled scores.
    relative: an extra value for each pair of a query and a key.
    position: (H, Tq, Tk), what ALiBi adds to the bias; variants leave it as it is.
    normalize: scores -> weights.
    """

    x: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None = None
    factor: Tensor | None = None
    bias: Tensor | None = None
    relative: Pairs | None = None
    position: Tensor | None = None
    normalize: Normalizer = softmax

    def edit(self, **changes: Any) -> Terms:
        """Return these terms with some of them replaced."""
        return dataclasses.replace(self, **changes)

    def scores(self) -> Tensor:
        """Compute the argument of N, scaled, edited and masked, at least in float32: (B, H, Tq,
        Tk)."""
        scores = exact(self.q @ self.k.transpose(-1, -2))  # (B, H, Tq, Tk)
        scores = scores / math.sqrt(self.q.size(-1))  # (B, H, Tq, Tk)
        if self.factor is not None:
            scores = scores * self.factor  # (B, H, Tq, Tk)
        if self.bias is not None:
            scores = scores + self.bias  # (B, H, Tq, Tk)
        if self.position is not None:
            scores = scores + self.position  # (B, H, Tq, Tk)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -math.inf)  # (B, H, Tq, Tk)
        return scores

    def heads(self, first: int, last: int) -> Terms:
        """Select the heads first, …, last - 1 of plain terms."""
        position = None if self.position is None else self.position[first:last]  # (H', Tq, Tk)
        q, k, v = (part[:, first:last] for part in (self.q, self.k, self.v))  # (B, H', T, d)
        return self.edit(q=q, k=k, v=v, position=position)

    def with_position_in_bias(self) -> Terms:
        """Add the part of the position to the bias, as kernels expect it."""
        if self.position is None:
            return self
        bias = self.position if self.bias is None else self.bias + self.position  # (B, H, Tq, Tk)
        return self.edit(bias=bias, position=None)


def blend(plain: Terms, edited: Terms, share: Tensor) -> Terms:
    """Go a share of the way from plain terms to edited ones, (), which have the same mask.

    Factors start at 1, biases and extra values at 0, other weights at those of the softmax.
    """
    changes: Values = {}
    for name in ("q", "k", "v"):
        before, after = getattr(plain, name), getattr(edited, name)  # (B, H, T, d) both
        if after is not before:
            changes[name] = torch.lerp(before, after, share)
    if edited.factor is not None:
        changes["factor"] = torch.lerp(torch.ones_like(edited.factor), edited.factor, share)
    if edited.bias is not None:
        changes["bias"] = share * edited.bias
    if edited.relative is not None:
        changes["relative"] = Pairs(share * edited.relative.table, edited.relative.index)
    if (normalize := edited.normalize) is not softmax:
        changes["normalize"] = lambda x: torch.lerp(softmax(x), normalize(x), share)
    return edited.edit(**changes)


@dataclass(frozen=True)
class Memory:
    """What the decoder reads of the source.

    states: (B, T, D), the output of the encoder, and what variants put after it.
    mask: (B, T), True at real pieces and at all else that the decoder may attend to.
    ends: final outputs and cells of each layer of a recurrent encoder, (L, B, D) both.
    annotations: (B, T, D), syntactic annotations of the states, if a variant makes them.
    weights: (B, T, T), the weights of the pieces (columns) in the annotation of each piece (rows).
    pieces: how many places, from the first, are pieces; None if all are.
    """

    states: Tensor
    mask: Tensor
    ends: tuple[Tensor, Tensor] | None = None
    annotations: Tensor | None = None
    weights: Tensor | None = None
    pieces: int | None = None

    def edit(self, **changes: Any) -> Memory:
        """Return this memory with some fields replaced."""
        return dataclasses.replace(self, **changes)


def attend(terms: Terms, dropout: float = 0.0, drop: Drop = F.dropout) -> Tensor:
    """Compute O, by torch's fused kernel if it can handle these terms: (B, H, Tq, d)."""
    edits = terms.factor, terms.relative, terms.position
    if terms.normalize is softmax and all(edit is None for edit in edits):
        return _attend_fused(terms, dropout)
    return attend_written_out(terms, dropout, drop)


def attend_written_out(terms: Terms, dropout: float = 0.0, drop: Drop = F.dropout) -> Tensor:
    """Compute O literally by the equation: (B, H, Tq, d)."""
    weights = drop(terms.normalize(terms.scores()), dropout)  # (B, H, Tq, Tk)
    weights = weights.to(terms.v.dtype)
    output = weights @ terms.v  # (B, H, Tq, d)
    if terms.relative is not None:
        output = output + terms.relative.sums(weights)
    return output


def _attend_fused(terms: Terms, dropout: float) -> Tensor:
    mask = terms.mask
    if terms.bias is not None:
        bias = terms.bias.to(terms.q.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)  # (B, H, Tq, Tk)
    return F.scaled_dot_product_attention(
        terms.q, terms.k, terms.v, attn_mask=mask, dropout_p=dropout
    )


class Attend(nn.Module):
    """`attend`, in training with dropout of weights."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, terms: Terms) -> Tensor:
        """Compute O: (B, H, Tq, d)."""
        return attend(terms, self.dropout if self.training else 0.0)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Split the last dimension into heads: (B, T, D) -> (B, H, T, d)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """Concatenate the outputs of the heads: (B, H, T, d) -> (B, T, D)."""
    return x.transpose(1, 2).flatten(2)


def xavier(linear: nn.Linear, parts: int = 1) -> nn.Linear:
    """Initialize a projection by Xavier's rule; `parts` matrices of equal size that are joined in
    one, separately."""
    for part in linear.weight.chunk(parts):
        nn.init.xavier_uniform_(part)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


@dataclass(frozen=True)
class Pairs:
    """A learned vector for each pair of a query and a key, such as relative positions in a sentence
    or in its tree.

    The pairs share few vectors, so a pair stores only the row of its vector in a table. Scores and
    sums need N rows for each query instead of a vector for each pair, and nothing of size (B, Tq,
    Tk, d) is made.

    table: (N, d), the vectors, or (H, N, d), those of each head.
    index: (Tq, Tk), the row of each pair, or (B, Tq, Tk), that of each pair in each sentence.
    """

    table: Tensor
    index: Tensor

    def scores(self, q: Tensor) -> Tensor:
        """Compute q_i · table[index_ij] / √d: (B, H, Tq, d) -> (B, H, Tq, Tk)."""
        rows = q @ self.table.mT / math.sqrt(q.size(-1))  # (B, H, Tq, N)
        return rows.gather(-1, self._index_of(q))  # (B, H, Tq, Tk)

    def sums(self, weights: Tensor) -> Tensor:
        """Compute Σ_j weights_ij table[index_ij]: (B, H, Tq, Tk) -> (B, H, Tq, d)."""
        if self.index.dim() == 2 and self.table.dim() == 2:
            vectors = F.embedding(self.index, self.table)  # (Tq, Tk, d)
            return torch.einsum("bhqk,qkd->bhqd", weights, vectors.to(weights.dtype))
        # float32: a row of bfloat16 would lose the small ones of many weights
        summands = exact(weights)  # (B, H, Tq, Tk)
        rows = summands.new_zeros(*weights.shape[:3], self.table.size(-2))  # (B, H, Tq, N)
        rows = rows.scatter_add(-1, self._index_of(weights), summands)  # (B, H, Tq, N)
        return rows.to(weights.dtype) @ self.table.to(weights.dtype)  # (B, H, Tq, d)

    def _index_of(self, heads: Tensor) -> Tensor:
        # (Tq, Tk) or (B, 1, Tq, Tk)
        index = self.index if self.index.dim() == 2 else self.index[:, None]
        return index.expand(*heads.shape[:2], -1, -1)  # (B, H, Tq, Tk)
