"""Heads of a model: those of attention, and annotations of the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from synmt.arrays import Side
from synmt.errors import UsageError
from synmt.model.attention import Memory
from synmt.model.capture import Activations, self_attention
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Variant
from synmt.syntax.signals import PARENT_CHAIN, PARENT_FIRST, Signal


@dataclass(frozen=True)
class Head:
    """One attention head, the only attention of an LSTM, or annotations of the source.

    layer, number: counted from 1; 0 for an LSTM and for annotations, and number 0 for the mean of
        the heads in a layer.
    variant: the variant that owns it, as recipes call it; empty for an ordinary head and for an
        LSTM.
    about: what the head reads, such as the relations of its group; empty if all heads of the
        variant read the same.
    predicts: whether a piece's weights are those of the step that predicts it, instead of the step
        that reads it.
    """

    layer: int = 0
    number: int = 0
    variant: str = ""
    about: str = ""
    predicts: bool = False

    @property
    def place(self) -> str:
        """Its layer and number, as the option `--head` has them."""
        return f"{self.layer}.{self.number or 'mean'}"

    def of(self, heads: Tensor) -> Tensor:
        """Select its part of the values of all heads in its layer: (B, H, …) -> (B, …)."""
        return heads[:, self.number - 1] if self.number else heads.mean(1)

    @property
    def name(self) -> str:
        """The name in tables, such as `head 1.2 (pascal)`."""
        if not self.variant:
            return "attention" if self.is_lstm else f"head {self.place}"
        name = f"head {self.place}" if self.layer else "annotations"
        return f"{name} ({self.variant})"

    @property
    def title(self) -> str:
        """The title of its heat map: its place and what it reads, or its name."""
        return f"{self.place} {self.about}".strip() if self.layer else self.name

    @property
    def is_lstm(self) -> bool:
        """Whether this is the attention of an LSTM, which has no layers and heads."""
        return self == Head()


def choose_heads(
    model: Seq2Seq, side: Side, head: str | None = None, *, owned: bool = True
) -> list[Head]:
    """List the heads of self-attention by layer: head `LAYER.HEAD`, the mean of a layer,
    `LAYER.mean`, or all.

    owned: whether to tell heads of variants from others.
    """
    heads = {}
    for layer, attention in enumerate(self_attention(model, side), 1):
        for number in range(1, attention.heads + 1):
            heads[layer, number] = Head(layer, number)
    for variant in model.variants[side] if owned else ():
        for owned_head in _heads_of(variant):
            heads[owned_head.layer, owned_head.number] = owned_head
    means = [Head(layer) for layer, number in heads if number == 1]
    chosen = [candidate for candidate in heads.values() if head in (None, "all", candidate.place)]
    chosen = chosen or [mean for mean in means if mean.place == head]
    if not chosen:
        raise UsageError(
            "the model has no such attention head",
            where=f"--head {head}",
            allowed="LAYER.HEAD, both counted from 1, LAYER.mean or `all`; an LSTM has no heads",
        )
    return chosen


def tree_heads(
    model: Seq2Seq, side: Side, head: str | None = None, *, where: str = ""
) -> list[Head]:
    """List what trees are read from: the heads that the user named, or by default what has learned
    trees.

    where: name of the model in error messages.
    """
    if head is not None:
        return choose_heads(model, side, head)
    learned = list(learned_heads(model, side))
    if not learned:
        raise UsageError(
            f"nothing in this model has learned trees of the {side}",
            where=where,
            do="Choose another `--side` or run, or read any head of a Transformer as trees, with "
            "`--head LAYER.HEAD` or `--head all`",
        )
    return learned


def annotation_heads(model: Seq2Seq) -> list[Head]:
    """List the annotations of the source whose trees or flat attention the model has learned."""
    return [head for head in learned_heads(model, "source") if not head.layer]


def head_weights(head: Head, side: Side, captured: Activations, memory: Memory) -> Tensor:
    """Return the weights of annotations, or of a head of self-attention: (B, T, T)."""
    if head.layer:
        return head.of(captured.attention[side, head.layer])
    if memory.weights is None:
        raise UsageError(
            f"{head.variant} annotates the source without giving the weights of its annotations",
            do="Give them to its memory, `memory.edit(annotations=…, weights=…)`",
        )
    return memory.weights


def learned_heads(model: Seq2Seq, side: Side) -> Iterator[Head]:
    """Yield the heads and annotations of a side that have learned trees."""
    for variant in model.variants[side]:
        # one that reads the parser's trees learns none
        if variant.annotates_memory() and not variant.reads:
            yield Head(variant=variant.recipe_name())
        elif variant.edits_attention() and (variant.induces_trees or variant.learns):
            yield from _heads_of(variant)


def supervised_heads(model: Seq2Seq, side: Side, heads: Sequence[Head]) -> dict[Head, Signal]:
    """Choose the heads that learn to attend to parents, each with the signal that says which pieces
    these are, (T,); raises UsageError if there is none."""
    chosen = {
        head: signal
        for variant in model.variants[side]
        for signal in variant.learns
        if variant.edits_attention() and signal in (PARENT_FIRST, PARENT_CHAIN)
        for head in _heads_of(variant)
        if head in heads
    }
    if not chosen:
        raise UsageError(
            f"no chosen head of the {side} learns from parents",
            where="--what target",
            do="Leave out `--head`, or choose a run with lisa or dbsa",
        )
    return chosen


def _heads_of(variant: Variant) -> Iterator[Head]:
    """Yield the heads that a variant owns."""
    name, place = variant.recipe_name(), variant.place
    for number in range(1, place.heads + 1):
        yield Head(
            place.layer,
            place.first_head + number,
            name,
            variant.about_head(number),
            predicts=variant.rows_predict,
        )
