"""Heads that see only near words of the tree, and the nearest most:
GATE (Ahmad, Peng & Chang, 2021).

    S_ij = q_i · k_j / √d - log max(d_ij, 1)   where d_ij ≤ reach of the head
    S_ij = -∞                                   elsewhere

d_ij counts the steps between the words of pieces i and j in the tree. The softmax of S is the
softmax of the plain scores within the reach, divided by d and scaled to sum to 1 again, as in the
released code. The paper extracts relations and events across languages; nothing in it is about
translation.

A piece without a word, such as EOS, attends to itself only, and no word attends to it: the paper's
trees have words only. In the released code no word attends to itself, because 0, the distance to
itself, also means that there is no arc: `own: false`. Then a word that has no other word in its
reach attends to itself; in the code it attends to all.
"""

from __future__ import annotations

from typing import Any

import torch
from pydantic import PositiveInt
from torch import Tensor

from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.signals import DISTANCE, WORD


class DistanceMask(Variant):
    """Mask the keys beyond each head's reach in the tree, and divide the weights of the others by
    their distance.

    reach: largest distance that a head attends to, in steps; each number is for an equal share of
        the heads, so (2, 4) is 2 2 4 4 for the four heads of the released code.
    own: whether a word attends to its own pieces (released code: false).
    """

    reads = (DISTANCE, WORD)
    sides = ("source",)
    can_blend = False
    default_heads = 4

    reach: Tensor

    def __init__(
        self, place: Place, *, reach: tuple[PositiveInt, ...] = (2, 4), own: bool = True
    ) -> None:
        super().__init__(place)
        self.own = own
        reaches = torch.tensor(reach).repeat_interleave(place.heads // len(reach))  # (H,)
        self.register_buffer("reach", reaches[:, None, None], persistent=False)  # (H, 1, 1)

    @classmethod
    def check(cls, place: Place, *, reach: tuple[int, ...], **options: Any) -> None:
        """Refuse reaches that the heads cannot share."""
        if not reach or place.heads % len(reach):
            raise UsageError(
                f"distance_mask has {len(reach)} reaches for {place.heads} heads of layer "
                f"{place.layer}",
                allowed="`reach`: a number for each head, or for each of equal groups of heads",
            )

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the mask (B, H, T, T) to the reach of each head, and the bias (B, 1, T, T) to -log
        d."""
        distance = syntax.signals["distance"][:, None]  # (B, 1, T, T)
        words = syntax.signals["word"] >= 0  # (B, T)
        near = (distance <= self.reach) & (
            words[:, None, :, None] & words[:, None, None]
        )  # (B, H, T, T)
        if not self.own:
            near = near & (distance > 0)  # (B, H, T, T)
        # the mask of the layer is left out: padding has no word, and a row of padding needs a key
        itself = torch.eye(near.size(-1), dtype=torch.bool, device=near.device)  # (T, T)
        near = near | (itself & ~near.any(-1, keepdim=True))  # (B, H, T, T)
        return terms.edit(mask=near, bias=-distance.clamp(min=1).log())
