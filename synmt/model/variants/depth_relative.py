"""Relative positions by depth in the tree (Omote, Tamura & Ninomiya, 2019).

    S_ij = q_i · (k_j + a^K[r_ij]) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[r_ij])

    r_ij = clip(depth_j - depth_i, -reach, reach)

depth_i counts the steps from the word of piece i to the root. This is the form of Shaw et al.
(2018), with the difference of depths in the place of the distance in the sentence. Words of equal
depth have r = 0, wherever they are: r is not a distance in the tree. A pair with a piece that has
no word, such as EOS, has a vector of its own.

We have read the abstract only. The sign, the clipping, and what happens to positions in the
sentence are our reading: the absolute positions of the Transformer stay, and other heads can have
`relative`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt.model.blocks.pair_vectors import ClippedPairs
from synmt.model.variant import Syntax
from synmt.syntax.kinship import DEPTH


class DepthRelative(ClippedPairs):
    """Let scores and values depend on how much deeper in the tree the key's word is.

    reach: largest difference with its own vector; larger ones share that vector.
    values: whether vectors are added to the values too, not only to the scores.
    """

    reads = (DEPTH,)

    def rows(self, syntax: Syntax) -> Tensor:
        """Find the row of the tables for each pair: (B, T, T)."""
        depths, reach = syntax.signals["depth"], self.reach  # (B, T)
        differences = (depths[:, None] - depths[..., None]).clamp(-reach, reach) + reach
        special = depths < 0  # (B, T)
        return torch.where(
            special[:, None] | special[..., None], 2 * reach + 1, differences
        )  # (B, T, T)
