"""How a recipe is read from its YAML file.

A recipe may `extends:` another one (a path beside it); what it says itself wins. Lists replace lists. Values
can be overridden by `key.key=value`. Everything is checked before anything runs, and reported at once.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.recipe.schema import Recipe
from synmt.recipe.yaml import load_yaml, parse_yaml_value


def load_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe with all that it extends, apply `key=value` overrides, check everything."""
    given = _with_bases(Path(path), seen=())
    given.setdefault("name", Path(path).name.removesuffix(".yaml").removesuffix(".yml"))
    for override in overrides:
        _apply_override(given, override)
    return check_recipe(given, where=str(path))


def check_recipe(given: Mapping[str, Any], *, where: str) -> Recipe:
    """Make a Recipe of plain values; raises one UsageError that lists every misfit."""
    try:
        # strict JSON: a list is a tuple and a string a path, but "3" is not a number
        return Recipe.model_validate_json(json.dumps(given, default=str))
    except ValidationError as error:
        problems = [dict(problem) for problem in error.errors()]
        raise all_in_one([_explain(problem, where) for problem in _of_one_value(problems)]) from None


def recipe_values(recipe: Recipe) -> dict[str, Any]:
    """Give every value of a recipe, defaults too, as plain data for YAML or JSON."""
    return recipe.model_dump(mode="json")


def _with_bases(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in (other.resolve() for other in seen):
        raise UsageError("the recipe extends itself", where=str(path))
    if not path.exists():
        raise _no_such_recipe(path, seen[-1] if seen else None)
    given = load_yaml(path)
    if not isinstance(given, dict):
        raise UsageError("a recipe is a list of `key: value` lines", where=str(path))
    base = given.pop("extends", None)
    if base is None:
        return given
    if not isinstance(base, str):
        raise UsageError("`extends` takes the path of one recipe", where=str(path))
    inherited = _with_bases(path.parent / base, (*seen, path))
    inherited.pop("name", None)
    return _merge(inherited, given)


def _no_such_recipe(path: Path, extended_by: Path | None) -> UsageError:
    there = {other.stem: other for ending in ("yml", "yaml") for other in path.parent.glob(f"*.{ending}")}
    # the ending would make short names near each other
    near = difflib.get_close_matches(path.name.removesuffix(".yaml").removesuffix(".yml"), there, n=1)
    return UsageError(
        "there is no such file",
        where=f"{extended_by} extends {path}" if extended_by else str(path),
        do=f"Did you mean '{there[near[0]]}'?" if near else "",
    )


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _apply_override(given: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise UsageError(f"'{override}' is not an override", allowed="Write it as training.max_steps=100")
    *sections, last = key.split(".")
    place: Any = given
    for depth, section in enumerate(sections):
        place = _step_into(place, section, ".".join(sections[: depth + 1]))
    if isinstance(place, list):
        place[_index(place, last, key)] = parse_yaml_value(text)
    else:
        place[last] = parse_yaml_value(text)


def _step_into(place: Any, section: str, so_far: str) -> Any:
    if isinstance(place, list):
        return place[_index(place, section, so_far)]
    inside = place.setdefault(section, {})
    if not isinstance(inside, dict | list):
        raise UsageError(f"'{so_far}' is a value, it has no keys", where="override")
    return inside


def _index(items: list[Any], text: str, key: str) -> int:
    if text.isdigit() and int(text) < len(items):
        return int(text)
    raise UsageError(f"'{key}' counts a list of {len(items)}", allowed=f"0 to {len(items) - 1}")


def _of_one_value(problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join what is wrong with a value that may be one thing or another."""
    joined: dict[tuple[Any, ...], dict[str, Any]] = {}
    for problem in problems:
        # the names of types stand between the keys
        keys = [part for part in problem["loc"] if part not in ("int", "function-after") and "[" not in str(part)]
        place = (*keys, problem["type"] == "extra_forbidden")
        message = str(problem["msg"]).removeprefix("Value error, ")
        message = message[0].lower() + message[1:]
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
    given = "" if problem["type"] == "value_error" else f", not {problem['input']!r}"
    return UsageError(f"{key}: {problem['msg']}{given}", where=where)


def _unknown_key(location: list[str], where: str) -> SynmtError:
    section: Any = Recipe
    for part in location[:-1]:
        field = section.model_fields.get(part) if section is not None else None
        # a part that is no field is the key of a mapping, such as a test set's name
        section = _section(field.annotation) if field is not None else section
    names = sorted(section.model_fields) if section is not None else []
    place = ".".join(location[:-1])
    return UsageError(
        f"{place + ' has no' if place else 'a recipe has no'} key '{location[-1]}'",
        where=where,
        allowed=f"Keys: {', '.join(names)}" if names else "",
        do=_in_sections(location[-1]) or did_you_mean(location[-1], names),
    )


def _in_sections(key: str) -> str:
    """Ask for the sections that have a key which somebody gave elsewhere; empty where none has it."""
    sections = {name: _section(field.annotation) for name, field in Recipe.model_fields.items()}
    found = [f"'{name}.{key}'" for name, section in sections.items() if section and key in section.model_fields]
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _section(annotation: Any) -> Any:
    """Find the section in a field's type: itself, optional, or the values of a mapping."""
    return next((kind for kind in (annotation, *get_args(annotation)) if hasattr(kind, "model_fields")), None)
