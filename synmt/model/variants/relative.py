"""Relative positions (Shaw, Uszkoreit & Vaswani, 2018, section 3).

    S_ij = q_i · (k_j + a^K[j - i]) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[j - i])

a^K and a^V are tables of 2 · reach + 1 learned vectors of head size, two tables for each layer; the
distance j - i is clipped to -reach, …, reach. The heads of a layer share the tables, as in the
authors' released code (the paper's base model has a table for each head). Absolute positions stay,
as in the reproduction in the Deps-SAN paper (Peng et al., 2022); Shaw et al. remove them and report
that keeping them makes no difference.

The paper edits both sides: name the variant twice in a recipe, with `side: source` and with
`side: target`. The 74.88 M parameters of the Deps-SAN paper are those of `shared: true` on both
sides.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import nn

from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.blocks.pair_vectors import add_vectors
from synmt.model.variant import Place, Syntax, Variant


class Relative(Variant):
    """Let scores and values depend on the distance between two pieces.

    reach: largest distance with its own vector, in pieces; larger ones share that vector (paper:
        16, big: 8).
    values: whether vectors are added to the values too, not only to the scores (paper: true;
        compared in its table 3).
    shared: whether scores and values share one table, as in OpenNMT and in Deps-SAN's reproduction
        (paper: false).
    """

    default_layers = "all"

    def __init__(
        self, place: Place, *, reach: PositiveInt = 16, values: bool = True, shared: bool = False
    ) -> None:
        super().__init__(place)
        self.reach, self.shared = reach, shared
        self.key = nn.Parameter(torch.empty(2 * reach + 1, place.head_dim))
        self.value = (
            nn.Parameter(torch.empty(2 * reach + 1, place.head_dim))
            if values and not shared
            else None
        )
        for table in self.parameters():
            nn.init.xavier_uniform_(table)

    @classmethod
    def check(cls, place: Place, *, values: bool, shared: bool, **options: Any) -> None:
        """Refuse a shared table where only one is used."""
        if shared and not values:
            raise UsageError(
                "relative has no table to share: `values` is false",
                do="Leave out `shared`, or set `values: true`",
            )

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias (B, H, Tq, Tk) and, with `values`, the relative values."""
        keys, reach = terms.k.size(2), self.reach
        positions = torch.arange(keys, device=terms.q.device)  # (Tk,)
        # the queries are the last of the keys
        distances = positions - positions[keys - terms.q.size(2) :, None]  # (Tq, Tk)
        rows = distances.clamp(-reach, reach) + reach  # (Tq, Tk)
        values = self.key if self.shared else self.value
        return add_vectors(terms, self.key, values, rows)
