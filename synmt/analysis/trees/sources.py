"""Where trees are read from: attention heads of one side, or the annotations of the source."""

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

_ALL = "all"


@dataclass(frozen=True)
class TreeSource:
    """A head of self-attention, or the annotations of the source.

    variant: the variant that owns it, as recipes call it; empty for an ordinary head.
    layer, head: counted from 1; 0 for annotations.
    flat: whether the annotations attend to any word (FA-NMT) instead of the parent in a latent tree.
    predicts: whether a piece's weights are those of the step that predicts it, instead of the step that reads it.
    """

    side: Side
    variant: str = ""
    layer: int = 0
    head: int = 0
    flat: bool = False
    predicts: bool = False

    @property
    def name(self) -> str:
        """The name in tables, such as `head 4.1 (dbsa)`."""
        if not self.layer:
            return f"{'flat attention' if self.flat else 'latent trees'} ({self.variant})"
        return head_name(self.layer, self.head, self.variant)

    @property
    def file_name(self) -> str:
        """The name in file names."""
        part = f"head-{self.layer}.{self.head}" if self.layer else "flat" if self.flat else "latent"
        return part if self.side == "source" else f"{self.side}-{part}"

    def weights(self, forward: ForwardPass) -> Tensor:
        """Return its attention weights in a forward pass: (B, T, T), without BOS on the target."""
        if self.layer:
            weights = forward.captured.attention[self.side, self.layer][:, self.head - 1]  # (B, T, T)
            if self.side == "source":
                return weights
            return weights[:, :-1, 1:] if self.predicts else weights[:, 1:, 1:]
        if forward.memory.weights is None:
            raise UsageError(
                f"{self.variant} annotates the source without giving the weights of its annotations",
                do="Give them to its memory, `memory.edit(annotations=…, weights=…)`",
            )
        return forward.memory.weights


def head_name(layer: int, head: int, variant: str = "") -> str:
    """Name a head in tables, with the variant that owns it, such as `head 4.1 (dbsa)`."""
    return f"head {layer}.{head}" + (f" ({variant})" if variant else "")


def tree_sources(model: Seq2Seq, side: Side, head: str | None = None, *, where: str = "") -> list[TreeSource]:
    """List the sources of trees: head `LAYER.HEAD`, `all` heads, or by default what has learned trees.

    where: name of the model in error messages.
    """
    learnt = list(_learnt(model, side))
    heads = [layer.heads for layer in self_attention(model, side)]
    if head is None:
        if not learnt:
            raise UsageError(
                f"nothing in this model has learned trees of the {side}",
                where=where,
                allowed=f"Variants that learn them: {', '.join(_tree_learners(side))}",
                do=f"You can {', or '.join(_advice(model, side, heads))}",
            )
        return learnt
    if not heads:
        raise UsageError(
            "an LSTM has no attention heads",
            where="--head",
            do="Leave out `--head` to read latent trees, or choose a run of a Transformer",
        )
    owners = {(source.layer, source.head): source for source in learnt}
    every = [(layer, number) for layer, own in enumerate(heads, 1) for number in range(1, own + 1)]
    places = {f"{layer}.{number}": (layer, number) for layer, number in every}
    if head not in (_ALL, *places):
        ends = ", ".join(f"{layer}.1 to {layer}.{own}" for layer, own in enumerate(heads, 1))
        raise UsageError(f"'{head}' is not a head", where="--head", allowed=f"LAYER.HEAD: {ends}; or `{_ALL}`")
    chosen = every if head == _ALL else [places[head]]
    return [owners.get(place, TreeSource(side, "", *place)) for place in chosen]


def annotation_sources(model: Seq2Seq) -> list[TreeSource]:
    """List the annotations of the source whose trees or flat attention the model has learned."""
    return [source for source in _learnt(model, "source") if not source.layer]


def _learnt(model: Seq2Seq, side: Side) -> Iterator[TreeSource]:
    for variant in model.variants[side]:
        name, place = variant.recipe_name(), variant.place
        if _annotates_with_trees(variant):
            yield TreeSource(side, name, flat=not variant.induces_trees)
        elif _has_tree_heads(variant):
            for head in range(place.first_head, place.first_head + place.heads):
                yield TreeSource(side, name, place.layer, head + 1, predicts=variant.rows_predict)


def _has_tree_heads(variant: Variant | type[Variant]) -> bool:
    return variant.edits_attention() and (variant.induces_trees or len(variant.learns) > 0)


def _advice(model: Seq2Seq, side: Side, heads: list[int]) -> Iterator[str]:
    """Yield what to do where nothing has learned trees of a side."""
    other: Side = "target" if side == "source" else "source"
    if any(_learnt(model, other)):
        yield f"see the trees of its {other} with `--side {other}`"
    if heads:
        yield "read any head as trees, with `--head LAYER.HEAD` or `--head all`"
    elif side == "source":
        yield "train a model with latent_tree (`synmt train multi30k-sa`)"
    if not heads:
        yield "choose a run of a Transformer and read its heads with `--head`"


def _tree_learners(side: Side) -> Iterator[str]:
    for name in variant_names():
        variant = variant_class(name)
        if side in variant.sides and (_annotates_with_trees(variant) or _has_tree_heads(variant)):
            yield name


def _annotates_with_trees(variant: Variant | type[Variant]) -> bool:
    # one that reads the parser's trees learns none
    return variant.annotates_memory() and not variant.reads
