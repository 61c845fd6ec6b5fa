"""A graph as input of attention: Graph2Graph (Mohammadshahi & Henderson, 2020).

    S_ij = q_i · (k_j + LN(a^K[r_ij])) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[r_ij])

    r_ij = 0             if no arc joins the words of i and j
           l             if the word of j is the parent of that of i, with relation number l
           relations + l if the word of j is a child of that of i, with relation number l

Without labels, l is 1 for every arc, and there is one relation. The papers refine parses, and
nothing in them is about translation. The layer norm is that of their equation; the code that we
found computes it, but adds the vectors without it, and does not divide their products with q by √d.
All pieces of a word have its arcs (in the papers an arc points at one piece). EOS has none.
"""

from __future__ import annotations

from typing import Any

from synmt.model.attention import Terms
from synmt.model.blocks.pair_vectors import NormedPairVectors, PairVectors
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.kinship import edge_kinds, edges
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signal, Signals


class GraphRelations(Variant):
    """Let scores and values depend on the arc between two words, its direction and its relation.

    labelled: whether each relation has vectors of its own; if not, all arcs of one direction share
        one.
    norm: whether layer norm is applied to the vectors for the keys (paper: true).
    values: whether vectors are added to the values too, not only to the scores (paper: true).
    """

    sides = ("source",)
    default_layers = "all"

    def __init__(
        self, place: Place, *, labelled: bool = True, norm: bool = True, values: bool = True
    ) -> None:
        super().__init__(place)
        self.signal = _signal(labelled).name
        vectors = NormedPairVectors if norm else PairVectors
        self.vectors = vectors(
            edge_kinds(KNOWN if labelled else None), place.head_dim, values=values
        )

    @classmethod
    def reads_for(cls, *, labelled: bool, **options: Any) -> Signals:
        """List the signal of the arcs, with or without relations."""
        return (_signal(labelled),)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias (B, H, T, T) and, with `values`, the relative values."""
        return self.vectors.edit(terms, syntax.signals[self.signal])


def _signal(labelled: bool) -> Signal:
    return edges(KNOWN if labelled else None)
