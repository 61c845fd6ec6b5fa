"""Keys and values that the fast decoder attends to, in the layout that its kernel reads fastest.

O = softmax(q kᵀ / √d + M) v            M: 0 or the variant's bias where attention is allowed, -inf elsewhere
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


class KeysValues:
    """Keys and values of B sentences in T places, in float32, for PyTorch's fused attention.

    stored: (B, T, 2 D).
    """

    def __init__(self, stored: Tensor, heads: int) -> None:
        self._stored, self._heads = stored, heads

    @classmethod
    def of(cls, keys_values: Tensor, heads: int) -> KeysValues:
        """Store keys and values (B, T, 2 D)."""
        return cls(keys_values.float(), heads)

    @classmethod
    def empty(cls, sentences: int, places: int, width: int, heads: int, device: torch.device) -> KeysValues:
        """Make room for keys and values of a width of D; places that are not filled stay as memory is."""
        return cls(torch.empty(sentences, places, 2 * width, device=device), heads)

    @property
    def places(self) -> int:
        """T, of which some may not be filled."""
        return self._stored.size(1)

    def select(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep these sentences (B',), of which those at `moved` (M,) come from another place."""
        self._stored[moved] = self._stored[sentences[moved]]
        self._stored = self._stored[: len(sentences)]

    def fill(self, start: int, keys_values: Tensor) -> None:
        """Fill the places from `start` on with (B, K, 2 D)."""
        self._stored[:, start : start + keys_values.size(1)] = keys_values

    def copied(self, places: Tensor, room: int) -> KeysValues:
        """Copy places (B, P) into a new memory with more of them."""
        stored = self._stored
        copy = stored.new_empty(len(stored), room, stored.size(2))
        copy[:, : places.size(1)] = _at(stored, places)
        return type(self)(copy, self._heads)

    def attend(self, query: Tensor, mask: Tensor) -> Tensor:
        """Attend from queries (B, K, D) to the first P places: (B K, D).

        mask: added to the scores, broadcasts to (B, H, K, P).
        """
        keys_values = self._stored[:, : mask.size(-1)]
        k, v = keys_values.unflatten(2, (2, self._heads, -1)).permute(2, 0, 3, 1, 4)  # (B, H, P, d) each
        output = F.scaled_dot_product_attention(self._by_head(query.float()), k, v, attn_mask=mask)  # (B, H, K, d)
        return output.transpose(1, 2).reshape(-1, query.size(2))

    def _by_head(self, query: Tensor) -> Tensor:
        return query.unflatten(2, (self._heads, -1)).transpose(1, 2)  # (B, H, K, d)


class ReducedKeysValues(KeysValues):
    """In bf16, head by head, for batched products: these take a third of the time where the processor multiplies bf16.

    stored: (2, B, H, T, d).
    """

    @classmethod
    def of(cls, keys_values: Tensor, heads: int) -> KeysValues:
        by_head = keys_values.unflatten(2, (2, heads, -1)).permute(2, 0, 3, 1, 4)  # (2, B, H, T, d)
        return cls(by_head.to(torch.bfloat16).contiguous(), heads)

    @classmethod
    def empty(cls, sentences: int, places: int, width: int, heads: int, device: torch.device) -> KeysValues:
        # all places are multiplied, and 0 · NaN is NaN
        shape = (2, sentences, heads, places, width // heads)
        return cls(torch.zeros(shape, dtype=torch.bfloat16, device=device), heads)

    @property
    def places(self) -> int:
        return self._stored.size(3)

    def select(self, sentences: Tensor, moved: Tensor) -> None:
        self._stored[:, moved] = self._stored[:, sentences[moved]]
        self._stored = self._stored[:, : len(sentences)]

    def fill(self, start: int, keys_values: Tensor) -> None:
        by_head = keys_values.unflatten(2, (2, self._heads, -1)).permute(2, 0, 3, 1, 4)  # (2, B, H, K, d)
        self._stored[:, :, :, start : start + by_head.size(3)] = by_head

    def copied(self, places: Tensor, room: int) -> KeysValues:
        stored = self._stored
        copy = stored.new_zeros(*stored.shape[:3], room, stored.size(4))
        for_heads = places.repeat_interleave(self._heads, 0)  # (B H, P)
        for old, new in zip(stored, copy, strict=True):
            new.flatten(0, 1)[:, : places.size(1)] = _at(old.flatten(0, 1), for_heads)
        return type(self)(copy, self._heads)

    def attend(self, query: Tensor, mask: Tensor) -> Tensor:
        k, v = self._stored  # (B, H, T, d) each
        q = self._by_head(query / math.sqrt(k.size(3))).to(k.dtype)  # (B, H, K, d)
        mask = F.pad(mask, (0, self.places - mask.size(-1)), value=-math.inf).to(k.dtype)
        weights = (q @ k.transpose(2, 3)).add_(mask).softmax(3)  # (B, H, K, T)
        return (weights @ v).transpose(1, 2).reshape(-1, query.size(2))


def _at(rows: Tensor, places: Tensor) -> Tensor:
    """Take places (B, P) of rows (B, T, …): (B, P, …)."""
    indices = places + rows.size(1) * torch.arange(len(rows), device=rows.device)[:, None]  # (B, P)
    # on a CPU, gather takes twice the time
    return rows.flatten(0, 1).index_select(0, indices.flatten()).view(*places.shape, -1)
