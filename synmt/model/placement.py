"""Checks and places a variant: its options, which are keyword arguments of its class, and the rules
for architectures, sides, layers, heads and names of signals."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import torch
from pydantic import ConfigDict, TypeAdapter, ValidationError
from torch import nn

from synmt.arrays import Values
from synmt.errors import UsageError, all_in_one, did_you_mean, plain_message
from synmt.model.variant import Annotation, Place, Variant
from synmt.recipe.schema import ModelRecipe, VariantRecipe
from synmt.syntax.feature_signals import FeatureValues, with_values
from synmt.syntax.parse import FEATURES
from synmt.syntax.signals import Signal, Signals


@dataclass(frozen=True)
class PlacedVariant:
    """A variant in one layer of a recipe's model, checked but not built.

    reads: the signals that it reads with these options.
    """

    kind: type[Variant]
    place: Place
    options: Mapping[str, Any]
    loss_weight: float
    reads: Signals
    loss_steps: tuple[int, int] | None = None
    warm: int = 0

    @property
    def signals(self) -> Signals:
        """What it reads and what it learns from."""
        return self.reads + self.learns

    @property
    def learns(self) -> Signals:
        """What it learns from with these options."""
        return self.kind.learns_for(**self.options)

    @property
    def annotation(self) -> Annotation:
        """How an LSTM's decoder reads its annotations, with these options."""
        return self.kind.annotation_for(**self.options)

    def build(self) -> Variant:
        """Make the module."""
        variant = self.kind(self.place, **self.options)
        variant.reads, variant.learns, variant.annotation = self.reads, self.learns, self.annotation
        variant.loss_weight, variant.loss_steps = self.loss_weight, self.loss_steps
        if self.warm:
            variant.warm, variant.share = self.warm, nn.Parameter(torch.ones(()), False)
        return variant


Layers = list[list[PlacedVariant]]
"""The variants of each layer of one side, first layer first."""


def place_variant(
    kind: type[Variant],
    recipe: VariantRecipe,
    model: ModelRecipe,
    layers: Layers,
    entry: int,
    punctuation: tuple[int, ...],
    features: FeatureValues,
) -> None:
    """Add a variant to the layers of its side; raises UsageError where it does not fit.

    entry: which of the recipe's variants it is, from 0.
    punctuation: ids of the pieces of the side that are punctuation.
    features: values of the learned features of the source; empty as long as they are not known.
    """
    options = check_options(kind, recipe, f"syntax.variants.{entry}")
    reads = tuple(with_values(signal, features) for signal in kind.reads_for(**options))
    numbers = kind.default_layers if recipe.layers is None else recipe.layers
    numbers = tuple(range(1, len(layers) + 1)) if numbers == "all" else numbers
    _check(kind, recipe, model, options, numbers)
    for number in numbers:
        layer, total = layers[number - 1], model.heads_of(recipe.side)[number - 1]
        owned_heads = sum(variant.place.heads for variant in layer)
        place = Place(
            recipe.side,
            number,
            _heads(kind, recipe, number, total - owned_heads),
            model.model_dim,
            head_dim=model.model_dim // total,
            first_head=owned_heads,
            embedding_dim=model.embedding_dim,
            recurrent=model.architecture == "lstm",
            entry=entry,
            leads=number == min(numbers),
            punctuation=punctuation,
            features=dict(features),
        )
        kind.check(place, **options)
        placed = PlacedVariant(
            kind, place, options, recipe.loss_weight, reads, recipe.loss_steps, recipe.warm
        )
        for before in layer:
            _check_pair(before, placed)
        layer.append(placed)


def _check(
    kind: type[Variant],
    recipe: VariantRecipe,
    model: ModelRecipe,
    options: Mapping[str, Any],
    numbers: Sequence[int],
) -> None:
    """Refuse a variant that does not fit the architecture, the side or the layers, whose numbers
    are given."""
    edits, learns = kind.edits_attention(), kind.learns_for(**options)
    lstm, target = model.architecture == "lstm", recipe.side == "target"
    no_loss = (recipe.loss_weight, recipe.loss_steps) == (1.0, None)
    last = len(model.heads_of(recipe.side))
    blends = kind.can_blend_for(**options) and (edits or kind.edits_embeddings())
    blends = blends and not kind.only_learns
    faults = {
        "edits self-attention, and an LSTM has none": lstm and edits,
        "learns from layers of attention, and an LSTM has none": lstm and kind.observes(),
        "annotates the source for the decoder of an LSTM; a Transformer's decoder reads no "
        "annotations": not lstm and kind.annotation_for(**options) != "none",
        f"cannot be used on the {recipe.side} side": recipe.side not in kind.sides,
        "reads trees whenever the model runs, and a translation has no tree before it is complete; "
        "set `side: source`": target and bool(kind.reads_for(**options)),
        "learns from features of words, whose values are known for the source only; set "
        "`side: source`": target and any(signal.needs in FEATURES for signal in learns),
        "has no auxiliary loss. Leave out `loss_weight` and `loss_steps`": not (no_loss or learns),
        "cannot be blended in: it hides pieces, edits what the decoder reads, or adds a loss only. "
        "Leave out `warm`": bool(recipe.warm) and not blends,
        "edits no attention: it owns no heads. Leave out `heads`": not edits
        and recipe.heads is not None,
        f"has `layers` {list(numbers)}; this model has layers 1 to {last}": not all(
            1 <= number <= last for number in numbers
        ),
        "must name each layer once in `layers`, or `all`": not 0
        < len(set(numbers))
        == len(numbers),
        "acts once, not in every layer. Set `layers: [1]`": not (edits or kind.observes())
        and numbers != (1,),
    }
    for fault, is_there in faults.items():
        if is_there:
            raise UsageError(f"{recipe.name} {fault}")


def _heads(kind: type[Variant], recipe: VariantRecipe, layer: int, free: int) -> int:
    if not kind.edits_attention():
        return 0
    wanted = kind.default_heads if recipe.heads is None else recipe.heads
    heads = free if wanted == "all" else wanted
    if not 1 <= heads <= free:
        raise UsageError(
            f"{recipe.name} needs {wanted} heads of layer {layer}, but {free} of them are free",
            do="Set `heads` of each variant: two variants in one layer take consecutive heads",
        )
    return heads


def _check_pair(before: PlacedVariant, after: PlacedVariant) -> None:
    """Refuse what cannot follow a variant that is there already."""
    name, other = after.kind.recipe_name(), before.kind.recipe_name()
    if before.kind is after.kind and not after.kind.edits_attention():
        raise UsageError(f"{name} is named twice: the second would undo the first")
    annotating = [before.annotation != "none", after.annotation != "none"]
    lengthening = before.kind.lengthens_memory, after.kind.lengthens_memory
    if all(annotating) or (any(annotating) and any(lengthening)):
        raise UsageError(
            f"{name} and {other} cannot be combined: a decoder reads one annotation, which phrases "
            "do not have",
            do="Leave one of them out",
        )
    if after.kind.annotates_memory() and before.kind.lengthens_memory:
        raise UsageError(
            f"{name} reads the source after {other}, which appends phrases",
            do=f"Name {name} first",
        )


def check_signals(layers: Layers) -> None:
    """Refuse two different signals of one name on a side, because a batch has one tensor for each
    name."""
    first: dict[str, Signal] = {}
    for variant in (variant for layer in layers for variant in layer):
        for signal in variant.signals:
            if _content(signal) != _content(first.setdefault(signal.name, signal)):
                raise UsageError(
                    f"two different signals are called '{signal.name}', one of them by "
                    f"{variant.kind.recipe_name()}",
                    where="syntax.variants",
                    do="Rename the signal in your own file",
                )


def _content(signal: Signal) -> tuple[object, ...]:
    """Return what two signals of one name have in common; equal partial functions are different
    objects."""
    compute = signal.compute
    if isinstance(compute, partial):
        return signal.needs, signal.pad, compute.func, compute.args, compute.keywords
    return signal.needs, signal.pad, compute


REQUIRED: Any = inspect.Parameter.empty
"""In place of the default of an option that every recipe has to set."""


def option_defaults(kind: type[Variant]) -> Values:
    """List the options of a variant, with their defaults; `REQUIRED` for one without."""
    parameters = inspect.signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(kind: type[Variant], recipe: VariantRecipe, where: str) -> Values:
    """Return every option of a variant, with the recipe's value or its default; raise one
    UsageError for all faults.

    where: the key of the variant in the recipe.
    """
    options, hints = option_defaults(kind), get_type_hints(kind.__init__, include_extras=True)
    known = [*sorted(options), *sorted(VariantRecipe.model_fields)]
    faults = {}
    for name, value in recipe.options.items():
        if name not in options:
            hint = did_you_mean(name, known)
            faults[name] = f"{recipe.name} has no such option. Options: {', '.join(known)}. {hint}"
            continue
        # strict JSON, as for the recipe's own keys: a list becomes a tuple, but "3" does not become
        # a number
        strict = ConfigDict(strict=True, allow_inf_nan=False)
        adapter = TypeAdapter(hints.get(name, Any), config=strict)
        try:
            options[name] = adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            # a union reports one message for each of its members
            messages = dict.fromkeys(map(plain_message, error.errors()))
            faults[name] = f"{', or '.join(messages)}, not {value!r}"
    for name, value in options.items():
        if value is REQUIRED and name not in faults:
            faults[name] = f"{recipe.name} needs this option, which has no default"
    if faults:
        raise all_in_one([UsageError(what, where=f"{where}.{key}") for key, what in faults.items()])
    return options
