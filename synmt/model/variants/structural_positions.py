"""Relative positions in the tree, with a direction (Wang, Tu, Wang & Shi, 2019).

    S_ij = q_i · (k_j + a^K[r_ij]) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[r_ij])

    r_ij = clip(s_ij, -reach, reach)

    s_ij = depth_i - depth_j        if one of the words is above the other
           depth_i + depth_j        else, if i comes after j
           -(depth_i + depth_j)     else

depth_i counts the steps from the word of piece i to the root. This is the form of Shaw et al.
(2018) with s_ij in the place of the distance in the sentence. |s_ij| is the distance in the tree
where the two paths meet at the root, and more elsewhere. A pair with a piece that has no word, such
as EOS, has a vector of its own.

The absolute positions of the same paper are `structural_depth`. We have read a summary of the
paper; that the vectors are added as by Shaw et al. is as we remember it. In a re-implementation
that we could read (GATE's), the sign is multiplied in twice, so that all its positions are
unsigned.
"""

from __future__ import annotations

import torch
from torch import Tensor

from synmt.model.blocks.pair_vectors import ClippedPairs
from synmt.model.variant import Syntax
from synmt.syntax.kinship import NO_STEPS, SIGNED_STEPS


class StructuralPositions(ClippedPairs):
    """Let scores and values depend on the signed steps through the tree between two words.

    reach: largest number of steps with its own vector in each direction; larger ones share that
        vector.
    values: whether vectors are added to the values too, not only to the scores.
    """

    reads = (SIGNED_STEPS,)

    def rows(self, syntax: Syntax) -> Tensor:
        """Find the row of the tables for each pair, 0 to 2 · reach, or 2 · reach + 1 without words:
        (B, T, T)."""
        steps, reach = syntax.signals["signed_steps"], self.reach  # (B, T, T)
        return torch.where(
            steps == NO_STEPS, 2 * reach + 1, steps.clamp(-reach, reach) + reach
        )  # (B, T, T)
