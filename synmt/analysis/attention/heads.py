"""Attention heads of a model, by kind of attention, and their weights in a forward pass.

Annotations of the source count as a kind of attention too: their weights say which pieces are probably the parent of a
piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True)
class KindOfAttention:
    """What is known about a kind of attention.

    name: of the attention, in sentences.
    lines: the lines of the test set that it is computed for.
    rows, columns: the pieces that attend, and those attended to.
    ends: the positions that belong to no word.
    captured: the activations with its weights.
    """

    name: str
    lines: str
    rows: str
    columns: str
    ends: str
    captured: tuple[ActivationKind, ...] = ("attention",)


KINDS: dict[AttentionKind, KindOfAttention] = {
    "source": KindOfAttention(
        "self-attention of the source", "source", "piece that attends", "piece attended to", "EOS and task tags"
    ),
    "target": KindOfAttention(
        "self-attention of the target", "reference", "piece that attends", "piece attended to", "BOS"
    ),
    "cross": KindOfAttention(
        "attention to the source",
        "the run's own translation",
        "piece to be generated",
        "piece attended to",
        "the source's EOS",
        ("cross",),
    ),
    "parents": KindOfAttention(
        "probable parents in the annotations of the source",
        "source",
        "piece",
        "probable parent; on the diagonal: the root, or the piece itself if flat",
        "task tags",
        (),
    ),
}


@dataclass(frozen=True)
class Head:
    """One attention head, the only attention of an LSTM, or annotations of the source.

    layer, number: counted from 1; 0 for an LSTM and for annotations.
    variant: the variant that owns the head, as recipes call it; empty for an ordinary head.
    annotations: what the probable parents are read from; None for attention.
    about: what the head reads, such as the relations of its group; empty if all heads of the variant read the same.
    predicts: whether a piece's weights are those of the step that predicts it, instead of the step that reads it.
    """

    layer: int = 0
    number: int = 0
    variant: str = ""
    annotations: TreeSource | None = None
    about: str = ""
    predicts: bool = False

    @property
    def name(self) -> str:
        """The name in tables, such as `head 1.2 (pascal)`."""
        if self.annotations:
            return self.annotations.name
        return head_name(self.layer, self.number, self.variant) if self.layer else "attention"

    @property
    def label(self) -> str:
        """The name without the word `head`."""
        return self.name.removeprefix("head ")

    @property
    def title(self) -> str:
        """The label for one of many heat maps: what the head reads takes the place of the variant."""
        return f"{self.layer}.{self.number} {self.about}" if self.about else self.label

    @property
    def is_lstm(self) -> bool:
        """Whether this is the attention of an LSTM, which has no layers and heads."""
        return not self.layer and self.annotations is None


def has_heads(model: Seq2Seq) -> bool:
    """Tell a Transformer from an LSTM, whose only attention is to the source."""
    return bool(self_attention(model, "source"))


def heads_of(model: Seq2Seq, kind: AttentionKind, head: str | None = None) -> list[Head]:
    """List the heads of one kind of attention, by layer: head `LAYER.HEAD`, or all."""
    without_heads = "annotations of the source have no heads"
    if kind == "parents":
        found = _annotations(model)
    elif has_heads(model):
        side = side_of(kind)
        owned = {} if kind == "cross" else {(one.layer, one.number): one for one in _owned(model, side)}
        sources = tree_sources(model, side, head or "all")
        return [owned.get((one.layer, one.head), Head(one.layer, one.head)) for one in sources]
    else:
        found, without_heads = [Head()], "an LSTM has a single attention to the source, without heads"
    if head not in (None, "all"):
        raise UsageError(without_heads, where="--head", do="Leave out `--head`")
    return found


def _annotations(model: Seq2Seq) -> list[Head]:
    sources = annotation_sources(model)
    if not sources:
        raise UsageError(
            "the source of this model has no annotations with probable parents",
            where="--what parents",
            allowed="Models with latent_tree or latent_graph have them",
            do="Train one, for example `synmt train multi30k-sa`, or choose its run with `--run`",
        )
    return [Head(variant=source.variant, annotations=source) for source in sources]


def _owned(model: Seq2Seq, side: Side) -> Iterator[Head]:
    """Yield the heads that variants own."""
    for variant in model.variants[side]:
        name, place = variant.recipe_name(), variant.place
        for own in range(1, place.heads + 1):
            number, about = place.first_head + own, variant.about_head(own)
            yield Head(place.layer, number, name, about=about, predicts=variant.rows_predict)


def side_of(kind: AttentionKind) -> Side:
    """Return the side whose pieces attend."""
    return "target" if kind in ("target", "cross") else "source"


def weights_of(forward: ForwardPass, kind: AttentionKind, heads: Sequence[Head]) -> Tensor:
    """Return the attention weights of S heads in a forward pass: (B, S, Tq, Tk)."""
    captured = forward.captured
    if kind == "parents":
        return torch.stack([head.annotations.weights(forward) for head in heads if head.annotations], 1)
    layers = captured.cross
    if kind != "cross":
        layers = {layer: weights for (side, layer), weights in captured.attention.items() if side == kind}
    if heads[0].is_lstm:
        [weights] = layers.values()
        return weights
    return torch.stack([layers[head.layer][:, head.number - 1] for head in heads], 1)


def edits_of(
    captured: Activations, side: Side, what: Literal["factor", "bias"], heads: Sequence[Head]
) -> dict[Head, Tensor]:
    """Return the factors on attention scores, or the biases added to them: (B, Tq, Tk) each.

    Variants compute both, and the penalties of ALiBi are biases too. Heads whose edit changes nothing are left out.
    """
    layers, neutral = (captured.factors, 1.0) if what == "factor" else (captured.biases, 0.0)
    edits = {}
    for head in heads:
        edit = layers.get((side, head.layer))  # (B, H, Tq, Tk)
        if edit is not None and bool((edit[:, head.number - 1] != neutral).any()):
            edits[head] = edit[:, head.number - 1]
    return edits
