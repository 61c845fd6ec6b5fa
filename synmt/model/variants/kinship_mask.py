"""Heads that learn which masks of the tree to use (McDonald & Chiang, 2021).

    B^h_ij = log Σ_m π^h_m M^m_ij        π^h = softmax(w^h)

M^m is a mask of 0 and 1: 1 where word j is, for example, the parent of word i. Every head h has a
learned mixture π^h of the masks. The softmax of scores + B^h weighs each key with its share of the
mixture; the mask `all`, which is 1 everywhere, keeps B finite.

We have read the abstract only: masks made of relations between the nodes of a tree, and heads that
learn which to use. The list of masks and the mixture are ours. The paper reads the source as a
linearised tree, whose nodes are positions too; here the positions are the pieces of the words. A
piece without a word, such as EOS, is in the mask `all` only.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from synmt.arrays import Strings
from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.kinship import KINDS, KINSHIP

Mask = Literal["all", "self", "parent", "children", "siblings", "ancestors", "descendants"]

MEMBERS = {
    "all": KINDS,
    "self": ("self",),
    "parent": ("parent",),
    "children": ("child",),
    "siblings": ("sibling",),
    "ancestors": ("parent", "ancestor"),
    "descendants": ("child", "descendant"),
}
"""The kinds of kinship in each mask."""


class KinshipMask(Variant):
    """Add to each score the logarithm of a learned mixture of masks.

    masks: masks that are mixed, `all` among them: `all`, `self` (the pieces of the same word),
        `parent`, `children`, `siblings`, `ancestors` and `descendants`.
    """

    reads = (KINSHIP,)
    sides = ("source",)
    default_layers = "all"

    member: Tensor

    def __init__(
        self,
        place: Place,
        *,
        masks: tuple[Mask, ...] = ("all", "self", "parent", "children", "siblings"),
    ) -> None:
        super().__init__(place)
        self.mixture = nn.Parameter(torch.zeros(place.heads, len(masks)))
        member = torch.tensor(
            [[kind in MEMBERS[mask] for kind in KINDS] for mask in masks]
        )  # (M, kinds)
        self.register_buffer("member", member, persistent=False)

    @classmethod
    def check(cls, place: Place, *, masks: Strings, **options: Any) -> None:
        """Refuse masks without `all`, which could leave a row without a key, and a mask that is
        named twice."""
        if "all" not in masks or len(set(masks)) < len(masks):
            fault = (
                "names a mask twice"
                if "all" in masks
                else "lacks `all`, so that rows could have no key"
            )
            raise UsageError(
                f"`masks` of kinship_mask {fault}", allowed="`all` and other masks, each once"
            )

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias to B: (B, H, T, T)."""
        kinship = syntax.signals["kinship"][:, None].expand(
            -1, terms.q.size(1), -1, -1
        )  # (B, H, T, T)
        mixture = self.mixture.log_softmax(-1)[..., None]  # (H, M, 1)
        values = mixture.masked_fill(~self.member, -math.inf).logsumexp(1)  # (H, kinds)
        values = values[None, :, None].expand(*terms.q.shape[:3], -1)  # (B, H, T, kinds)
        return terms.edit(bias=values.gather(-1, kinship))
