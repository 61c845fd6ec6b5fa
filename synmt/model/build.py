"""How a recipe becomes a model: find the classes of its variants, check and place them, build.

Placing reads only what the classes declare, so a recipe can be checked without building its model.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType

import synmt.model.variants
from synmt.arrays import SIDES, Side
from synmt.data.vocabulary import Vocabulary, punctuation_pieces
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files.own_code import import_own, is_own
from synmt.model.lstm import Lstm
from synmt.model.placement import Layers, check_signals, place_variant
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import Transformer
from synmt.model.variant import Variant
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe
from synmt.speed import fast
from synmt.syntax.feature_signals import FeatureValues

ARCHITECTURES = {"transformer": Transformer, "lstm": Lstm}


def build_for(
    recipe: Recipe,
    source: Vocabulary,
    target: Vocabulary,
    features: FeatureValues = MappingProxyType({}),
    code: Path | None = None,
) -> Seq2Seq:
    """Build the model of a recipe for its vocabularies; raises one UsageError that lists every
    fault of the recipe.

    features: values of the learned features of the source.
    code: where the run keeps the source of variants outside synmt.
    """
    # only variants may read it, and a large vocabulary takes a tenth of a second
    read = {variant.side for variant in recipe.syntax.variants}
    vocabularies = zip(SIDES, (source, target), strict=True)
    punctuation: dict[Side, Sequence[int]] = {
        side: punctuation_pieces(vocabulary) for side, vocabulary in vocabularies if side in read
    }
    sizes = {"source_pieces": len(source), "target_pieces": len(target)}
    return build(
        recipe.model, recipe.syntax, **sizes, punctuation=punctuation, features=features, code=code
    )


def build(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    *,
    source_pieces: int,
    target_pieces: int,
    punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({}),
    features: FeatureValues = MappingProxyType({}),
    code: Path | None = None,
) -> Seq2Seq:
    """Build a model with its variants; raises one UsageError that lists every fault of the recipe.

    punctuation: ids of the pieces of each side that are punctuation.
    features, code: as for `build_for`.
    """
    placed = place_variants(model, syntax, punctuation, features, code)
    source, target = (
        [[variant.build() for variant in layer] for layer in placed[side]] for side in SIDES
    )
    network = ARCHITECTURES[model.architecture](model, source_pieces, target_pieces, source, target)
    if wing := fast("modules"):
        wing.replace_modules(network)
    return network


def place_variants(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    punctuation: Mapping[Side, Sequence[int]] = MappingProxyType({}),
    features: FeatureValues = MappingProxyType({}),
    code: Path | None = None,
) -> dict[Side, Layers]:
    """Check the variants of a recipe, and give each its layers and, in each layer, the first free
    heads.

    Raises one UsageError that lists every fault.
    """
    placed: dict[Side, Layers] = {side: [[] for _ in model.heads_of(side)] for side in SIDES}
    errors: list[SynmtError] = []
    for index, recipe in enumerate(syntax.variants):
        where, pieces = f"syntax.variants.{index}", tuple(punctuation.get(recipe.side, ()))
        try:
            kind, layers = variant_class(recipe.name, where, code), placed[recipe.side]
            place_variant(kind, recipe, model, layers, index, pieces, features)
        except SynmtError as error:
            # what refuses a variant does not know its key
            errors.append(error if where in str(error) else error.with_(where=where))
    if errors:
        raise all_in_one(errors)
    for layers in placed.values():
        check_signals(layers)
    return placed


def variant_names() -> list[str]:
    """List the files in `synmt/model/variants/`."""
    return sorted(module.name for module in pkgutil.iter_modules(synmt.model.variants.__path__))


def variant_class(
    name: str, where: str = "syntax.variants", code: Path | None = None
) -> type[Variant]:
    """Import a variant: a file in `synmt/model/variants/`, or a module with a dotted path.

    code: where the run keeps the source of variants outside synmt.
    """
    module = _module(name, where, code)
    if module is None:
        names = variant_names()
        allowed = f"Variants: {', '.join(names)}, or the dotted path of a module that is installed"
        allowed += " or in the working folder"
        raise UsageError(
            f"there is no variant '{name}'",
            where=where,
            allowed=allowed,
            do=did_you_mean(name, names),
        )
    class_name = name.rpartition(".")[2].title().replace("_", "")
    kind = getattr(module, class_name, None)
    if isinstance(kind, type) and issubclass(kind, Variant):
        return kind
    raise UsageError(f"{module.__name__} has no variant '{class_name}'", where=where)


def _module(name: str, where: str, code: Path | None) -> ModuleType | None:
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    if is_own(name):
        return import_own(name, code, where=where)
    module = name if "." in name else f"{synmt.model.variants.__name__}.{name}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # one that exists but imports another that is missing says so itself
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        return None
