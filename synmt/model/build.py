"""How a recipe becomes a model: find the classes of its variants, check their options, place them, build.

Everything but the last step reads declarations on classes only, so a recipe can be checked without building a model.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import synmt.model.variants
from synmt.arrays import SIDES, Side
from synmt.data.vocabulary import Vocabulary, punctuation_pieces
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.model.linear import use_fast_linear
from synmt.model.lstm import Lstm
from synmt.model.options import check_options
from synmt.model.placement import (
    Layers,
    PlacedVariant,
    check_architecture,
    check_declared,
    check_signals,
    free_heads,
    layer_numbers,
)
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import Transformer
from synmt.model.variant import Place, Variant
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe, VariantRecipe

ARCHITECTURES = {"transformer": Transformer, "lstm": Lstm}


def build_for(recipe: Recipe, source: Vocabulary, target: Vocabulary) -> Seq2Seq:
    """Build the model of a recipe for its vocabularies; raises one UsageError that lists every fault of the recipe."""
    punctuation: dict[Side, Sequence[int]] = {
        "source": punctuation_pieces(source),
        "target": punctuation_pieces(target),
    }
    sizes = {"source_pieces": len(source), "target_pieces": len(target)}
    return build(recipe.model, recipe.syntax, **sizes, punctuation=punctuation)


def build(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    *,
    source_pieces: int,
    target_pieces: int,
    punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({}),
) -> Seq2Seq:
    """Build a model with its variants; raises one UsageError that lists every fault of the recipe.

    punctuation: ids of the pieces of each side that are punctuation.
    """
    placed = place_variants(model, syntax, punctuation)
    source, target = ([[variant.build() for variant in layer] for layer in placed[side]] for side in SIDES)
    network = ARCHITECTURES[model.architecture](model, source_pieces, target_pieces, source, target)
    use_fast_linear(network)
    return network


def place_variants(
    model: ModelRecipe, syntax: SyntaxRecipe, punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({})
) -> dict[Side, Layers]:
    """Give each variant of a recipe its layers and, in each, the first free heads.

    Raises one UsageError that lists every fault.
    """
    placed: dict[Side, Layers] = {side: [[] for _ in model.heads_of(side)] for side in SIDES}
    errors: list[SynmtError] = []
    for index, recipe in enumerate(syntax.variants):
        pieces = tuple(punctuation.get(recipe.side, ()))
        try:
            _place(recipe, model, placed[recipe.side], f"syntax.variants[{index}]", pieces)
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    for layers in placed.values():
        check_signals(layers)
    return placed


def _place(recipe: VariantRecipe, model: ModelRecipe, layers: Layers, where: str, punctuation: tuple[int, ...]) -> None:
    kind = variant_class(recipe.name, where)
    check_architecture(kind, recipe.name, model.architecture, where)
    options = check_options(kind, recipe, where)
    with _at(where):
        reads, learns = kind.reads_for(**options), kind.learns_for(**options)
    check_declared(kind, recipe, reads, learns, where)
    for number in layer_numbers(kind, recipe, len(layers), where):
        layer = layers[number - 1]
        if not kind.edits_attention() and any(other.kind is kind for other in layer):
            raise UsageError(f"{recipe.name} is named twice: the second would undo the first", where=where)
        total = model.heads_of(recipe.side)[number - 1]
        taken = sum(variant.place.heads for variant in layer)
        place = Place(
            recipe.side,
            number,
            free_heads(kind, recipe, f"layer {number}", total, total - taken, where),
            model.model_dim,
            head_dim=model.model_dim // total,
            first_head=taken,
            embedding_dim=model.embedding_dim,
            punctuation=punctuation,
        )
        with _at(where):
            kind.check(place, **options)
        layer.append(PlacedVariant(kind, place, options, recipe.loss_weight, reads, learns))


@contextlib.contextmanager
def _at(where: str) -> Iterator[None]:
    """Add the key of the variant to the errors of its class, which does not know it."""
    try:
        yield
    except UsageError as error:
        raise UsageError(error.what, where=where, allowed=error.allowed, do=error.do) from None


def variant_names() -> list[str]:
    """List the files in `synmt/model/variants/`."""
    return sorted(module.name for module in pkgutil.iter_modules(synmt.model.variants.__path__))


def variant_class(name: str, where: str = "syntax.variants") -> type[Variant]:
    """Import a variant: a file in `synmt/model/variants/`, or a module with a dotted path."""
    module_name = name if "." in name else f"{synmt.model.variants.__name__}.{name}"
    try:
        with _importable_working_folder():
            module = importlib.import_module(module_name)
    except (ModuleNotFoundError, TypeError) as error:
        # if the module exists but imports one that is missing, the error is already clear
        if isinstance(error, ModuleNotFoundError) and not module_name.startswith(str(error.name)):
            raise
        names = variant_names()
        raise UsageError(
            f"there is no variant '{name}'",
            where=where,
            allowed=f"Variants: {', '.join(names)}, or the dotted path of your own module",
            do=did_you_mean(name, names),
        ) from None
    class_name = name.rpartition(".")[2].title().replace("_", "")
    kind = getattr(module, class_name, None)
    if isinstance(kind, type) and issubclass(kind, Variant):
        return kind
    raise UsageError(f"{module_name} has no variant '{class_name}'", where=where)


@contextlib.contextmanager
def _importable_working_folder() -> Iterator[None]:
    # an installed command does not look for modules in the folder where it is called
    folder = os.getcwd()
    added = folder not in sys.path
    if added:
        sys.path.append(folder)
    try:
        yield
    finally:
        if added:
            sys.path.remove(folder)
