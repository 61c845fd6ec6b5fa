"""Labelled dependency distributions (Liu & Sima'an, 2022).

    N^l = softmax(S ∘ LDD^l) V        S_ij = q_i · k_j / √d
    LDD^l_ij = Σ_{r in group l} p(j, r | i)

p(j, r | i) is the parser's probability that word j is the parent of word i, with relation r. Head l
of the layer reads group l of the relations, so 16 groups need 16 heads. There are no parameters.
The kinds replace LDD by another matrix P, or use it differently:

    kind   P_ij in head l                                      use
    ldd    Σ_{r in group l} p(j, r | i)                        factor
    lda    the same                                            the weights: N^l = P V
    ldp    1 if the tree's arc from i to j is in group l       factor
    udp    1 if the tree has an arc from i to j                factor
    udd    Σ_r p(j, r | i), over all relations                 factor
    uldd   1 / (W · number of groups), W words                 factor
    uudd   1 / W                                               factor

The paper leaves some points open; this is our reading. A root is its own parent, so its probability
is on the diagonal. Pieces copy the values of their words (the paper has whole words). The row of
EOS, and of a piece without a word, is 1, so its scores do not change; its column is 0 in the rows
of words. Relations in no group are left out, so rows need not sum to 1. A score that P makes 0
stays 0 and is not masked: in a row without probabilities a head attends to all keys equally.
Padding is masked as always.

In section 3.1 the weights of LDA are the distribution; in table 1 it replaces S, before the
softmax. The first reading is the default, `softmax` selects the second. By default the output of a
row without probabilities is 0, and EOS, whose row of ones would add up all values, attends to all
pieces equally.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from synmt.arrays import Strings
from synmt.errors import UsageError
from synmt.model.attention import Terms
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.relations import (
    KNOWN,
    LEFT_OUT,
    REST,
    STANFORD_GROUPS,
    STANFORD_LEFT_OUT,
    UNIVERSAL_GROUPS,
    Groups,
)
from synmt.syntax.signals import WORD, Signal, Signals

TABLES = {
    "ldd": arcs,
    "lda": arcs,
    "ldp": tree_arcs,
    "udp": tree_arcs,
    "udd": arcs,
    "uldd": uniform_arcs,
    "uudd": uniform_arcs,
}
UNLABELLED = ("udp", "udd", "uudd")

GROUPS = {
    "universal": (UNIVERSAL_GROUPS, LEFT_OUT),
    "stanford": (STANFORD_GROUPS, STANFORD_LEFT_OUT),
}
"""Groups by name, each with the relations that are left out on purpose."""


class DependencyDistribution(Variant):
    """Scale the scores of each head by the probability of an arc with a relation of its group.

    kind: matrix P and its use; `synmt --docs dependency-distribution` has a table.
    groups: groups of relations, one for each head: `universal`, the paper's 16 groups for Universal
        Dependencies, `stanford`, the paper's own, or lists of names. A name includes its subtypes,
        and `rest` means all relations that no group names. Only for labelled kinds.
    split: whether probabilities are divided by the number of pieces of the parent, so that these
        share the probability of one word.
    softmax: whether the softmax is applied to the weights of `lda` (the paper's table 1).
    """

    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        kind: Literal["ldd", "lda", "ldp", "udp", "udd", "uldd", "uudd"] = "ldd",
        groups: Literal["universal", "stanford"] | Groups = "universal",
        split: bool = False,
        softmax: bool = False,
    ) -> None:
        super().__init__(place)
        self.kind, self.softmax = kind, softmax
        self.table = _table(kind, groups, split).name
        self.groups = _groups_of(kind, groups)

    @classmethod
    def reads_for(
        cls, *, kind: str, groups: str | Groups, split: bool, softmax: bool, **options: Any
    ) -> Signals:
        """List the signal that holds P, and for `lda` that of the words."""
        table = _table(kind, groups, split)
        return (table, WORD) if kind == "lda" and not softmax else (table,)

    @classmethod
    def check(cls, place: Place, *, kind: str, groups: str | Groups, **options: Any) -> None:
        """Refuse groups that do not fit the heads."""
        used = _groups_of(kind, groups)
        if used is not None and len(used) != place.heads:
            raise UsageError(
                f"dependency_distribution has {len(used)} groups, one for each head, but owns "
                f"{place.heads} heads of "
                f"layer {place.layer}",
                do=f"Use {len(used)} heads (`heads: {len(used)}`) of a layer with as many or more "
                f"(`model.encoder_heads: [{len(used)}, …]`), or name {place.heads} groups "
                "(`groups: [[nsubj, csubj], …]`)",
            )

    def about_head(self, number: int) -> str:
        """Name the relations of the group that a head reads."""
        return " ".join(self.groups[number - 1]) if self.groups else ""

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the factor to P (B, 1 or H, T, T), or use P as the weights."""
        table = syntax.signals[self.table]  # (B, 1 or H, T, T)
        if self.kind != "lda":
            return terms.edit(factor=table)
        nothing = torch.zeros_like(terms.q)  # (B, H, T, d)
        if self.softmax:
            return terms.edit(q=nothing, k=nothing, bias=table)
        # the rows of specials are ones, and those of padding sum to 0
        sums = table.sum(-1, keepdim=True).clamp(min=1)  # (B, H, T, 1)
        special = (syntax.signals["word"] < 0)[:, None, :, None]  # (B, 1, T, 1)
        weights = torch.where(special, table / sums, table)  # (B, H, T, T)
        # the weights are the distribution itself: nothing is added for the distance of positions
        return terms.edit(
            q=nothing, k=nothing, bias=weights, position=None, normalize=identity_weights
        )

    @classmethod
    def known_relations(cls, *, kind: str, groups: str | Groups, **options: Any) -> Strings:
        """List the relations of all groups, and those that are left out on purpose."""
        used = _groups_of(kind, groups)
        if used is None or any(REST in group for group in used):
            return ()
        left_out = GROUPS[groups][1] if isinstance(groups, str) else KNOWN
        return tuple(name for group in (*used, left_out) for name in group)


def identity_weights(scores: Tensor) -> Tensor:
    """Use the scores as weights, with 0 where they are masked: (B, H, Tq, Tk) -> same."""
    return scores.masked_fill(scores == -math.inf, 0)


def _table(kind: str, groups: str | Groups, split: bool) -> Signal:
    return TABLES[kind](_groups_of(kind, groups), split=split)


def _groups_of(kind: str, groups: str | Groups) -> Groups | None:
    """Look up the groups; unlabelled kinds have none."""
    if kind in UNLABELLED:
        return None
    if isinstance(groups, str):
        return GROUPS[groups][0]
    if not groups or not all(groups):
        fault = f"group {groups.index(()) + 1} names no relation" if groups else "`groups` is empty"
        raise UsageError(
            f"{fault}, and each is read by a head of dependency_distribution",
            allowed="Groups: universal, stanford, or lists of relations (groups: [[nsubj, csubj], "
            "[obj]])",
        )
    return groups
