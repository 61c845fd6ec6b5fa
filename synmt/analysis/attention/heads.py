"""Attention heads of a model, by kind of attention, and their weights in a forward pass.

Annotations of the source count as a kind of attention too: their weights say which pieces are probably the parent of a
piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass
from synmt.analysis.trees.sources import TreeSource, annotation_sources, head_name, tree_sources
from synmt.arrays import Side
from synmt.errors import UsageError
from synmt.model.capture import ActivationKind, Activations, self_attention
from synmt.model.seq2seq import Seq2Seq

AttentionKind = Literal["source", "target", "cross", "parents"]
"""Self-attention of a side, cross-attention from the target to the source, or annotations: probable parents."""

CAPTURED: dict[AttentionKind, tuple[ActivationKind, ...]] = {
    "source": ("attention", "terms"),
    "target": ("attention", "terms"),
    "cross": ("cross",),
    "parents": (),
}
"""The activations to capture for the heat maps of each kind of attention."""


@dataclass(frozen=True)
class Head:
    """One attention head, the only attention of an LSTM, or annotations of the source.

    layer, number: counted from 1; None for an LSTM and for annotations.
    variant: the variant that owns the head, as recipes call it; empty for an ordinary head.
    annotations: what the probable parents are read from; None for attention.
    about: what the head reads, such as the relations of its group; empty if all heads of the variant read the same.
    predicts: whether a piece's weights are those of the step that predicts it, instead of the step that reads it.
    """

    layer: int | None = None
    number: int | None = None
    variant: str = ""
    annotations: TreeSource | None = None
    about: str = ""
    predicts: bool = False

    @property
    def name(self) -> str:
        """The name in tables, such as `head 1.2 (pascal)`."""
        if self.annotations:
            return self.annotations.name
        return head_name(*self.place, self.variant) if self.layer else "attention"

    @property
    def label(self) -> str:
        """The name without the word `head`."""
        return self.name.removeprefix("head ")

    @property
    def title(self) -> str:
        """The label for one of many heat maps: what the head reads takes the place of the variant."""
        return f"{self.layer}.{self.number} {self.about}" if self.about else self.label

    @property
    def place(self) -> tuple[int, int]:
        """Layer and number of a head of a Transformer."""
        assert self.layer is not None, self
        assert self.number is not None, self
        return self.layer, self.number

    @property
    def is_lstm(self) -> bool:
        """Whether this is the attention of an LSTM, which has no layers and heads."""
        return self.layer is None and self.annotations is None


def has_heads(model: Seq2Seq) -> bool:
    """Tell a Transformer from an LSTM, whose only attention is to the source."""
    return bool(self_attention(model, "source"))


def heads_of(model: Seq2Seq, kind: AttentionKind, head: str | None = None) -> list[Head]:
    """List the heads of one kind of attention, by layer: head `LAYER.HEAD`, or all."""
    if kind == "parents":
        return _annotations(model, head)
    if not has_heads(model):
        if head not in (None, "all"):
            raise UsageError(
                "an LSTM has a single attention to the source, without heads", where="--head", do="Leave out `--head`"
            )
        return [Head()]
    side = side_of(kind)
    owned = {} if kind == "cross" else {one.place: one for one in _owned(model, side)}
    sources = tree_sources(model, side, head or "all")
    return [owned.get((one.layer, one.head), Head(one.layer, one.head)) for one in sources]


def _annotations(model: Seq2Seq, head: str | None) -> list[Head]:
    sources = annotation_sources(model)
    if not sources:
        raise UsageError(
            "the source of this model has no annotations with probable parents",
            where="--what parents",
            allowed="Models with latent_tree or latent_graph have them",
            do="Train one, for example `synmt train multi30k-sa`, or choose its run with `--run`",
        )
    if head not in (None, "all"):
        raise UsageError("annotations of the source have no heads", where="--head", do="Leave out `--head`")
    return [Head(variant=source.variant, annotations=source) for source in sources]


def _owned(model: Seq2Seq, side: Side) -> Iterator[Head]:
    for variant in model.variants[side]:
        place = variant.place
        for own in range(1, place.heads + 1):
            about = {"about": variant.about_head(own), "predicts": variant.rows_predict}
            yield Head(place.layer, place.first_head + own, variant.recipe_name(), **about)


def weights_of(forward: ForwardPass, kind: AttentionKind, heads: Sequence[Head]) -> Tensor:
    """Return the attention weights of S heads in a forward pass: (B, S, Tq, Tk)."""
    captured = forward.captured
    if kind == "parents":
        return torch.stack([head.annotations.weights(forward) for head in heads if head.annotations], 1)
    if kind != "cross":
        return _stack({layer: weights for (side, layer), weights in captured.attention.items() if side == kind}, heads)
    if heads[0].is_lstm:
        [weights] = captured.cross.values()
        return weights
    return _stack(captured.cross, heads)


def side_of(kind: AttentionKind) -> Side:
    """Return the side whose pieces attend."""
    return "target" if kind in ("target", "cross") else "source"


def edits_of(
    captured: Activations, side: Side, what: Literal["factor", "bias"], heads: Sequence[Head]
) -> dict[Head, Tensor]:
    """Return the factors on attention scores, or the biases added to them: (B, Tq, Tk) each.

    Variants compute both, and the penalties of ALiBi are biases too. Heads whose edit changes nothing are left out.
    """
    edits = captured.factors if what == "factor" else captured.biases
    neutral = 1.0 if what == "factor" else 0.0
    places = ((head, *head.place) for head in heads)
    by_head = {head: edits[side, layer][:, number - 1] for head, layer, number in places if (side, layer) in edits}
    return {head: edit for head, edit in by_head.items() if bool((edit != neutral).any())}


def _stack(layers: Mapping[int, Tensor], heads: Sequence[Head]) -> Tensor:
    places = (head.place for head in heads)
    return torch.stack([layers[layer][:, number - 1] for layer, number in places], 1)  # (B, S, Tq, Tk)
