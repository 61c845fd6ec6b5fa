"""The recipes of a comparison: how a system is moved to another corpus, which trees it has, and what identifies it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

from synmt.errors import UsageError
from synmt.model.build import place_variants
from synmt.recipe.load import check_recipe, load_recipe, recipe_values
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import parse_yaml_value
from synmt.training.trees.requirements import tree_requirements

_SYSTEM_SECTIONS = ("model", "syntax", "tasks", "parser", "target_parser")
"""The sections of a recipe that make the system; the others are those of the corpus."""
_UNIFORM = ("uldd", "uudd")
"""Distributions that know nothing of the tree but its words."""

_OF_THE_MACHINE = {
    "name": None,
    "training": ("seed", "device", "keep", "log_every", "save_every"),
    "decoding": ("batch_size",),
    "parser": ("model", "workers", "device", "batch_words"),
    "target_parser": ("model", "workers", "device", "batch_words"),
}
"""Keys that change nothing of what is measured; the result names the parser."""


class Strict(BaseModel):
    """A part of a plan: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Frame(Strict):
    """The recipes that systems are moved between."""

    differences_from: str
    added_to: str


def moved(system: Recipe, frame: Frame) -> Recipe:
    """Add what a recipe adds to one base to another base."""
    base, values = recipe_values(load_recipe(frame.differences_from)), recipe_values(load_recipe(frame.added_to))
    own = recipe_values(system)
    for section in _SYSTEM_SECTIONS:
        for key, value in own[section].items():
            if value != base[section][key]:
                values[section][key] = value
    values["training"]["pretraining"] = own["training"]["pretraining"]
    return check_recipe(values, where=system.name)


def change(text: str) -> tuple[str, Any]:
    """Read `section.key=value`; raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"'{text}' is not a change", allowed="Changes look like training.max_steps=100")
    return key, parse_yaml_value(value)


def fingerprint(recipe: Recipe) -> str:
    """Identify all values of a recipe that a result depends on, apart from the seed."""
    values = recipe_values(recipe)
    for section, keys in _OF_THE_MACHINE.items():
        if keys is None:
            del values[section]
        else:
            values[section] = {key: value for key, value in values[section].items() if key not in keys}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def reads_trees(recipe: Recipe) -> bool:
    """Tell whether a parser has to read the text that a model translates."""
    return any(need.to_run for need in tree_requirements(recipe).values())


def trees_of(recipe: Recipe) -> str:
    """Tell which trees a model reads or learns from: `parser`, a control, `rewired`, `uniform`, `induced`, `none`."""
    variants = recipe.syntax.variants
    if variants and all(variant.options.get("kind") in _UNIFORM for variant in variants):
        return "uniform"
    needs = tree_requirements(recipe).values()
    if any(need.to_run or need.to_learn for need in needs) or recipe.tasks.trees != "none":
        changed = "rewired" if recipe.parser.rewire else recipe.parser.control
        return "parser" if changed == "none" else changed
    placed = place_variants(recipe.model, recipe.syntax)
    built = (variant.build() for layers in placed.values() for layer in layers for variant in layer)
    return "induced" if any(variant.induces_trees for variant in built) else "none"
