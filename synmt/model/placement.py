"""Checks and places a variant: the rules for architectures, sides, layers, heads and names of
signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from synmt.errors import UsageError
from synmt.model.variant import Annotation, Place, Variant
from synmt.model.variant_options import check_options
from synmt.recipe.schema import ModelRecipe, VariantRecipe
from synmt.syntax.feature_signals import FeatureValues, with_values
from synmt.syntax.parse import FEATURES
from synmt.syntax.signals import Signal


@dataclass(frozen=True)
class PlacedVariant:
    """A variant in one layer of a recipe's model, checked but not built.

    reads: the signals that it reads with these options.
    """

    kind: type[Variant]
    place: Place
    options: Mapping[str, Any]
    loss_weight: float
    reads: tuple[Signal, ...]
    loss_steps: tuple[int, int] | None = None

    @property
    def signals(self) -> tuple[Signal, ...]:
        """What it reads and what it learns from."""
        return self.reads + self.learns

    @property
    def learns(self) -> tuple[Signal, ...]:
        """What it learns from with these options."""
        return self.kind.learns_for(**self.options)

    @property
    def annotation(self) -> Annotation:
        """How an LSTM's decoder reads its annotations, with these options."""
        return self.kind.annotation_for(**self.options)

    def build(self) -> Variant:
        """Make the module."""
        variant = self.kind(self.place, **self.options)
        if {"reads", "learns", "annotation"} & vars(variant).keys():
            raise UsageError(
                f"{self.kind.recipe_name()} sets `reads`, `learns` or `annotation` in __init__, "
                "which is too late",
                do="Set them on the class, or override the class methods `reads_for`, "
                "`learns_for`, `annotation_for`",
            )
        variant.reads, variant.learns, variant.annotation = self.reads, self.learns, self.annotation
        variant.loss_weight, variant.loss_steps = self.loss_weight, self.loss_steps
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
    where = f"syntax.variants.{entry}"
    options = check_options(kind, recipe, where)
    with _at(where):
        reads = tuple(with_values(signal, features) for signal in kind.reads_for(**options))
        annotation = kind.annotation_for(**options)
        _check_architecture(kind, recipe.name, model.architecture, annotation)
        _check_side(kind, recipe, reads, kind.learns_for(**options))
        numbers = _layer_numbers(kind, recipe, len(layers))
        for number in numbers:
            layer, total = layers[number - 1], model.heads_of(recipe.side)[number - 1]
            _check_neighbours(kind, recipe.name, annotation, layer)
            taken = sum(variant.place.heads for variant in layer)
            place = Place(
                recipe.side,
                number,
                _heads(kind, recipe, number, total, total - taken),
                model.model_dim,
                head_dim=model.model_dim // total,
                first_head=taken,
                embedding_dim=model.embedding_dim,
                recurrent=model.architecture == "lstm",
                entry=entry,
                leads=number == min(numbers),
                punctuation=punctuation,
                features=dict(features),
            )
            kind.check(place, **options)
            layer.append(
                PlacedVariant(kind, place, options, recipe.loss_weight, reads, recipe.loss_steps)
            )


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add the key of the variant to errors, which do not know it."""
    try:
        yield
    except UsageError as error:
        raise error.with_(where=where) from None


def _check_architecture(
    kind: type[Variant], name: str, architecture: str, annotation: Annotation
) -> None:
    edits = kind.edits_attention()
    if architecture == "lstm" and (edits or kind.observes()):
        deed = "edits self-attention" if edits else "learns from layers of attention"
        raise UsageError(
            f"{name} {deed}, and an LSTM has none",
            do="Set model.architecture=transformer, or use a variant for LSTMs (gcn, latent_tree, "
            "tag_embedding)",
        )
    if architecture != "lstm" and annotation != "none":
        raise UsageError(
            f"{name} annotates the source for the decoder of an LSTM; a Transformer's decoder "
            "reads no annotations",
            do="Set model.architecture=lstm, or use tree_attention, which has trees in the heads "
            "of a Transformer",
        )


def _check_neighbours(
    kind: type[Variant], name: str, annotation: Annotation, layer: list[PlacedVariant]
) -> None:
    """Refuse what cannot follow the variants that are there already."""
    for before in layer:
        other, annotated = before.kind.recipe_name(), before.annotation != "none"
        lengthened = kind.lengthens_memory or before.kind.lengthens_memory
        if before.kind is kind and not kind.edits_attention():
            raise UsageError(f"{name} is named twice: the second would undo the first")
        if lengthened and (annotation != "none" or annotated):
            raise UsageError(
                f"of {name} and {other}, one annotates the source, and the other appends phrases, "
                "which have no annotation",
                do="Leave one of them out",
            )
        if kind.annotates_memory() and before.kind.lengthens_memory:
            raise UsageError(
                f"{name} reads the source after {other}, which appends phrases",
                do=f"Name {name} first",
            )
        if annotation != "none" and annotated:
            raise UsageError(
                f"{name} and {other} both annotate the source, and a decoder reads one annotation",
                do="Leave one of them out",
            )


def _check_side(
    kind: type[Variant],
    recipe: VariantRecipe,
    reads: tuple[Signal, ...],
    learns: tuple[Signal, ...],
) -> None:
    if recipe.side not in kind.sides:
        allowed = ", ".join(f"side: {side}" for side in kind.sides)
        raise UsageError(f"{recipe.name} cannot be used on the {recipe.side} side", allowed=allowed)
    if recipe.side == "target" and reads:
        raise UsageError(
            f"{recipe.name} reads trees whenever the model runs, and a translation has no tree "
            "before it is complete",
            allowed="side: source",
        )
    if recipe.side == "target" and any(signal.needs in FEATURES for signal in learns):
        raise UsageError(
            f"{recipe.name} learns from {', '.join(FEATURES)} of words, whose values are known for "
            "the source only",
            allowed="side: source",
        )
    for key in () if learns else ("loss_weight", "loss_steps"):
        if getattr(recipe, key) != VariantRecipe.model_fields[key].default:
            raise UsageError(f"{recipe.name} has no auxiliary loss", do=f"Leave out `{key}`")


def _layer_numbers(kind: type[Variant], recipe: VariantRecipe, layers: int) -> Sequence[int]:
    numbers = kind.default_layers if recipe.layers is None else recipe.layers
    numbers = tuple(range(1, layers + 1)) if numbers == "all" else numbers
    for number in numbers:
        if not 1 <= number <= layers:
            raise UsageError(
                f"there is no layer {number}", allowed=f"This model has layers 1 to {layers}"
            )
    if not numbers or len(set(numbers)) < len(numbers):
        fault = "names a layer twice" if numbers else "is empty"
        raise UsageError(f"`layers` of {recipe.name} {fault}", allowed="Each layer once, or `all`")
    if not (kind.edits_attention() or kind.observes()) and numbers != (1,):
        raise UsageError(f"{recipe.name} acts once, not in every layer", allowed="layers: [1]")
    return numbers


def _heads(kind: type[Variant], recipe: VariantRecipe, layer: int, total: int, free: int) -> int:
    if not kind.edits_attention():
        if recipe.heads is not None:
            raise UsageError(
                f"{recipe.name} edits no attention: it owns no heads", do="Leave out `heads`"
            )
        return 0
    wanted = kind.default_heads if recipe.heads is None else recipe.heads
    heads = free if wanted == "all" else wanted
    if not 1 <= heads <= free:
        raise UsageError(
            f"{recipe.name} needs {wanted} head{'' if wanted == 1 else 's'} of layer {layer}, but "
            f"{free} of {total} {'is' if free == 1 else 'are'} free",
            do="Set `heads` of each variant: two variants in one layer take consecutive heads",
        )
    return heads


def check_signals(layers: Layers) -> None:
    """Refuse two different signals of one name on a side, because a batch has one tensor for each
    name."""
    first: dict[str, tuple[Signal, type[Variant]]] = {}
    for variant in (variant for layer in layers for variant in layer):
        for signal in variant.signals:
            other, kind = first.setdefault(signal.name, (signal, variant.kind))
            if not _alike(signal, other, same_file=kind is variant.kind):
                raise UsageError(
                    f"two different signals are called '{signal.name}', one of them by "
                    f"{variant.kind.recipe_name()}",
                    where="syntax.variants",
                    do="Rename the signal in your own file",
                )


def _alike(first: Signal, second: Signal, *, same_file: bool) -> bool:
    """Compare two signals as far as possible; functions that cannot be compared are trusted within
    one file."""
    if first == second:
        return True
    if (first.needs, first.pad) != (second.needs, second.pad):
        return False
    if isinstance(first.compute, partial) and isinstance(second.compute, partial):
        return all(
            getattr(first.compute, part) == getattr(second.compute, part)
            for part in ("func", "args", "keywords")
        )
    return same_file
