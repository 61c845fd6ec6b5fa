"""Reads a recipe from its YAML file.

A recipe may extend another one (`extends:`, a path relative to its own, or the name of a shipped
recipe); its own values win, and lists replace lists. Overrides `key.key=value` come last. All
errors are reported at once, before anything runs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from synmt.errors import (
    SynmtError,
    UsageError,
    all_in_one,
    counted,
    did_you_mean,
    given_value,
    one_text,
    plain_message,
)
from synmt.recipe.catalogue import find_recipe, find_shipped, no_such_recipe
from synmt.recipe.keys import list_keys
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml_text import load_yaml, parse_yaml_value

_TYPE = re.compile(r"^(?:int|function-after)$|\[")
"""The name of a type, in pydantic's location of a problem."""


def load_recipe(path: str | Path | Recipe, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe and those it extends, apply `key=value` overrides, and check the values.

    path: a file, or the name of a shipped recipe, such as `nc11-pascal`. A Recipe is returned as it
        is, and has no overrides.
    """
    if isinstance(overrides, str):
        raise one_text(overrides, "overrides")
    overrides = list(overrides)
    if isinstance(path, Recipe):
        if overrides:
            do = "Use load_recipe(path, overrides)"
            raise UsageError("overrides need the file of a recipe", do=do)
        return path
    values = _with_bases(path)
    values.setdefault("name", Path(path).name.removesuffix(".yaml").removesuffix(".yml"))
    for override in overrides:
        _apply_override(values, override)
    return check_recipe(values, where=str(path))


def check_recipe(values: Mapping[str, Any], *, where: str) -> Recipe:
    """Make a Recipe from plain values; raises one UsageError that lists every error."""
    try:
        # strict JSON turns lists into tuples and strings into paths, but never "3" into a number
        return Recipe.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        problems = [
            {**problem, "loc": [*_as_written(problem["loc"], values)]} for problem in error.errors()
        ]
        raise all_in_one(
            [_explain(problem, where) for problem in _of_one_value(problems)]
        ) from None


def set_key(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `section.key` of a recipe's values; raises UsageError if something before the last dot is
    no section."""
    *sections, last = key.split(".")
    place: Any = values
    for depth, section in enumerate(sections):
        place = _step_into(place, section, ".".join(sections[: depth + 1]))
    if isinstance(place, list):
        place[_index(place, last, key)] = deepcopy(value)
    else:
        place[last] = deepcopy(value)


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """Return every value of a recipe, including defaults, as plain data for YAML or JSON."""
    return recipe.model_dump(mode="json")


def _with_bases(first: str | Path) -> dict[str, Any]:
    """Merge a recipe with all that it extends, one after the other: there may be thousands."""
    recipes: dict[Path, dict[str, Any]] = {}
    name, extended_by = first, None
    while name is not None:
        path = _find(Path(name), extended_by)
        if path.resolve() in recipes:
            do = f"Change `extends` of {extended_by}"
            raise UsageError("the recipe extends itself", where=str(path), do=do)
        values = _plain(load_yaml(path), path)
        if not isinstance(values, dict):
            raise UsageError("not a recipe: it must consist of `key: value` lines", where=str(path))
        recipes[path.resolve()] = values
        name, extended_by = values.pop("extends", None), path
        if not isinstance(name, str | None):
            raise UsageError(
                "`extends` must be the path or the name of one recipe", where=str(path)
            )
    merged: dict[str, Any] = {}
    for values in reversed(recipes.values()):
        merged.pop("name", None)
        _forget_text(merged, values.get("corpus"))
        merged = _merge(merged, values)
    return merged


_TEXTS = frozenset({"name", "folder", "train"})
"""The keys of `corpus` that name its text; a recipe has one of them."""


def _forget_text(base: dict[str, Any], corpus: Any) -> None:
    """Remove the text of a base recipe if another recipe, or an override, names one by another key
    of `corpus`."""
    old = base.get("corpus")
    if (
        isinstance(old, dict)
        and isinstance(corpus, dict)
        and any(corpus.get(key) for key in _TEXTS)
    ):
        base["corpus"] = {
            key: value for key, value in old.items() if key not in _TEXTS or key in corpus
        }


def _find(name: Path, extended_by: Path | None) -> Path:
    """Find a recipe by the path or name that the user or the recipe which extends it gives."""
    folder = extended_by.parent if extended_by else Path()
    try:
        # not `Path.resolve`, which before Python 3.13 raises a RuntimeError for a link that leads
        # to itself
        exists = Path(os.path.realpath(folder / name)).exists()
        path = find_recipe(name, folder) or (folder / name if exists else None)
    except (ValueError, OSError) as error:
        # a null character, half of a surrogate pair, or more characters than a name of a file may
        # have
        why = f" ({error.strerror})" if isinstance(error, OSError) else ""
        raise UsageError(
            f"not a valid path{why}: {name.name!r}", where=str(extended_by or "recipe")
        ) from None
    if path and extended_by and path.samefile(extended_by):
        # a user's recipe may have the name of the shipped one that it extends
        path = find_shipped(name) or path
    if path is None:
        raise no_such_recipe(name, folder, extended_by)
    return path


def _plain(values: Any, path: Path) -> Any:
    """Copy values as JSON has them: keys are strings, and an override of one place leaves aliases
    of it alone."""
    try:
        return json.loads(json.dumps(values, default=str))
    except ValueError:
        raise UsageError("an alias names something that contains it", where=str(path)) from None


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _apply_override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if any("\ud800" <= sign <= "\udfff" for sign in override):
        # bytes of the command line that the shell's encoding does not have
        raise UsageError(
            f"{override!r} is not UTF-8", do="Write it in UTF-8, in a shell with a UTF-8 locale"
        )
    if not equals or not key:
        raise UsageError(
            f"'{override}' is not an override", allowed="Overrides look like training.max_steps=100"
        )
    value = parse_yaml_value(text, depth=key.count(".") + 1)
    section, _, last = key.partition(".")
    if section == "corpus":
        _forget_text(values, {last: value})
    set_key(values, key, value)


def _step_into(place: Any, section: str, so_far: str) -> Any:
    if isinstance(place, list):
        inside = place[_index(place, section, so_far)]
    else:
        inside = place.setdefault(section, {})
    if not isinstance(inside, dict | list):
        raise UsageError(f"'{so_far}' is a value and has no keys", where="override")
    return inside


def _index(items: list[Any], text: str, key: str) -> int:
    if text.isdecimal() and int(text) < len(items):
        return int(text)
    allowed = "Its only item is 0" if len(items) == 1 else f"Its items are 0 to {len(items) - 1}"
    raise UsageError(
        f"'{key}' is not an index of a list with {counted(len(items), 'item')}",
        allowed=allowed if items else "",
    )


def _as_written(location: Iterable[Any], values: Any) -> Iterator[Any]:
    """Yield the keys of a place, without the index of an item that is written without its list."""
    for part in location:
        if isinstance(part, int) and isinstance(values, Mapping | str):
            continue
        yield part
        try:
            values = values[part]
        except (LookupError, TypeError):
            values = None


def _of_one_value(problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the problems of one value, which has several if its type is a union."""
    joined: dict[tuple[Any, ...], dict[str, Any]] = {}
    for problem in problems:
        keys = list(problem["loc"])
        # an unknown key comes last, and may look like one of the type names in the location of a
        # union's value
        unknown = [keys.pop()] if problem["type"] == "extra_forbidden" else []
        keys = [part for part in keys if not _TYPE.search(str(part))] + unknown
        place = (*keys, bool(unknown))
        message = plain_message(problem)
        if place in joined:
            message = f"{joined[place]['msg']}, or {message}"
        joined[place] = {**problem, "loc": keys, "msg": message}
    return list(joined.values())


def _explain(problem: Mapping[str, Any], where: str) -> SynmtError:
    location = problem["loc"]
    key = ".".join(str(part) for part in location) or "the recipe"
    if problem["type"] == "extra_forbidden":
        return _unknown_key([str(part) for part in location], where)
    if problem["type"] == "missing":
        return UsageError(f"'{key}' is missing", where=where)
    if problem["type"] == "string_pattern_mismatch":
        what = f"{key}: {problem['input']!r} is not a valid folder name"
        return UsageError(
            what,
            where=where,
            do="Use letters, digits and `_ . + -`, and begin with a letter, a digit or _",
        )
    # one that holds others is listed with what comes between
    listed = any(known.path in (key, f"{key}[]", f"{key}.NAME") for known in list_keys())
    do = f"`synmt train --keys {key}` shows its values" if listed else ""
    return UsageError(f"{key}: {problem['msg']}{given_value(problem)}", where=where, do=do)


def _unknown_key(location: list[str], where: str) -> SynmtError:
    *sections, name = location
    section: Any = Recipe
    for part in sections:
        field = section.model_fields.get(part) if section is not None else None
        # a part that is not a field is the key of a mapping, such as the name of a test set
        section = _section(field.annotation) if field is not None else section
    names = sorted(section.model_fields) if section is not None else []
    elsewhere = [
        f"'{key}.{name}'"
        for key, field in Recipe.model_fields.items()
        if name in getattr(_section(field.annotation), "model_fields", ())
    ]
    place = ".".join(sections)
    return UsageError(
        f"{place + ' has no' if place else 'a recipe has no'} key '{name}'",
        where=where,
        allowed=f"Keys: {', '.join(names)}" if names else "",
        do=f"Did you mean {' or '.join(elsewhere)}?" if elsewhere else did_you_mean(name, names),
    )


def _section(annotation: Any) -> Any:
    """Find the section in the type of a field: itself, optional, or the values of a mapping."""
    return next(
        (kind for kind in (annotation, *get_args(annotation)) if hasattr(kind, "model_fields")),
        None,
    )


def recipe_differences(
    first: Any, other: Any, may_differ: Container[str], key: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Yield each key in which the values of two recipes differ, as an override names it, with both
    values as text.

    may_differ: keys that do not count.
    """
    if key in may_differ or first == other:
        return
    parts = list(_pair_parts(first, other))
    for name, before, after in parts:
        yield from recipe_differences(
            before, after, may_differ, f"{key}.{name}" if key else str(name)
        )
    if not parts:
        yield key, _as_text(first), _as_text(other)


def _pair_parts(first: Any, other: Any) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        yield from (
            (name, first.get(name, ...), other.get(name, ...))
            for name in dict.fromkeys([*first, *other])
        )
    elif (
        isinstance(first, list)
        and isinstance(other, list)
        and list(map(_name, first)) == list(map(_name, other))
    ):
        yield from ((index, *pair) for index, pair in enumerate(zip(first, other, strict=True)))


def _name(value: Any) -> Any:
    """Return the name of a variant, whose options say nothing next to those of another one."""
    return value.get("name") if isinstance(value, Mapping) else None


def _as_text(value: Any) -> str:
    """Write a value; variants by their names only, as their options would make the message too
    long."""
    if value is ...:
        return "the default"
    if isinstance(value, list):
        return f"[{', '.join(_as_text(one) for one in value)}]"
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else repr(value)
