"""Keys and values that the fast decoder attends to, for B sentences in T places.

O = softmax(q kᵀ / √d + M) v
M: 0 or ALiBi's penalty where attention is allowed, -inf elsewhere
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

UNIT = 16
"""Places that products compute in hardly more time than one."""

Vectors = tuple[Tensor, Tensor]
"""Vectors that are added to keys and to values, (2, R, d), and which of them a place has: 1 for it,
and 0 for the others, (B, P, R)."""


class KeysValues:
    """Keys and values for PyTorch's fused attention, in the precision of the mask.

    stored: (2, B, H, T, d).
    """

    def __init__(self, stored: Tensor) -> None:
        self.stored = stored

    @classmethod
    def empty(
        cls, sentences: int, heads: int, places: int, width: int, dtype: torch.dtype, where: Tensor
    ) -> KeysValues:
        """Make room for keys and values of a width of D, on the device of a tensor."""
        # all places may be multiplied, and 0 · NaN is NaN
        shape = 2, sentences, heads, places, width // heads
        return cls(where.new_zeros(shape, dtype=dtype))

    @property
    def places(self) -> int:
        """T, of which some may not be filled."""
        return self.stored.size(3)

    def select(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep these sentences (B',), of which those at `moved` (M,) come from another place."""
        self.stored[:, moved] = self.stored[:, sentences[moved]]
        self.stored = self.stored[:, : len(sentences)]

    def fill(self, places: slice | Tensor, keys_values: Tensor) -> None:
        """Fill K places with (B, K, 2 D)."""
        by_head = keys_values.unflatten(2, (2, self.stored.size(2), -1))  # (B, K, 2, H, d)
        self.stored[:, :, :, places] = by_head.permute(2, 0, 3, 1, 4).to(self.stored.dtype)

    def copied(self, places: Tensor, room: int) -> KeysValues:
        """Copy places (B, P) into a new memory with more of them."""
        _, _, heads, _, size = shape = self.stored.shape
        copy = self.stored.new_zeros(*shape[:3], room, size)
        for_heads = places.repeat_interleave(heads, 0)  # (B H, P)
        for old, new in zip(self.stored, copy, strict=True):
            new.flatten(0, 1)[:, : places.size(1)] = _rows_at(old.flatten(0, 1), for_heads)
        return type(self)(copy)

    def bias(self, mask: Tensor) -> Tensor:
        """Make what `attend` adds to the scores of the first P places from M, which broadcasts to
        (B, H, K, P)."""
        return mask

    def attend(self, query: Tensor, bias: Tensor, added: Vectors | None = None) -> Tensor:
        """Attend from queries (B, K, D), with vectors added to keys and values: (B K, D)."""
        stored = self.stored[:, :, :, : bias.size(3)]
        if added:
            vectors, kinds = added
            stored = stored + (kinds @ vectors[:, None])[:, :, None]
        k, v = stored  # (B, H, P, d) each
        q = self._queries(query).to(k.dtype)
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)  # (B, H, K, d)
        return output.transpose(1, 2).reshape(-1, query.size(2))

    def _queries(self, query: Tensor) -> Tensor:
        return query.unflatten(2, (self.stored.size(2), -1)).transpose(1, 2)  # (B, H, K, d)


class MultipliedKeysValues(KeysValues):
    """For batched products: on a CPU, a fused attention of so few queries takes longer."""

    def bias(self, mask: Tensor) -> Tensor:
        # some places more: (B H, K, P')
        more = self.places - mask.size(3)
        # in bf16, products copy what is not in one piece
        if self.stored.dtype == torch.float32:
            more = min(more, -mask.size(3) % UNIT)
        padded = F.pad(mask, (0, more), value=-math.inf).to(self.stored.dtype)
        return padded.expand(-1, self.stored.size(2), -1, -1).flatten(0, 1)

    def attend(self, query: Tensor, bias: Tensor, added: Vectors | None = None) -> Tensor:
        k, v = self.stored.flatten(1, 2)[:, :, : bias.size(2)]  # (B H, P', d) each
        # in bf16, baddbmm takes longer
        q = self._queries(query / math.sqrt(k.size(2))).flatten(0, 1).to(k.dtype)  # (B H, K, d)
        scores = torch.bmm(q, k.mT).add_(bias)  # (B H, K, P')
        if not added:
            return self._joined(torch.bmm(_softmax(scores), v), query)
        for_keys, for_values = added[0].to(k.dtype)  # (R, d) each
        kinds = F.pad(added[1], (0, 0, 0, k.size(1) - added[1].size(1))).to(k.dtype)  # (B, P', R)
        # each vector is multiplied once, whatever places have it
        scores += _for_sentences(q @ for_keys.mT, kinds.mT)
        weights = _softmax(scores)
        sums = torch.bmm(weights, v) + _for_sentences(weights, kinds) @ for_values  # (B H, K, d)
        return self._joined(sums, query)

    def _joined(self, output: Tensor, query: Tensor) -> Tensor:
        heads = output.unflatten(0, (len(query), -1))  # (B, H, K, d)
        return heads.transpose(1, 2).reshape(-1, query.size(2))


def _softmax(scores: Tensor) -> Tensor:
    # torch's softmax of 16 numbers in bf16 takes three times as long
    exact = scores.float() if scores.size(2) == UNIT else scores
    return exact.softmax(2).to(scores.dtype)


def _for_sentences(rows: Tensor, matrices: Tensor) -> Tensor:
    """Multiply the rows of each sentence by its matrix: (B H, K, M), (B, M, N) -> (B H, K, N)."""
    product = torch.bmm(rows.view(len(matrices), -1, rows.size(2)), matrices)  # (B, H K, N)
    return product.view(*rows.shape[:2], -1)


def _rows_at(rows: Tensor, places: Tensor) -> Tensor:
    """Take places (B, P) of rows (B, T, …): (B, P, …)."""
    indices = places + rows.size(1) * torch.arange(len(rows), device=rows.device)[:, None]  # (B, P)
    # on a CPU, gather takes twice the time
    return rows.flatten(0, 1).index_select(0, indices.flatten()).view(*places.shape, -1)
