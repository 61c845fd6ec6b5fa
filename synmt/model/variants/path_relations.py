"""Relations along paths of the tree: Graph Transformer (Cai & Lam, 2020).

    S_ij = (q_i + a_ij) · (k_j + b_ij) / √d        [a_ij; b_ij] = W ρ_ij
    ρ_ij = GRU(path from j to i)

The path has the labels of the arcs between the words of j and i, with another symbol for each label
where the path leads from a parent to its child. A bidirectional GRU reads each different path of a
batch once, and all layers read its output; each has a W of its own. So B_ij = (q_i · b_ij + a_ij ·
k_j + a_ij · b_ij) / √d.

From the paper and the released code. Left out: the node that is related to all others and starts
the decoder, words and characters instead of pieces, and copied words. The pieces of a word are
related as the word is to itself, and EOS has a symbol of its own.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, PositiveInt
from torch import Tensor, nn

from synmt.model.attention import Terms, xavier
from synmt.model.blocks.pair_vectors import pair_scores
from synmt.model.blocks.path_encoder import PathEncoder
from synmt.model.variant import Depth, Place, Rate, Syntax, Variant
from synmt.syntax.kinship import LONGEST, SYMBOLS, path_signal
from synmt.syntax.signals import Signals


class PathRelations(Variant):
    """Let scores depend on the labels along the path between two words.

    longest: maximum number of arcs of a path; longer paths share one symbol (released code: 8).
    label_dim: width of a label's vector (released code: 100).
    hidden_dim: width of the GRU in each direction (released code: 256, for a model of 512).
    depth: number of layers of the GRU (released code: 2).
    dropout: dropout on the input of each layer of the GRU (released code: 0.2).
    """

    sides = ("source",)
    default_layers = "all"

    def __init__(
        self,
        place: Place,
        *,
        longest: Annotated[int, Field(ge=1, le=LONGEST)] = LONGEST,
        label_dim: PositiveInt = 100,
        hidden_dim: PositiveInt = 256,
        depth: Depth = 2,
        dropout: Rate = 0.2,
    ) -> None:
        super().__init__(place)
        self.signal, self.longest = path_signal(longest), longest
        self.paths = None
        if place.leads:
            sizes = SYMBOLS, label_dim, hidden_dim, place.model_dim
            self.paths = PathEncoder(*sizes, layers=depth, dropout=dropout)
        self.relation = xavier(
            nn.Linear(place.model_dim, 2 * place.heads * place.head_dim, bias=False), parts=2
        )

    @classmethod
    def reads_for(cls, *, longest: int, **options: Any) -> Signals:
        """List the signal of the paths, which depends on the longest one."""
        return (path_signal(longest),)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias to B: (B, H, T, T)."""
        heads, size = terms.q.size(1), terms.q.size(-1)
        table = self.relation(self._vectors(syntax)).unflatten(-1, (2, heads, size))  # (N, 2, H, d)
        scores = pair_scores(
            terms.q, terms.k, table, syntax.signals[self.signal.name]
        )  # (B, H, T, T)
        return terms.edit(bias=scores / math.sqrt(size))

    def _vectors(self, syntax: Syntax) -> Tensor:
        """Return ρ of all paths, which the first of the layers computes: (N, D)."""
        if self.paths is not None:
            levels = [
                syntax.signals[self.signal.table_name(length)] for length in range(self.longest + 1)
            ]
            syntax.shared[self.place.entry] = self.paths(levels)
        return syntax.shared[self.place.entry]
