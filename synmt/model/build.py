"""How a recipe becomes a model: names of variants are looked up, their options bound, their heads handed out."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

import synmt.model.variants
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import Transformer
from synmt.model.variant import Place, Variant
from synmt.recipe import ModelRecipe, SyntaxRecipe, VariantRecipe


def build(model: ModelRecipe, syntax: SyntaxRecipe, *, source_pieces: int, target_pieces: int) -> Seq2Seq:
    """Build a model with its variants; raises one UsageError that lists every misfit of the recipe."""
    source = place_variants(model, syntax, "source")
    target = place_variants(model, syntax, "target")
    return Transformer(model, source_pieces, target_pieces, source, target)


def place_variants(model: ModelRecipe, syntax: SyntaxRecipe, side: str) -> list[list[Variant]]:
    """Make the variants of one side, layer by layer; each owns the first heads that are free."""
    count = model.encoder_layers if side == "source" else model.decoder_layers
    layers: list[list[Variant]] = [[] for _ in range(count)]
    errors: list[SynmtError] = []
    for index, recipe in enumerate(syntax.variants):
        if recipe.side != side:
            continue
        try:
            _place(recipe, model, layers, f"syntax.variants[{index}]")
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    return layers


def variant_names() -> list[str]:
    """List the files of the catalogue."""
    return sorted(module.name for module in pkgutil.iter_modules(synmt.model.variants.__path__))


def variant_class(name: str, where: str = "syntax.variants") -> type[Variant]:
    """Find a variant: a file of the catalogue, or the dotted path of a module elsewhere."""
    module_name = name if "." in name else f"{synmt.model.variants.__name__}.{name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not module_name.startswith(error.name):
            raise
        names = variant_names()
        raise UsageError(
            f"there is no variant '{name}'",
            where=where,
            allowed=f"Variants: {', '.join(names)}, or the dotted path of a module of your own",
            do=did_you_mean(name, names),
        ) from None
    class_name = name.rpartition(".")[2].title().replace("_", "")
    try:
        return getattr(module, class_name)
    except AttributeError:
        raise UsageError(f"{module_name} has no class '{class_name}'", where=where) from None


def _place(recipe: VariantRecipe, model: ModelRecipe, layers: list[list[Variant]], where: str) -> None:
    kind = variant_class(recipe.name, where)
    _check_options(kind, recipe, where)
    for number in recipe.layers:
        if not 1 <= number <= len(layers):
            raise UsageError(f"there is no layer {number}", where=where, allowed=f"1 to {len(layers)}")
        layer = layers[number - 1]
        free = model.heads - sum(variant.place.heads for variant in layer)
        heads = free if recipe.heads == "all" else recipe.heads
        if not 1 <= heads <= free:
            raise UsageError(
                f"{recipe.name} wants {heads or 'all'} heads of layer {number}, but {free} of {model.heads} are free",
                where=where,
            )
        place = Place(recipe.side, number, heads, model.model_dim, model.model_dim // model.heads)
        try:
            variant = kind(place, **recipe.options)
        except UsageError as error:
            raise UsageError(error.what, where=where, allowed=error.allowed, do=error.do) from None
        variant.loss_weight = recipe.loss_weight
        layer.append(variant)


def _check_options(kind: type[Variant], recipe: VariantRecipe, where: str) -> None:
    hints = get_type_hints(kind.__init__)
    parameters = inspect.signature(kind).parameters.values()
    names = sorted(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    errors: list[SynmtError] = []
    for name, value in recipe.options.items():
        if name not in names:
            errors.append(
                UsageError(
                    f"{where} has no option '{name}'",
                    allowed=f"Options of {recipe.name}: {', '.join(names)}",
                    do=did_you_mean(name, names),
                )
            )
        elif problem := _misfit(hints[name], value):
            errors.append(UsageError(f"{where}.{name}: {problem}, not {value!r}"))
    if errors:
        raise all_in_one(errors)


def _misfit(hint: Any, value: Any) -> str:
    try:
        TypeAdapter(hint, config=ConfigDict(strict=True)).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        return message[0].lower() + message[1:]
    return ""
