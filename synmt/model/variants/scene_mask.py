"""Scene-aware self-attention, SASA (Slobodkin, Choshen & Abend, 2022).

    S_ij = q_i · k_j / √d   where the words of i and j share a scene        S_ij = -∞   elsewhere

A scene is a group of words that tells one event; in the paper it comes from a UCCA parse, here from
the trees that are given with the text. The mask of one head is applied before the softmax, and EOS
sees itself only, as in the released code. A word in several scenes sees all of them. A word in no
scene sees the whole sentence, and words in scenes do not see it. There are no parameters. Left out:
the same mask in the decoder's attention to the source.
"""

from __future__ import annotations

from synmt.model.attention import Terms
from synmt.model.variant import Syntax, Variant
from synmt.syntax.feature_signals import SAME_SCENE


class SceneMask(Variant):
    """Let a head see only words of the same scene."""

    reads = (SAME_SCENE,)
    sides = ("source",)
    can_blend = False
    default_layers = (4,)
    default_heads = 1

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Narrow the mask to the scenes: (B, 1, T, T)."""
        seen = syntax.signals["same_scene"][:, None] > 0  # (B, 1, T, T)
        return terms.edit(mask=seen if terms.mask is None else seen & terms.mask)
