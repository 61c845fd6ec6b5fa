"""The list of a recipe's keys: all of them, once, with defaults that change nothing."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import BaseModel
from tiny import succeed

from synmt.model.build import variant_class, variant_names
from synmt.model.placement import option_defaults
from synmt.model.variant_keys import list_options
from synmt.recipe.keys import list_keys
from synmt.recipe.load import load_recipe
from synmt.recipe.schema import Recipe

KEYS = {key.path: key for key in list_keys()}
OPTIONS = {key.path: key for key in list_options()}


def sections(annotation):
    """Find the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in sections(part)]


def fields(model):
    """Count the fields of a model and of each model in it."""
    inner = [
        section for field in model.model_fields.values() for section in sections(field.annotation)
    ]
    return len(model.model_fields) + sum(map(fields, inner))


def test_every_key_is_listed_once_with_its_meaning():
    assert len(list_keys()) == len(KEYS) == fields(Recipe)
    assert not [key for key in KEYS.values() if not key.meaning]


def test_a_default_as_an_override_changes_nothing():
    # this recipe keeps these sections as they are
    sections = ("text.", "filters.", "parser.", "tasks.", "evaluation.")
    overrides = [
        f"{path}={key.default}"
        for path, key in KEYS.items()
        if key.default and path.startswith(sections)
    ]
    assert len(overrides) > 20
    assert load_recipe("multi30k-tiny", overrides) == load_recipe("multi30k-tiny")


def test_every_option_of_a_variant_is_listed_with_its_meaning():
    names = {
        f"syntax.variants[{name}]": option_defaults(variant_class(name)) for name in variant_names()
    }
    assert set(OPTIONS) == {
        *names,
        *(f"{path}.{option}" for path, options in names.items() for option in options),
    }
    assert not [key.path for key in OPTIONS.values() if not key.meaning]


VALUES = """
source | | text
vocabulary.kind | bpe | bpe or unigram or word
vocabulary.character_coverage | 0.9995 | number > 0, ≤ 1
training.betas | [0.9, 0.98] | list: number ≥ 0, < 1, number ≥ 0, < 1
training.seed | 1 | whole number ≥ 0, < 18446744073709551616
model.init | | path
target_parser.model | auto | text
corpus.test.NAME.seed | 1 | whole number ≥ 0
syntax.variants[].layers | | list: whole number or all
syntax.variants[distance_mask].reach | [2, 4] | list: whole number > 0
syntax.variants[tag_embedding].features | {} | name: whole number > 0
syntax.variants[pascal].ignore | 0.0 | number ≥ 0, ≤ 1
"""


@pytest.mark.parametrize("line", VALUES.strip().splitlines())
def test_a_key_has_its_default_and_its_values(line):
    path, default, values = line.split("|")
    key = (KEYS | OPTIONS)[path.strip()]
    assert (key.default, key.values) == (default.strip(), values.strip())


def test_the_command_lists_the_keys_that_contain_all_words():
    shown = succeed("train", "--keys", "DROPOUT", "attention", "weights").stdout.decode()
    assert (
        shown
        == "model.attention_dropout=0.0   number ≥ 0, < 1\n    transformer: dropout on attention "
        "weights.\n"
    )
    options = succeed("train", "--keys", "PASCAL", "variance").stdout.decode()
    assert options.startswith(
        "syntax.variants[pascal].variance=1.0   number > 0\n    Variance of the Gaussian"
    )
