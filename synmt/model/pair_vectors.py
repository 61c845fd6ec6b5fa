"""Learned vectors of kinds of pairs, which a variant adds to keys and values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synmt.model.attention import Terms
from synmt.model.pairs import Pairs


class PairVectors(nn.Module):
    """Add a vector for the kind of each pair to its key and its value (Shaw et al., 2018, equations 3 and 4).

        S_ij = q_i · (k_j + a^K[kind_ij]) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[kind_ij])

    The heads share both tables, as in the released code of Shaw et al.
    """

    def __init__(self, kinds: int, size: int, *, values: bool) -> None:
        super().__init__()
        self.key = nn.Parameter(torch.empty(kinds, size))
        self.value = nn.Parameter(torch.empty(kinds, size)) if values else None
        for table in self.parameters():
            nn.init.xavier_uniform_(table)

    def edit(self, terms: Terms, kinds: Tensor) -> Terms:
        """Set the bias and the relative values by the kinds (B, Tq, Tk)."""
        bias = Pairs(self.keys(), kinds).scores(terms.q)  # (B, H, Tq, Tk)
        return terms.edit(bias=bias, relative=None if self.value is None else Pairs(self.value, kinds))

    def keys(self) -> Tensor:
        """Return the vectors for the keys: (kinds, d)."""
        return self.key


class NormedPairVectors(PairVectors):
    """The same with layer norm over the vectors for the keys."""

    def __init__(self, kinds: int, size: int, *, values: bool) -> None:
        super().__init__(kinds, size, values=values)
        # a bias would add the same number to all scores of a query, which changes no weight
        self.norm = nn.LayerNorm(size, bias=False)

    def keys(self) -> Tensor:
        """Return the normed vectors for the keys: (kinds, d)."""
        return self.norm(self.key)
