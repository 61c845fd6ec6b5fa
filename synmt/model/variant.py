"""What a variant of attention is: the page to read before writing one.

A variant is a module in a file of its own in `synmt/model/variants/`; the class name is the file name in
CamelCase. It maps the terms of attention to edited terms, reading signals of the parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from synmt.arrays import Side
from synmt.model.attention import Memory, Terms
from synmt.syntax.signals import Signal

Annotation = Literal["none", "shared", "separate"]


@dataclass(frozen=True)
class Place:
    """Where a variant stands, the sizes that it may need, and what it may need to know of the vocabulary.

    layer: counted from 1, as in papers.
    heads: how many heads of the layer it owns; 0 for a variant that edits no attention.
    first_head: the first of them, counted from 0.
    embedding_dim: width of the embeddings; 0 is model_dim.
    punctuation: the pieces of the side's vocabulary that are punctuation.
    """

    side: Literal["source", "target"]
    layer: int
    heads: int
    model_dim: int
    head_dim: int
    first_head: int = 0
    embedding_dim: int = 0
    punctuation: tuple[int, ...] = ()


@dataclass
class Syntax:
    """What travels with one forward pass over one side; None for a side without variants.

    signals: name -> (B, T), (B, T, T) or (B, G, T, T), with the gold of auxiliary losses where it is known.
    states: the inputs of the layers so far, each (B, T, D).
    losses: auxiliary losses found on the way, weighted, each the sum over the batch.
    ids: (B, T) the pieces of the source.
    """

    signals: Mapping[str, Tensor]
    states: list[Tensor] = field(default_factory=list)
    losses: dict[str, Tensor] = field(default_factory=dict)
    ids: Tensor | None = None


class Variant(nn.Module):
    """Edit attention in one place. Override the one method that your paper needs.

    reads: signals needed whenever the model runs, so translating needs a parser.
    learns: signals needed in training only, as the gold of an auxiliary loss.

    Set both on the class, or in `__init__` where options decide. Options are keyword-only with defaults.
    """

    reads: tuple[Signal, ...] = ()
    learns: tuple[Signal, ...] = ()

    sides: tuple[Side, ...] = ("source", "target")
    """The sides on which a recipe may place it."""

    loss_weight: float = 1.0
    """Of the auxiliary loss; the recipe sets it."""

    default_layers: tuple[int, ...] | Literal["all"] = (1,)
    """Where it stands, if the recipe does not say."""

    default_heads: int | Literal["all"] = "all"
    """How many heads of a layer it owns, if the recipe does not say."""

    annotation: Annotation = "none"
    """Whether `annotate` gives the source annotations, and whether an LSTM's decoder reads them with the attention to
    its states or with their own."""

    gives_trees: bool = False
    """Whether it finds dependency trees by itself, without gold: in the weights of its heads or of its annotations."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Edit the scaled token embeddings, before positions are added: (B, T, D) -> same."""
        return x

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Edit the terms of the heads that this variant owns."""
        return terms

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Edit what the decoder reads of the source."""
        return memory

    def remark(self, relations: Mapping[str, int]) -> str:
        """Say what a person should know of the relations in the training text, given how often each occurs."""
        return ""

    def supervise(self, syntax: Syntax, loss: Tensor) -> None:
        """Add an auxiliary loss, the sum over the batch; it is weighted here and normalised like translation."""
        name = f"{type(self).__name__.lower()}.{self.place.side}.{self.place.layer}"
        before = syntax.losses.get(name, 0.0)
        syntax.losses[name] = before + self.loss_weight * loss

    @classmethod
    def edits_attention(cls) -> bool:
        """Tell whether it edits attention, and so owns heads; only a Transformer has attention to edit."""
        return cls.edit is not Variant.edit

    @classmethod
    def annotates_memory(cls) -> bool:
        """Tell whether it edits what the decoder reads; only an LSTM's decoder reads annotations."""
        return cls.annotate is not Variant.annotate
