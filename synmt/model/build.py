"""How a recipe becomes a model: find the classes of its variants, check and place them, build.

Placing reads only what the classes declare, so a recipe can be checked without building its model.
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
from synmt.model.placement import Layers, check_signals, place_variant
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import Transformer
from synmt.model.variant import Variant
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe
from synmt.syntax.feature_signals import FeatureValues

ARCHITECTURES = {"transformer": Transformer, "lstm": Lstm}


def build_for(
    recipe: Recipe, source: Vocabulary, target: Vocabulary, features: FeatureValues = MappingProxyType({})
) -> Seq2Seq:
    """Build the model of a recipe for its vocabularies; raises one UsageError that lists every fault of the recipe.

    features: values of the learned features of the source.
    """
    # only variants may read it, and a large vocabulary takes a tenth of a second
    read = {variant.side for variant in recipe.syntax.variants}
    vocabularies = zip(SIDES, (source, target), strict=True)
    punctuation: dict[Side, Sequence[int]] = {
        side: punctuation_pieces(own) for side, own in vocabularies if side in read
    }
    sizes = {"source_pieces": len(source), "target_pieces": len(target)}
    return build(recipe.model, recipe.syntax, **sizes, punctuation=punctuation, features=features)


def build(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    *,
    source_pieces: int,
    target_pieces: int,
    punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({}),
    features: FeatureValues = MappingProxyType({}),
) -> Seq2Seq:
    """Build a model with its variants; raises one UsageError that lists every fault of the recipe.

    punctuation: ids of the pieces of each side that are punctuation.
    features: values of the learned features of the source.
    """
    placed = place_variants(model, syntax, punctuation, features)
    source, target = ([[variant.build() for variant in layer] for layer in placed[side]] for side in SIDES)
    network = ARCHITECTURES[model.architecture](model, source_pieces, target_pieces, source, target)
    use_fast_linear(network)
    return network


def place_variants(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({}),
    features: FeatureValues = MappingProxyType({}),
) -> dict[Side, Layers]:
    """Check the variants of a recipe, and give each its layers and, in each layer, the first free heads.

    Raises one UsageError that lists every fault.
    """
    placed: dict[Side, Layers] = {side: [[] for _ in model.heads_of(side)] for side in SIDES}
    errors: list[SynmtError] = []
    for index, recipe in enumerate(syntax.variants):
        where, pieces = f"syntax.variants.{index}", tuple(punctuation.get(recipe.side, ()))
        try:
            kind, layers = variant_class(recipe.name, where), placed[recipe.side]
            place_variant(kind, recipe, model, layers, index, pieces, features)
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    for layers in placed.values():
        check_signals(layers)
    return placed


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
