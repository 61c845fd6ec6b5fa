"""Learned vectors of kinds of pairs, which a variant adds to keys and values."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from synmt.model.attention import Terms
from synmt.model.pairs import Pairs
from synmt.model.variant import Place, Syntax, Variant


class PairVectors(nn.Module):
    """Add a vector for the kind of each pair to its key and its value (Shaw et al., 2018, equations
    3 and 4).

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
        return terms.edit(
            bias=bias, relative=None if self.value is None else Pairs(self.value, kinds)
        )

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


class ClippedPairs(Variant):
    """A variant with a vector for each number from -reach to reach that a pair of words can
    have."""

    sides = ("source",)
    default_layers = "all"

    def __init__(self, place: Place, *, reach: PositiveInt = 16, values: bool = True) -> None:
        super().__init__(place)
        self.reach = reach
        # the last vector is that of pieces without a word
        self.vectors = PairVectors(2 * reach + 2, place.head_dim, values=values)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias (B, H, T, T) and, with `values`, the relative values."""
        return self.vectors.edit(terms, self.rows(syntax))

    def rows(self, syntax: Syntax) -> Tensor:
        """Find the row of the tables for each pair: (B, T, T), 0 to 2 · reach, or 2 · reach + 1
        without words."""
        raise NotImplementedError
