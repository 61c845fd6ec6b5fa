"""How a recipe becomes a model: names of variants are looked up, their options bound, their heads handed out."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

import synmt.model.variants
from synmt.data.vocabulary import Vocabulary, punctuation_pieces
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.model.lstm import Lstm
from synmt.model.seq2seq import Seq2Seq
from synmt.model.transformer import Transformer
from synmt.model.variant import Place, Variant
from synmt.recipe.schema import ModelRecipe, Recipe, SyntaxRecipe, VariantRecipe
from synmt.syntax.signals import Signal

ARCHITECTURES = {"transformer": Transformer, "lstm": Lstm}


def build_for(recipe: Recipe, source: Vocabulary, target: Vocabulary) -> Seq2Seq:
    """Build the model of a recipe for its vocabularies; raises one UsageError that lists every misfit."""
    punctuation = {"source": punctuation_pieces(source), "target": punctuation_pieces(target)}
    sizes = {"source_pieces": len(source), "target_pieces": len(target)}
    return build(recipe.model, recipe.syntax, **sizes, punctuation=punctuation)


def build(
    model: ModelRecipe,
    syntax: SyntaxRecipe,
    *,
    source_pieces: int,
    target_pieces: int,
    punctuation: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Seq2Seq:
    """Build a model with its variants; raises one UsageError that lists every misfit of the recipe.

    punctuation: the pieces of each side's vocabulary that are punctuation.
    """
    source, target = (place_variants(model, syntax, side, punctuation.get(side, ())) for side in ("source", "target"))
    return ARCHITECTURES[model.architecture](model, source_pieces, target_pieces, source, target)


def place_variants(
    model: ModelRecipe, syntax: SyntaxRecipe, side: str, punctuation: Sequence[int] = ()
) -> list[list[Variant]]:
    """Make the variants of one side, layer by layer; each owns the first heads that are free."""
    layers: list[list[Variant]] = [[] for _ in model.heads_of(side)]
    errors: list[SynmtError] = []
    for index, recipe in enumerate(syntax.variants):
        if recipe.side != side:
            continue
        try:
            _place(recipe, model, layers, f"syntax.variants[{index}]", tuple(punctuation))
        except SynmtError as error:
            errors.append(error)
    if errors:
        raise all_in_one(errors)
    _check_signals(layers)
    return layers


def _check_signals(layers: list[list[Variant]]) -> None:
    found: dict[str, tuple[Signal, type[Variant]]] = {}
    for variant in (variant for layer in layers for variant in layer):
        for signal in variant.reads + variant.learns:
            other, kind = found.setdefault(signal.name, (signal, type(variant)))
            # a batch has one tensor of a name
            if not _alike(signal, other, same_file=kind is type(variant)):
                raise UsageError(
                    f"two different signals are called '{signal.name}', one of them by {type(variant).__name__}",
                    where="syntax.variants",
                    do="Give the signal in the file of your own another name",
                )


def _alike(one: Signal, other: Signal, *, same_file: bool) -> bool:
    """Tell whether two signals are the same, as far as that can be seen; a file is trusted with its own."""
    if one == other:
        return True
    if (one.needs, one.pad) != (other.needs, other.pad):
        return False
    if isinstance(one.compute, partial) and isinstance(other.compute, partial):
        return all(getattr(one.compute, part) == getattr(other.compute, part) for part in ("func", "args", "keywords"))
    return same_file


def variant_names() -> list[str]:
    """List the files of the catalogue."""
    return sorted(module.name for module in pkgutil.iter_modules(synmt.model.variants.__path__))


def variant_class(name: str, where: str = "syntax.variants") -> type[Variant]:
    """Find a variant: a file of the catalogue, or the dotted path of a module elsewhere."""
    module_name = name if "." in name else f"{synmt.model.variants.__name__}.{name}"
    try:
        with _working_folder_importable():
            module = importlib.import_module(module_name)
    except (ModuleNotFoundError, TypeError) as error:
        # a module that is there, but misses another one, says so itself
        if isinstance(error, ModuleNotFoundError) and not module_name.startswith(str(error.name)):
            raise
        names = variant_names()
        raise UsageError(
            f"there is no variant '{name}'",
            where=where,
            allowed=f"Variants: {', '.join(names)}, or the dotted path of a module of your own",
            do=did_you_mean(name, names),
        ) from None
    class_name = name.rpartition(".")[2].title().replace("_", "")
    found = getattr(module, class_name, None)
    if isinstance(found, type) and issubclass(found, Variant):
        return found
    raise UsageError(f"{module_name} has no variant '{class_name}'", where=where)


@contextlib.contextmanager
def _working_folder_importable() -> Iterator[None]:
    # an installed command does not look for modules where it is called
    sys.path.append(os.getcwd())
    try:
        yield
    finally:
        sys.path.remove(os.getcwd())


def _place(
    recipe: VariantRecipe, model: ModelRecipe, layers: list[list[Variant]], where: str, punctuation: tuple[int, ...]
) -> None:
    kind = variant_class(recipe.name, where)
    _check_architecture(kind, recipe.name, model.architecture, where)
    options = _checked_options(kind, recipe, where)
    for number in _layer_numbers(kind, recipe, len(layers), where):
        layer = layers[number - 1]
        if not kind.edits_attention() and any(type(other) is kind for other in layer):
            raise UsageError(f"{recipe.name} stands there twice, and the second would undo the first", where=where)
        total = model.heads_of(recipe.side)[number - 1]
        taken = sum(variant.place.heads for variant in layer)
        heads = _heads(kind, recipe, f"layer {number}", total, total - taken, where)
        place = Place(
            recipe.side,
            number,
            heads,
            model.model_dim,
            head_dim=model.model_dim // total,
            first_head=taken,
            embedding_dim=model.embedding_dim,
            punctuation=punctuation,
        )
        try:
            variant = kind(place, **options)
        except UsageError as error:
            raise UsageError(error.what, where=where, allowed=error.allowed, do=error.do) from None
        if recipe.loss_weight != 1 and not variant.learns:
            raise UsageError(
                f"{recipe.name} has no loss of its own to weigh", where=where, do="Leave out `loss_weight`"
            )
        variant.loss_weight = recipe.loss_weight
        layer.append(variant)


def _check_architecture(kind: type[Variant], name: str, architecture: str, where: str) -> None:
    if architecture == "lstm" and kind.edits_attention():
        raise UsageError(
            f"{name} edits the attention of pieces to each other, and an LSTM has none",
            where=where,
            do="Set model.architecture=transformer, or take one that stands elsewhere (latent_tree, tag_embedding)",
        )
    if architecture != "lstm" and kind.annotates_memory():
        raise UsageError(
            f"{name} annotates the source for the decoder of an LSTM, and a Transformer's reads no annotations",
            where=where,
            do="Set model.architecture=lstm, or take tree_attention, which stands in the Transformer's heads",
        )


def _layer_numbers(kind: type[Variant], recipe: VariantRecipe, layers: int, where: str) -> Sequence[int]:
    numbers = kind.default_layers if recipe.layers is None else recipe.layers
    if numbers == "all":
        return range(1, layers + 1)
    for number in numbers:
        if not 1 <= number <= layers:
            raise UsageError(f"there is no layer {number}", where=where, allowed=f"Layers 1 to {layers}")
    if not numbers or len(set(numbers)) < len(numbers):
        named = "names no layer" if not numbers else "names a layer twice"
        raise UsageError(f"`layers` of {recipe.name} {named}", where=where, allowed="Each layer once, or `all`")
    return numbers


def _heads(kind: type[Variant], recipe: VariantRecipe, layer: str, total: int, free: int, where: str) -> int:
    if not kind.edits_attention():
        if recipe.heads is not None:
            raise UsageError(f"{recipe.name} edits no attention: it owns no heads", where=where, do="Leave out `heads`")
        return 0
    wanted = kind.default_heads if recipe.heads is None else recipe.heads
    heads = free if wanted == "all" else wanted
    if not 1 <= heads <= free:
        raise UsageError(
            f"{recipe.name} wants {wanted} head{'' if wanted == 1 else 's'} of {layer}, but {free} of {total} "
            f"{'is' if free == 1 else 'are'} free",
            where=where,
            do="Say with `heads` how many each variant owns: two in one layer take consecutive heads",
        )
    return heads


def _checked_options(kind: type[Variant], recipe: VariantRecipe, where: str) -> dict[str, Any]:
    hints = get_type_hints(kind.__init__)
    parameters = inspect.signature(kind).parameters.values()
    names = sorted(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)
    errors: list[SynmtError] = []
    options = {}
    for name, value in recipe.options.items():
        if name not in names:
            errors.append(_unknown_option(name, names, recipe.name, where))
            continue
        try:
            options[name] = _converted(hints.get(name, Any), value)
        except ValidationError as error:
            # of a value that may be one thing or another, say both
            messages = dict.fromkeys(problem["msg"][0].lower() + problem["msg"][1:] for problem in error.errors())
            errors.append(UsageError(f"{where}.{name}: {', or '.join(messages)}, not {value!r}"))
    if errors:
        raise all_in_one(errors)
    return options


def _converted(hint: Any, value: Any) -> Any:
    # strict JSON, as for the recipe's own keys: a list is a tuple, but "3" is not a number
    adapter = TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))
    return adapter.validate_json(json.dumps(value))


def _unknown_option(name: str, names: list[str], variant: str, where: str) -> SynmtError:
    own = sorted(VariantRecipe.model_fields)
    return UsageError(
        f"{where} has no option '{name}'",
        allowed=f"Options of {variant}: {', '.join(names)}; of every variant: {', '.join(own)}",
        do=did_you_mean(name, [*names, *own]),
    )
