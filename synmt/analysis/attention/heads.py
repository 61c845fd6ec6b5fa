"""Which attention is looked at: heads of one side's self-attention, or of the decoder's attention to the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from synmt.analysis.trees.induced import TreeSource, tree_sources
from synmt.arrays import Side
from synmt.errors import UsageError, did_you_mean
from synmt.model.capture import ActivationKind, Activations, self_attention
from synmt.model.seq2seq import Seq2Seq

Place = Literal["source", "target", "cross"]
"""Self-attention of a side, or attention of the target to the source."""

What = Literal["weights", "factor", "bias", "cross"]
"""What heat maps show."""

WHAT: tuple[str, ...] = get_args(What)

WATCHED: dict[Place, tuple[ActivationKind, ...]] = {
    "source": ("attention", "terms"),
    "target": ("attention", "terms"),
    "cross": ("cross",),
}
"""What has to be watched to see all of a place."""


@dataclass(frozen=True)
class Head:
    """One attention head, or the only attention of an LSTM.

    layer, number: counted from 1; 0 for the attention of an LSTM.
    variant: what the recipe calls the variant that owns it; empty for an ordinary head.
    """

    layer: int
    number: int
    variant: str = ""

    @property
    def name(self) -> str:
        """What people call it, such as `head 1.2 (pascal)`."""
        return TreeSource("source", self.variant, self.layer, self.number).name if self.layer else "attention"


def check_what(what: str) -> None:
    """Refuse what no heat map shows."""
    if what not in WHAT:
        raise UsageError(
            f"heat maps do not show '{what}'",
            where="--what",
            allowed=f"They show {', '.join(WHAT)}",
            do=did_you_mean(what, WHAT),
        )


def has_heads(model: Seq2Seq) -> bool:
    """Tell a Transformer from an LSTM, which has a single attention, to the source."""
    return bool(self_attention(model, "source"))


def heads_of(model: Seq2Seq, place: Place, head: str | None = None) -> list[Head]:
    """List the heads of a place, by layer: one, `LAYER.HEAD`, or all."""
    if not has_heads(model):
        if head not in (None, "all"):
            raise UsageError(
                "an LSTM has one attention to the source, and no heads to choose from",
                where="--head",
                do="Leave `--head` out",
            )
        return [Head(0, 0)]
    side: Side = "target" if place == "cross" else place
    owners = {} if place == "cross" else dict(_owned(model, side))
    chosen = tree_sources(model, side, head or "all")
    return [Head(one.layer, one.head, owners.get((one.layer, one.head), "")) for one in chosen]


def _owned(model: Seq2Seq, side: Side) -> Iterator[tuple[tuple[int, int], str]]:
    for variant in model.variants[side]:
        place = variant.place
        for head in range(place.first_head, place.first_head + place.heads):
            yield (place.layer, head + 1), type(variant).__module__.rpartition(".")[2]


def weights_of(captured: Activations, place: Place, heads: Sequence[Head]) -> Tensor:
    """Take what the heads look at from a pass: (B, S, Tq, Tk)."""
    if place != "cross":
        return _stack({layer: found for (side, layer), found in captured.attention.items() if side == place}, heads)
    if not heads[0].layer:
        [weights] = captured.cross.values()
        return weights
    return _stack(captured.cross, heads)


def edits_of(
    captured: Activations, side: Side, what: Literal["factor", "bias"], heads: Sequence[Head]
) -> dict[Head, Tensor]:
    """Take what variants multiply the scores of their heads by, or add to them: (B, Tq, Tk) each.

    A head whose edit is neutral everywhere has none.
    """
    found = captured.factors if what == "factor" else captured.biases
    neutral = 1.0 if what == "factor" else 0.0
    edits = {
        head: found[side, head.layer][:, head.number - 1]
        for head in heads
        if head.variant and (side, head.layer) in found
    }
    return {head: edit for head, edit in edits.items() if bool((edit != neutral).any())}


def _stack(layers: Mapping[int, Tensor], heads: Sequence[Head]) -> Tensor:
    return torch.stack([layers[head.layer][:, head.number - 1] for head in heads], 1)  # (B, S, Tq, Tk)
