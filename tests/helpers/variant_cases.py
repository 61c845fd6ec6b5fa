"""Every variant on every side with every choice of its options, and small models of them."""

import inspect
from itertools import chain
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from small import PUNCTUATION, sized_recipe, small_model

from synmt.errors import UsageError
from synmt.model.build import place_variants, variant_class, variant_names


def places(name):
    """List recipes of the variant on each of its sides: two of four heads, or sixteen if it needs
    them.

    One that edits the memory is tried with an LSTM and, if it fits, with a Transformer.
    """
    kind = variant_class(name)
    if kind.annotates_memory():
        tried = [
            {"name": name, "side": "source", "architecture": architecture}
            for architecture in ("lstm", "transformer")
        ]
        return [recipe for recipe in tried if fits(recipe)]
    # signals of the parse cannot be read on the target side
    sides = [side for side in kind.sides if side == "source" or not kind.reads]
    layers = {"layers": [1, 2]} if kind.edits_attention() or kind.observes() else {}
    for heads in ({"heads": 2}, {"heads": 16}) if kind.edits_attention() else ({},):
        tried = [{"name": name, "side": side, **layers, **heads} for side in sides]
        if found := [recipe for recipe in tried if fits(recipe)]:
            return found
    return []


def fits(recipe):
    chosen = sized_recipe(variant_of(recipe), **sizes(recipe))
    try:
        place_variants(chosen.model, chosen.syntax, {recipe["side"]: PUNCTUATION})
    except UsageError:
        return False
    return True


def variant_of(recipe):
    return {key: value for key, value in recipe.items() if key != "architecture"}


def sizes(recipe, layers=2):
    """Size the side of the variant by a number of layers; the other side of a Transformer needs
    only one."""
    own, other = ("encoder", "decoder") if recipe["side"] == "source" else ("decoder", "encoder")
    if recipe.get("architecture") == "lstm":
        return {"encoder_layers": layers, "decoder_layers": layers, "architecture": "lstm"}
    depth = {f"{own}_layers": layers, f"{other}_layers": 1}
    if recipe.get("heads") == 16:
        return {**depth, "model_dim": 32, "encoder_heads": [16] * layers}
    return depth


def choices(name):
    """List every other value of each option with few values: one of several words, or true and
    false."""
    kind = variant_class(name)
    hints = get_type_hints(kind.__init__)
    for option in list(inspect.signature(kind).parameters.values())[1:]:
        hint = hints[option.name]
        literals = [part for part in (hint, *get_args(hint)) if get_origin(part) is Literal]
        values = [value for part in literals for value in get_args(part)]
        if hint is bool:
            values = [True, False]
        yield from ((option.name, value) for value in values if value != option.default)


def cases():
    for name in variant_names():
        for recipe in places(name):
            architecture = ["transformer"] if recipe.get("architecture") == "transformer" else []
            where = "-".join([name, recipe["side"], *architecture])
            yield pytest.param(recipe, id=where)
            for option, value in choices(name):
                if fits(chosen := {**recipe, option: value}):
                    yield pytest.param(chosen, id=f"{where}-{option}={value}")


def kind_of(case):
    return variant_class(case.values[0]["name"])


CASES = list(cases())
DEFAULTS = [case for case in CASES if "=" not in case.id]
ON_TARGET = [case for case in CASES if case.values[0]["side"] == "target"]
# others read all of their signals, and on the target side none
LEARNING = [case for case in CASES if kind_of(case).learns or case in ON_TARGET]
# others read numbers on the processor, or have other shapes in every batch
RECORDED = [
    case
    for case in DEFAULTS
    if case.values[0].get("architecture") != "lstm" and case.values[0]["name"] != "path_relations"
]
EDITS_ATTENTION = [case for case in CASES if kind_of(case).edits_attention()]


def made(recipe, layers=2, **options):
    """Build the model of a case, whose variants have drawn parameters."""
    return redrawn(small_model(variant_of(recipe), **sizes(recipe, layers), **options))


def without_dropout(recipe):
    """Make the model of a variant, in training, because cuDNN keeps what the gradient of an LSTM
    needs only then."""
    options = inspect.signature(variant_class(recipe["name"])).parameters
    return made(recipe | {option: 0.0 for option in options if "dropout" in option}).train()


def redrawn(model):
    """Draw all parameters of variants: those that begin at zero would hide what the variant
    does."""
    torch.manual_seed(5)
    for variant in chain(*model.variants.values()):
        for parameter in variant.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return model.eval()
