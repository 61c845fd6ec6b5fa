"""Reads a recipe from its YAML file.

A recipe may extend another one (`extends:`, a path relative to its own, or the name of a shipped
recipe); its own values win, and lists replace lists. Overrides `key.key=value` come last. All
errors are reported at once, before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from synmt.errors import UsageError, all_in_one, did_you_mean, plain_message
from synmt.recipe.catalogue import find_recipe, shipped_recipes
from synmt.recipe.keys import list_keys
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import dump_yaml, load_yaml, parse_yaml_value

RecipeSource = str | Path | Recipe
"""A recipe, its file, or the name of a shipped one."""
RecipeValues = dict[str, Any]
"""Values of a recipe, or of a section, by their keys, as plain data for YAML and JSON."""
Origins = dict[str, str]
"""Where values come from, by their keys: a file, or the command line."""


def load_recipe(path: RecipeSource, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe and those it extends, apply `key=value` overrides, and check the values.

    path: a file, or the name of a shipped recipe, such as `nc11-pascal`. A Recipe is returned as it
        is, and has no overrides.
    """
    overrides = list(overrides)
    if isinstance(path, Recipe):
        if overrides:
            do = "Use load_recipe(path, overrides)"
            raise UsageError("overrides need the file of a recipe", do=do)
        return path
    return check_recipe(_values(path, overrides, {}), where=str(path))


def annotated_recipe(path: str | Path, overrides: Iterable[str] = ()) -> str:
    """Write every value of a recipe as YAML, with a comment that names the file it comes from, the
    command line or the default."""
    origins = Origins()
    recipe = check_recipe(_values(path, overrides, origins), where=str(path))
    shipped = {str(file): file.name for file in shipped_recipes().values()}
    named = {key: shipped.get(origin, origin) for key, origin in origins.items()}
    return "".join(f"{line}\n" for line in _annotated(recipe_values(recipe), named))


def _annotated(values: RecipeValues, origins: Origins, prefix: str = "") -> Iterator[str]:
    indent = "  " * prefix.count(".")
    for name, value in values.items():
        key = prefix + name
        if value and isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _annotated(value, origins, f"{key}.")
            continue
        # an override may be of an item of a list
        found = [origins[other] for other in origins if _is_in(other, key)]
        comment = ", ".join(dict.fromkeys(found)) or "default"
        lines = dump_yaml({name: value}).splitlines()
        # a comment in the middle of a long text would end it, or become a part of it
        lines[-1 if isinstance(value, str) else 0] += f"  # {comment}"
        yield from (indent + line for line in lines)


def _is_in(key: str, section: str) -> bool:
    return f"{key}.".startswith(f"{section}.")


def _values(path: str | Path, overrides: Iterable[str], origins: Origins) -> RecipeValues:
    """Merge a recipe with all that it extends and with overrides; adds to `origins`."""
    values = _with_bases(path, origins)
    values.setdefault("name", Path(path).name.removesuffix(".yaml").removesuffix(".yml"))
    for override in overrides:
        key, value = _apply_override(values, override)
        for replaced in [other for other in origins if _is_in(other, key)]:
            del origins[replaced]
        origins |= dict.fromkeys(_leaves({key: value}), "command line")
    return values


def check_recipe(values: RecipeValues, *, where: str) -> Recipe:
    """Make a Recipe from plain values; raises one UsageError that lists every error."""
    try:
        # strict JSON turns lists into tuples and strings into paths, but never "3" into a number
        return Recipe.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        errors: dict[str, UsageError] = {}
        for problem in error.errors():
            parts = list(map(str, problem["loc"]))
            if problem["type"] != "extra_forbidden":
                # the place of a value that may have several types ends in one of them
                parts = [part for part in parts if "[" not in part]
            key = ".".join(parts) or "the recipe"
            errors.setdefault(key, _explain(dict(problem), key, where))
        raise all_in_one(list(errors.values())) from None


def set_key(values: RecipeValues, key: str, value: Any) -> None:
    """Set `section.key` of a recipe's values; raises UsageError if something before the last dot is
    no section."""
    *sections, last = key.split(".")
    place: Any = values
    try:
        for section in sections:
            is_list = isinstance(place, list)
            place = place[int(section)] if is_list else place.setdefault(section, {})
        place[int(last) if isinstance(place, list) else last] = deepcopy(value)
    except (AttributeError, IndexError, TypeError, ValueError):
        raise UsageError(
            f"'{key}' is not in the recipe",
            where="override",
            allowed="An item of a list is written by its number, from 0, and a value has no keys",
        ) from None


def recipe_values(recipe: Recipe) -> RecipeValues:
    """Return every value of a recipe, including defaults, as plain data for YAML or JSON."""
    return recipe.model_dump(mode="json")


def _with_bases(first: str | Path, origins: Origins) -> RecipeValues:
    """Merge a recipe with all that it extends, one after the other: there may be thousands."""
    merged: RecipeValues = {}
    seen: set[Path] = set()
    name, extended_by = first, None
    while name is not None:
        path = find_recipe(Path(name), extended_by)
        if path.resolve() in seen:
            do = f"Change `extends` of {extended_by}"
            raise UsageError("the recipe extends itself", where=path, do=do)
        values = load_yaml(path)
        if not isinstance(values, dict):
            raise UsageError("not a recipe: it must consist of `key: value` lines", where=path)
        name = values.pop("extends", None)
        if not isinstance(name, str | None):
            what = "`extends` must be the path or the name of one recipe"
            raise UsageError(what, where=path)
        if seen:
            values.pop("name", None)
        _forget_text(values, merged.get("corpus"))
        for key in _leaves(values):
            origins.setdefault(key, str(path))
        merged = _merge(values, merged)
        seen.add(path.resolve())
        extended_by = path
    return merged


def _leaves(values: RecipeValues, prefix: str = "") -> Iterator[str]:
    """Yield the keys of all values that a recipe replaces as a whole."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name


_TEXTS = frozenset({"name", "folder", "train"})
"""The keys of `corpus` that name its text; a recipe has one of them."""


def _forget_text(base: RecipeValues, corpus: Any) -> None:
    """Remove the text of a base recipe if another recipe, or an override, names one by another key
    of `corpus`."""
    old = base.get("corpus")
    if isinstance(old, dict) and isinstance(corpus, dict) and any(map(corpus.get, _TEXTS)):
        base["corpus"] = {
            key: value for key, value in old.items() if key not in _TEXTS or key in corpus
        }


def _merge(base: RecipeValues, over: RecipeValues) -> RecipeValues:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        are_mappings = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merge(old, value) if are_mappings else value  # type: ignore[arg-type]
    return merged


def _apply_override(values: RecipeValues, override: str) -> tuple[str, Any]:
    """Set the value of `key=value`; returns both."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise UsageError(
            f"'{override}' is not an override", allowed="Overrides look like training.max_steps=100"
        )
    value = parse_yaml_value(text)
    section, _, last = key.partition(".")
    if section == "corpus":
        _forget_text(values, {last: value})
    set_key(values, key, value)
    return key, value


def _explain(problem: RecipeValues, key: str, where: str) -> UsageError:
    kind, what = problem["type"], f"{key}: {plain_message(problem)}"
    if kind == "extra_forbidden":
        near = did_you_mean(key, [known.path for known in list_keys()])
        do = near or "`synmt train --keys` lists all"
        return UsageError(f"there is no key '{key}'", where=where, do=do)
    if kind in ("missing", "value_error"):
        return UsageError(what, where=where)
    last = [part for part in key.split(".") if not part.isdecimal()][-1]
    do = f"`synmt train --keys {last}` shows its values"
    return UsageError(f"{what}, not {problem['input']!r}", where=where, do=do)


def recipe_differences(
    first: RecipeValues, other: RecipeValues, may_differ: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield each key in which the values of two recipes differ, as an override names it, with both
    values as text.

    may_differ: keys and sections that do not count.
    """
    before, after = _flat(first), _flat(other)
    for key in before | after:
        values = before.get(key, "the default"), after.get(key, "the default")
        counts = not any(_is_in(key, same) for same in may_differ)
        if counts and values[0] != values[1]:
            yield key, *values


def _flat(values: Any, key: str = "") -> dict[str, str]:
    """Write each value as text, by its key as in an override."""
    if not values or not isinstance(values, dict | list):
        return {key: repr(values)}
    texts: dict[str, str] = {}
    for name, value in values.items() if isinstance(values, dict) else enumerate(values):
        texts |= _flat(value, f"{key}.{name}" if key else str(name))
    return texts
