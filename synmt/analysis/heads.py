"""Heads of a model: those of attention, and annotations of the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from synmt.analysis.forward_passes import ForwardPass
from synmt.arrays import Side
from synmt.errors import UsageError
from synmt.model.build import variant_class, variant_names
from synmt.model.capture import self_attention
from synmt.model.seq2seq import Seq2Seq
from synmt.model.variant import Variant


@dataclass(frozen=True)
class Head:
    """One attention head, the only attention of an LSTM, or annotations of the source.

    layer, number: counted from 1; 0 for an LSTM and for annotations.
    variant: the variant that owns it, as recipes call it; empty for an ordinary head and for an
        LSTM.
    about: what the head reads, such as the relations of its group; empty if all heads of the
        variant read the same.
    flat: whether annotations attend to any word (FA-NMT) instead of the parent in a latent tree.
    predicts: whether a piece's weights are those of the step that predicts it, instead of the step
        that reads it.
    """

    layer: int = 0
    number: int = 0
    variant: str = ""
    about: str = ""
    flat: bool = False
    predicts: bool = False

    @property
    def name(self) -> str:
        """The name in tables, such as `head 1.2 (pascal)`."""
        if self.is_lstm:
            return "attention"
        annotations = "flat attention" if self.flat else "latent trees"
        what = f"head {self.layer}.{self.number}" if self.layer else annotations
        return f"{what} ({self.variant})" if self.variant else what

    @property
    def label(self) -> str:
        """The name without the word `head`."""
        return self.name.removeprefix("head ")

    @property
    def title(self) -> str:
        """The label for one of many heat maps: what the head reads takes the place of the
        variant."""
        return f"{self.layer}.{self.number} {self.about}" if self.about else self.label

    @property
    def is_lstm(self) -> bool:
        """Whether this is the attention of an LSTM, which has no layers and heads."""
        return self == Head()


def choose_heads(
    model: Seq2Seq, side: Side, head: str | None = None, *, owned: bool = True
) -> list[Head]:
    """List the heads of self-attention by layer: head `LAYER.HEAD`, or all.

    owned: whether to tell heads of variants from others.
    """
    counts = [layer.heads for layer in self_attention(model, side)]
    if not counts:
        do = "Leave out `--head` to read latent trees, or choose a run of a Transformer"
        raise UsageError("an LSTM has no attention heads", where="--head", do=do)
    heads = {
        f"{layer}.{number}": Head(layer, number)
        for layer, count in enumerate(counts, 1)
        for number in range(1, count + 1)
    }
    for variant in model.variants[side] if owned else ():
        heads |= {f"{one.layer}.{one.number}": one for one in _heads_of(variant)}
    if head in (None, "all"):
        return list(heads.values())
    if head not in heads:
        ends = ", ".join(f"{layer}.1 to {layer}.{count}" for layer, count in enumerate(counts, 1))
        raise UsageError(
            f"'{head}' is not a head", where="--head", allowed=f"LAYER.HEAD: {ends}; or `all`"
        )
    return [heads[head]]


def tree_heads(
    model: Seq2Seq, side: Side, head: str | None = None, *, where: str = ""
) -> list[Head]:
    """List what trees are read from: the heads that the user named, or by default what has learned
    trees.

    where: name of the model in error messages.
    """
    if head is not None:
        return choose_heads(model, side, head)
    if learnt := list(_learnt(model, side)):
        return learnt
    classes = {name: variant_class(name) for name in variant_names()}
    learners = [name for name, one in classes.items() if side in one.sides and _learns_trees(one)]
    raise UsageError(
        f"nothing in this model has learned trees of the {side}",
        where=where,
        allowed=f"Variants that learn them: {', '.join(learners)}",
        do="Choose another `--side` or run, or read any head of a Transformer as trees, with "
        "`--head LAYER.HEAD` or `--head all`",
    )


def annotation_heads(model: Seq2Seq) -> list[Head]:
    """List the annotations of the source whose trees or flat attention the model has learned."""
    return [head for head in _learnt(model, "source") if not head.layer]


def head_weights(head: Head, side: Side, forward: ForwardPass) -> Tensor:
    """Return the weights of annotations, or of a head of self-attention: (B, T, T)."""
    if head.layer:
        return forward.captured.attention[side, head.layer][:, head.number - 1]
    if forward.memory.weights is None:
        raise UsageError(
            f"{head.variant} annotates the source without giving the weights of its annotations",
            do="Give them to its memory, `memory.edit(annotations=…, weights=…)`",
        )
    return forward.memory.weights


def _learnt(model: Seq2Seq, side: Side) -> Iterator[Head]:
    for variant in model.variants[side]:
        if _annotates_with_trees(variant):
            yield Head(variant=variant.recipe_name(), flat=not variant.induces_trees)
        elif _learns_trees(variant):
            yield from _heads_of(variant)


def _heads_of(variant: Variant) -> Iterator[Head]:
    """Yield the heads that a variant owns."""
    name, place = variant.recipe_name(), variant.place
    for number in range(1, place.heads + 1):
        about = variant.about_head(number)
        yield Head(
            place.layer, place.first_head + number, name, about, predicts=variant.rows_predict
        )


def _learns_trees(variant: Variant | type[Variant]) -> bool:
    has_heads = variant.edits_attention() and (variant.induces_trees or len(variant.learns) > 0)
    return has_heads or _annotates_with_trees(variant)


def _annotates_with_trees(variant: Variant | type[Variant]) -> bool:
    # one that reads the parser's trees learns none
    return variant.annotates_memory() and not variant.reads
