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
    _check_architecture(
        kind, recipe.name, model.architecture, kind.annotation_for(**options), where
    )
    with _at(where):
        reads = tuple(with_values(signal, features) for signal in kind.reads_for(**options))
    _check_side(kind, recipe, reads, kind.learns_for(**options), where)
    for key in ("loss_weight", "loss_steps"):
        if getattr(recipe, key) != VariantRecipe.model_fields[key].default and not kind.learns_for(
            **options
        ):
            raise UsageError(
                f"{recipe.name} has no auxiliary loss", where=where, do=f"Leave out `{key}`"
            )
    numbers = _layer_numbers(kind, recipe, len(layers), where)
    for number in numbers:
        layer = layers[number - 1]
        if not kind.edits_attention() and any(other.kind is kind for other in layer):
            raise UsageError(
                f"{recipe.name} is named twice: the second would undo the first", where=where
            )
        _check_annotations(kind, kind.annotation_for(**options), layer, where)
        total = model.heads_of(recipe.side)[number - 1]
        taken = sum(variant.place.heads for variant in layer)
        place = Place(
            recipe.side,
            number,
            _heads(kind, recipe, f"layer {number}", total, total - taken, where),
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
        with _at(where):
            kind.check(place, **options)
        layer.append(
            PlacedVariant(kind, place, options, recipe.loss_weight, reads, recipe.loss_steps)
        )


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Add the key of the variant to errors of its class, which does not know the key."""
    try:
        yield
    except UsageError as error:
        raise error.with_(where=where) from None


def _check_architecture(
    kind: type[Variant], name: str, architecture: str, annotation: Annotation, where: str
) -> None:
    if architecture == "lstm" and (kind.edits_attention() or kind.observes()):
        what = (
            "edits self-attention" if kind.edits_attention() else "learns from layers of attention"
        )
        raise UsageError(
            f"{name} {what}, and an LSTM has none",
            where=where,
            do="Set model.architecture=transformer, or use a variant for LSTMs (gcn, latent_tree, "
            "tag_embedding)",
        )
    if architecture != "lstm" and annotation != "none":
        raise UsageError(
            f"{name} annotates the source for the decoder of an LSTM; a Transformer's decoder "
            "reads no annotations",
            where=where,
            do="Set model.architecture=lstm, or use tree_attention, which has trees in the heads "
            "of a Transformer",
        )


def _check_annotations(
    kind: type[Variant], annotation: Annotation, layer: list[PlacedVariant], where: str
) -> None:
    name = kind.recipe_name()
    for other in layer:
        lengthened = kind.lengthens_memory or other.kind.lengthens_memory
        if lengthened and (annotation != "none" or other.annotation != "none"):
            what = (
                f"of {name} and {other.kind.recipe_name()}, one annotates the source, and the "
                "other appends phrases"
            )
            raise UsageError(
                f"{what}, which have no annotation", where=where, do="Leave one of them out"
            )
        if kind.annotates_memory() and other.kind.lengthens_memory:
            what = (
                f"{name} reads the source after {other.kind.recipe_name()}, which appends phrases"
            )
            raise UsageError(what, where=where, do=f"Name {name} first")
        if annotation != "none" and other.annotation != "none":
            what = (
                f"{name} and {other.kind.recipe_name()} both annotate the source, and a decoder "
                "reads one annotation"
            )
            raise UsageError(what, where=where, do="Leave one of them out")


def _check_side(
    kind: type[Variant],
    recipe: VariantRecipe,
    reads: tuple[Signal, ...],
    learns: tuple[Signal, ...],
    where: str,
) -> None:
    if recipe.side not in kind.sides:
        allowed = ", ".join(f"side: {side}" for side in kind.sides)
        raise UsageError(
            f"{recipe.name} cannot be used on the {recipe.side} side", where=where, allowed=allowed
        )
    if reads and recipe.side == "target":
        raise UsageError(
            f"{recipe.name} reads trees whenever the model runs, and a translation has no tree "
            "before it is complete",
            where=where,
            allowed="side: source",
        )
    if recipe.side == "target" and any(signal.needs in FEATURES for signal in learns):
        raise UsageError(
            f"{recipe.name} learns from {', '.join(FEATURES)} of words, whose values are known for "
            "the source only",
            where=where,
            allowed="side: source",
        )


def _layer_numbers(
    kind: type[Variant], recipe: VariantRecipe, layers: int, where: str
) -> Sequence[int]:
    numbers = kind.default_layers if recipe.layers is None else recipe.layers
    numbers = tuple(range(1, layers + 1)) if numbers == "all" else numbers
    for number in numbers:
        if not 1 <= number <= layers:
            raise UsageError(
                f"there is no layer {number}",
                where=where,
                allowed=f"This model has layers 1 to {layers}",
            )
    if not numbers or len(set(numbers)) < len(numbers):
        fault = "names a layer twice" if numbers else "is empty"
        raise UsageError(
            f"`layers` of {recipe.name} {fault}", where=where, allowed="Each layer once, or `all`"
        )
    if not (kind.edits_attention() or kind.observes()) and numbers != (1,):
        raise UsageError(
            f"{recipe.name} acts once, not in every layer", where=where, allowed="layers: [1]"
        )
    return numbers


def _heads(
    kind: type[Variant], recipe: VariantRecipe, layer: str, total: int, free: int, where: str
) -> int:
    if not kind.edits_attention():
        if recipe.heads is not None:
            raise UsageError(
                f"{recipe.name} edits no attention: it owns no heads",
                where=where,
                do="Leave out `heads`",
            )
        return 0
    wanted = kind.default_heads if recipe.heads is None else recipe.heads
    heads = free if wanted == "all" else wanted
    if not 1 <= heads <= free:
        raise UsageError(
            f"{recipe.name} needs {wanted} head{'' if wanted == 1 else 's'} of {layer}, but {free} "
            f"of {total} "
            f"{'is' if free == 1 else 'are'} free",
            where=where,
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


def _alike(one: Signal, other: Signal, *, same_file: bool) -> bool:
    """Compare two signals as far as possible; functions that cannot be compared are trusted within
    one file."""
    if one == other:
        return True
    if (one.needs, one.pad) != (other.needs, other.pad):
        return False
    if isinstance(one.compute, partial) and isinstance(other.compute, partial):
        return all(
            getattr(one.compute, part) == getattr(other.compute, part)
            for part in ("func", "args", "keywords")
        )
    return same_file
