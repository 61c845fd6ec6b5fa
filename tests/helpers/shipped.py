"""The shipped recipes by name, and how two of them differ."""

import functools
from typing import Any

from places import ROOT

from synmt.recipe.load import load_recipe, recipe_values
from synmt.recipe.schema import Recipe

PATHS = {
    path.name.removesuffix(".yaml"): path for path in sorted((ROOT / "recipes").rglob("*.yaml"))
}


@functools.cache
def recipe(name: str) -> Recipe:
    """Load a shipped recipe by the name of its file."""
    return load_recipe(PATHS[name])


@functools.cache
def comment(name: str) -> str:
    """Return what a recipe's first lines say, as one line."""
    lines = PATHS[name].read_text(encoding="utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line.removeprefix("# ") for line in lines[:first])


def variants(name: str) -> list[dict[str, Any]]:
    """Return the variants of a recipe as they are written there."""
    found = recipe(name).syntax.variants
    return [variant.model_dump(mode="json", exclude_unset=True) for variant in found]


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {prefix: values}
    return {
        key: value
        for name, inner in values.items()
        for key, value in _flat(inner, f"{prefix}.{name}").items()
    }


def differences(name: str, other: str) -> set[str]:
    """Name the keys in which two recipes differ, their names aside."""
    first, second = _flat(recipe_values(recipe(name))), _flat(recipe_values(recipe(other)))
    return {
        key[1:] for key in first.keys() | second.keys() if first.get(key) != second.get(key)
    } - {"name"}


def assert_has(name: str, *overrides: str) -> None:
    """Compare a recipe with overrides, which have to change nothing."""
    for override in overrides:
        assert load_recipe(PATHS[name], [override]) == recipe(name), (name, override)


def rows(text: str, cells: int = -1) -> list[list[str]]:
    """Split a table into lines and cells; the last of a number of cells may contain blanks."""
    return [line.split(maxsplit=cells - (cells > 0)) for line in text.strip().splitlines()]
