"""Labelled dependency distributions (Liu & Sima'an, 2022).

    N^l = softmax(S ∘ LDD^l) V        S_ij = q_i · k_j / √d        LDD^l_ij = Σ_{r in group l} p(j, r | i)

p(j, r | i) is the parser's probability that word j is the parent of word i, with relation r. Head l of the layer
reads group l of the relations: a layer with 16 groups has 16 heads. There is nothing to learn. The kinds differ in P,
which takes the place of LDD, and in its use:

    kind   P_ij in head l                                      use
    ldd    Σ_{r in group l} p(j, r | i)                        factor
    lda    the same                                            the weights: N^l = P V, without Q and K
    ldp    1 if the tree's arc from i to j is in group l       factor
    udp    1 if the tree has an arc from i to j                factor
    udd    Σ_r p(j, r | i), over all relations                 factor
    uldd   1 / (W · number of groups), W words                 factor
    uudd   1 / W                                               factor

What the paper leaves open is read as follows. A root is its own parent: its mass stands on the diagonal. Pieces copy
the values of their words (the paper has whole words). The row of EOS, and of a piece without a word, is 1: its scores
stay as they are; its column is 0 in the rows of words. Relations in no group are left out, so rows need not sum to 1.
A score that P makes 0 stays 0 and is not masked: a head without mass in a row looks at all keys alike. Padding is
masked as always.

Section 3.1 fixes the weights of LDA to the distribution; table 1 puts it in the place of S, before the softmax. The
first is what happens unless `softmax` is set: weights as they are, so that a head without mass in a row gives 0, and
EOS, whose row would sum all values, looks at all pieces alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

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
    base_name,
    most_frequent,
    unknown_relations,
)
from synmt.syntax.signals import WORD, Signal

SIGNALS: dict[str, Callable[..., Signal]] = {
    "ldd": arcs,
    "lda": arcs,
    "ldp": tree_arcs,
    "udp": tree_arcs,
    "udd": arcs,
    "uldd": uniform_arcs,
    "uudd": uniform_arcs,
}
UNLABELLED = ("udp", "udd", "uudd")

TABLES: dict[str, tuple[Groups, tuple[str, ...]]] = {
    "universal": (UNIVERSAL_GROUPS, LEFT_OUT),
    "stanford": (STANFORD_GROUPS, STANFORD_LEFT_OUT),
}
"""Groups by name, each with the relations that it leaves out on purpose."""


class DependencyDistribution(Variant):
    """Scale the scores of each head by the probability of an arc with a relation of its group.

    kind: what stands for the distribution and how it is used; the table above has all seven.
    groups: of relations, a head for each: `universal`, the paper's 16 carried over to Universal Dependencies,
        `stanford`, the paper's own, or lists of names; a name stands for its subtypes too, and `rest` for all that no
        group names. Only for labelled kinds.
    split: divide by the number of pieces of the parent, so that they share what is one word's in the paper.
    softmax: let the weights of `lda` pass through the softmax (the paper's table 1).
    """

    default_layers = (1,)

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
        if place.side != "source":
            raise UsageError("dependency_distribution reads the parse of the source", allowed="side: source")
        if softmax and kind != "lda":
            raise UsageError(
                f"`softmax` of dependency_distribution is for kind lda; {kind} has one anyway", do="Leave out `softmax`"
            )
        self.kind, self.softmax = kind, softmax
        self.groups, self.left_out = _groups_of(kind, groups)
        self.own = self.groups is not None and not isinstance(groups, str)
        if self.groups is not None:
            _check_heads(place, len(self.groups))
        table = SIGNALS[kind](self.groups, split=split)
        self.table = table.name
        self.reads = (table, WORD) if kind == "lda" and not softmax else (table,)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Fill the factor with P (B, 1 or H, T, T), or make it the weights."""
        table = syntax.signals[self.table]  # (B, 1 or H, T, T)
        if self.kind != "lda":
            return terms.edit(factor=table)
        nothing = torch.zeros_like(terms.q)  # (B, H, T, d)
        if self.softmax:
            return terms.edit(q=nothing, k=nothing, bias=table)
        weights = even_rows(table, syntax.signals["word"] < 0)  # (B, H, T, T)
        return terms.edit(q=nothing, k=nothing, bias=weights, normalize=as_it_is)

    def remark(self, relations: Mapping[str, int]) -> str:
        """Name relations of the training text that no scheme knows, and those of one's own groups that it has not."""
        if self.groups is None:
            return ""
        known = [name for group in (*self.groups, self.left_out) for name in group]
        counts = {name: relations[name] for name in unknown_relations(relations, known) if REST not in known}
        said = []
        if counts:
            said.append(
                f"dependency_distribution leaves out {sum(counts.values()):,} of {sum(relations.values()):,} arcs, "
                f"whose {len(counts)} relations are in no group: {most_frequent(counts)}"
            )
        if absent := self._absent(relations):
            said.append(f"no arc of the training text has {', '.join(absent)}, named in dependency_distribution.groups")
        return "; ".join(said)

    def _absent(self, relations: Mapping[str, int]) -> list[str]:
        """List the relations in groups of one's own that do not occur; of a table not all need to."""
        if not self.own:
            return []
        seen = {*relations, *(base_name(relation) for relation in relations)}
        return [name for group in self.groups or () for name in group if name not in (*seen, REST)]


def even_rows(table: Tensor, special: Tensor) -> Tensor:
    """Spread 1 over the rows of specials, which are ones: (B, H, T, T), (B, T) -> (B, H, T, T)."""
    # rows of padding sum to 0
    sums = table.sum(-1, keepdim=True).clamp(min=1)  # (B, H, T, 1)
    return torch.where(special[:, None, :, None], table / sums, table)


def as_it_is(scores: Tensor) -> Tensor:
    """Take the scores for the weights, with 0 where they are masked: (B, H, Tq, Tk) -> same."""
    return scores.masked_fill(scores == -math.inf, 0)


def _groups_of(kind: str, groups: str | Groups) -> tuple[Groups | None, tuple[str, ...]]:
    """Look up the groups and what they leave out on purpose; unlabelled kinds have none."""
    if kind in UNLABELLED:
        if groups != "universal":
            raise UsageError(f"dependency_distribution of kind {kind} sums over all relations", do="Leave out `groups`")
        return None, ()
    if isinstance(groups, str):
        return TABLES[groups]
    if not groups or not all(groups):
        empty = f"group {groups.index(()) + 1} names no relation" if groups else "`groups` is empty"
        raise UsageError(
            f"{empty}, and each is read by a head of dependency_distribution",
            allowed="universal, stanford, or lists of relations (groups: [[nsubj, csubj], [obj]])",
        )
    # who names groups leaves out the other relations on purpose
    return groups, KNOWN


def _check_heads(place: Place, groups: int) -> None:
    if place.heads != groups:
        raise UsageError(
            f"dependency_distribution has {groups} groups, one for each head, but owns {place.heads} heads of layer "
            f"{place.layer}",
            do=f"Let it own {groups} (`heads: {groups}`) of a layer with as many or more (`model.encoder_heads: "
            f"[{groups}, …]`), or name {place.heads} groups (`groups: [[nsubj, csubj], …]`)",
        )
