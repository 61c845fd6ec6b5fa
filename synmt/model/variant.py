"""What a variant of attention is: read this page before you write one.

A variant is a class in its own file in `synmt/model/variants/`, named like the file in CamelCase.
It edits the terms of attention (`synmt/model/attention.py`) and may read signals of the parse
(`synmt/syntax/signals.py`). Its class declares what it reads, where it fits and which values its
options take, so that a recipe is checked before a model is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from synmt.arrays import SIDES, Side, Strings
from synmt.model.attention import Memory, Terms
from synmt.recipe.model import DEEPEST
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signals

Annotation = Literal["none", "shared", "separate"]
Probability = Annotated[float, Field(ge=0, le=1)]
Depth = Annotated[int, Field(gt=0, le=DEEPEST)]
"""A number of layers."""

Rate = Annotated[float, Field(ge=0, lt=1)]
"""A rate of dropout, which scales what is kept."""


@dataclass(frozen=True)
class Place:
    """Where a variant is in the model, and the sizes that it may need.

    layer: counted from 1, as in papers.
    heads: how many heads of the layer it owns; 0 for a variant that edits no attention.
    first_head: the first of them, counted from 0.
    embedding_dim: width of the embeddings; 0 means model_dim.
    recurrent: whether the model is an LSTM.
    entry, leads: which of the recipe's variants it is, from 0, and whether this is the first of its
    layers.
    punctuation: ids of the pieces that are punctuation, in the vocabulary of this side.
    features: the values of each learned feature of words in the training text, most frequent first.
    """

    side: Side
    layer: int
    heads: int
    model_dim: int
    head_dim: int
    first_head: int = 0
    embedding_dim: int = 0
    recurrent: bool = False
    entry: int = 0
    leads: bool = True
    punctuation: tuple[int, ...] = ()
    features: Mapping[str, Strings] = field(default_factory=dict)


@dataclass
class Syntax:
    """What one forward pass over one side hands to the variants; None for a side without variants.

    signals: name -> (B, T), (B, T, T) or (B, G, T, T), or a table of a signal's rows, (N, …); those
        of `learns` are there in training only.
    states: the inputs of a Transformer's layers so far, each (B, T, D), and at the end the output
        of the last layer.
    losses: weighted auxiliary losses of this pass by name, each a sum over the batch.
    ids: (B, T), the source pieces.
    shared: what a variant computes once for all of its layers, by its `entry`.
    """

    signals: Mapping[str, Tensor]
    states: list[Tensor] = field(default_factory=list)
    losses: dict[str, Tensor] = field(default_factory=dict)
    ids: Tensor | None = None
    shared: dict[int, Tensor] = field(default_factory=dict)


class Variant(nn.Module):
    """Edit the model in one place. Override the one of `embed`, `edit`, `observe` and `annotate`
    that your paper needs.

    Options are keyword-only arguments of `__init__` with a type and usually a default. The type can
    limit the values: `variance: PositiveFloat = 1.0` (pydantic), `ignore: Probability = 0.0`,
    `kind: Literal["global", "deep"] = "deep"`.
    """

    reads: Signals = ()
    """Signals needed whenever the model runs, so that translating needs a parser: possible on the
    source only."""

    learns: Signals = ()
    """Signals needed in training only, as the gold labels of an auxiliary loss."""

    sides: tuple[Side, ...] = SIDES
    """The sides on which it can be used."""

    default_layers: tuple[int, ...] | Literal["all"] = (1,)
    """Layers in which it is used, unless the recipe names others."""

    default_heads: int | Literal["all"] = "all"
    """How many heads it owns in each layer, unless the recipe says otherwise."""

    loss_weight: float = 1.0
    """Weight of the auxiliary loss; set by the recipe."""

    loss_steps: tuple[int, int] | None = None
    """First and last step in which the auxiliary loss counts, None for all; set by the recipe."""

    warm: int = 0
    """Over how many steps of training its edit is blended in; set by the recipe."""

    share: nn.Parameter | None
    """How much of its edit counts, from 0 to 1, if it is blended in; stored with the weights."""

    can_blend: bool = True
    """Whether its edit can be blended in: a mask cannot."""

    loss_counts: bool = True
    """Whether the auxiliary loss counts in the present step; set by the trainer."""

    annotation: Annotation = "none"
    """How an LSTM's decoder reads the annotations that `annotate` makes: with the attention weights
    of the states (shared) or with its own (separate); none for a variant that only edits the
    states."""

    lengthens_memory: bool = False
    """Whether `annotate` puts more places after the pieces."""

    induces_trees: bool = False
    """Whether its attention weights or annotations are dependency trees learned without
    supervision."""

    only_learns: bool = False
    """Whether it does nothing but add a loss, so that a trained model computes the same without
    it."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.register_parameter("share", None)

    @property
    def rows_predict(self) -> bool:
        """Whether a word's weights are those of the step that predicts it, instead of the step that
        reads it."""
        return False

    def initialise(self) -> None:
        """Set the weights with a special initialization: an LSTM initializes all others alike when
        it is built."""

    def embed(self, x: Tensor, syntax: Syntax) -> Tensor:
        """Edit the scaled token embeddings, before positions are added: (B, T, D) -> same."""
        return x

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Edit the terms of the heads that this variant owns."""
        return terms

    def observe(self, x: Tensor, syntax: Syntax) -> None:
        """Look at the output of its layer, (B, T, D), and `supervise`: called in a pass over a
        batch of pairs only."""

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Edit what the decoder reads of the source: its states, or for an LSTM's decoder their
        annotations."""
        return memory

    def about_head(self, number: int) -> str:
        """Return what one of its heads reads, counted from 1; empty if all its heads read the
        same."""
        return ""

    def supervise(self, syntax: Syntax, loss: Tensor) -> None:
        """Add an auxiliary loss, the sum over the batch: it is weighted here and normalized like
        the main loss."""
        name = f"{type(self).__name__.lower()}.{self.place.side}.{self.place.layer}"
        # a loss that does not count is still there, so that every process of a training has the
        # same graph
        weight = self.loss_weight if self.loss_counts else 0.0
        syntax.losses[name] = syntax.losses.get(name, 0.0) + weight * loss

    def gold(self, syntax: Syntax) -> list[Tensor]:
        """Return the signals that it learns from, in their order; none where one is not there."""
        names = [signal.name for signal in self.learns]
        known = all(name in syntax.signals for name in names)
        return [syntax.signals[name] for name in names] if known else []

    def enter_step(self, step: int) -> None:
        """Count the auxiliary loss if it counts in this step of training, counted from 1, and blend
        the edit in."""
        first, last = self.loss_steps or (step, step)
        self.loss_counts = first <= step <= last
        if self.share is not None:
            self.share.data.fill_(min(1.0, (step - 1) / self.warm))

    def blended(self, plain: Tensor, edited: Tensor) -> Tensor:
        """Go from plain states to edited ones as far as the edit counts: (B, T, D) both."""
        return edited if self.share is None else torch.lerp(plain, edited, self.share)

    @classmethod
    def reads_for(cls, **options: Any) -> Signals:
        """List `reads` for these options (all of them, defaults included). Override it where
        options decide."""
        return cls.reads

    @classmethod
    def learns_for(cls, **options: Any) -> Signals:
        """List `learns` for these options. Override it where options decide."""
        return cls.learns

    @classmethod
    def annotation_for(cls, **options: Any) -> Annotation:
        """Return `annotation` for these options. Override it where options decide."""
        return cls.annotation

    @classmethod
    def can_blend_for(cls, **options: Any) -> bool:
        """Return `can_blend` for these options. Override it where options decide."""
        return cls.can_blend

    @classmethod
    def check(cls, place: Place, **options: Any) -> None:
        """Raise UsageError where options do not fit each other or the place. Override it where that
        can happen."""

    @classmethod
    def known_relations(cls, **options: Any) -> Strings:
        """List the relations that it tells from others; empty if it reads none. Override it where
        other options decide."""
        signals = cls.reads_for(**options) + cls.learns_for(**options)
        reads_any = any(signal.needs in ("labels", "relations") for signal in signals)
        return (options.get("relations") or KNOWN) if reads_any else ()

    @classmethod
    def recipe_name(cls) -> str:
        """Name its file, as recipes do."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def edits_embeddings(cls) -> bool:
        """Return whether it edits the embeddings of pieces."""
        return cls.embed is not Variant.embed

    @classmethod
    def edits_attention(cls) -> bool:
        """Return whether it edits attention, and so owns heads of a Transformer."""
        return cls.edit is not Variant.edit

    @classmethod
    def observes(cls) -> bool:
        """Return whether it looks at the output of a Transformer's layers."""
        return cls.observe is not Variant.observe

    @classmethod
    def annotates_memory(cls) -> bool:
        """Return whether it edits what the decoder reads of the source."""
        return cls.annotate is not Variant.annotate
