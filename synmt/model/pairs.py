"""Learned vectors for pairs of a query and a key, such as relative positions in a sentence or in
its tree.

The pairs share few vectors, so a pair stores only the row of its vector in a table. Scores and sums
need N rows for each query instead of a vector for each pair, and nothing of size (B, Tq, Tk, d) is
made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Pairs:
    """A vector for each pair of a query and a key.

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
        exact = weights.to(torch.promote_types(weights.dtype, torch.float32))  # (B, H, Tq, Tk)
        rows = exact.new_zeros(*weights.shape[:3], self.table.size(-2))  # (B, H, Tq, N)
        rows = rows.scatter_add(-1, self._index_of(weights), exact)  # (B, H, Tq, N)
        return rows.to(weights.dtype) @ self.table.to(weights.dtype)  # (B, H, Tq, d)

    def _index_of(self, heads: Tensor) -> Tensor:
        index = (
            self.index if self.index.dim() == 2 else self.index[:, None]
        )  # (Tq, Tk) or (B, 1, Tq, Tk)
        return index.expand(*heads.shape[:2], -1, -1)  # (B, H, Tq, Tk)
