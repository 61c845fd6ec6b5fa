"""Finds recipes: the user's files first, then those that ship with synmt, such as `nc11-pascal`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from synmt.errors import UsageError, did_you_mean

_ENDINGS = ("", ".yaml", ".yml")


@cache
def shipped_recipes() -> dict[str, Path]:
    """Find the shipped recipes by name, sorted; those in a folder are named `ablations/…`, and come
    last."""
    folder = shipped_folder()
    names = {_stem(path.relative_to(folder).as_posix()): path for path in folder.rglob("*.yaml")}
    return {name: names[name] for name in sorted(names, key=lambda name: ("/" in name, name))}


def find_recipe(path_or_name: Path, extended_by: Path | None) -> Path:
    """Find a recipe by its path or its name; raises UsageError that suggests the nearest name.

    A file comes before a shipped recipe. The ending `.yaml` may be left out.

    extended_by: the recipe that names it: paths are relative to its own.
    """
    folder = extended_by.parent if extended_by else Path()
    name, shipped = _stem(path_or_name.as_posix()), shipped_recipes()
    for ending in _ENDINGS:
        path = folder / f"{path_or_name}{ending}"
        # a user's recipe may have the name of the shipped one that it extends
        if os.path.isfile(path) and not (extended_by and path.samefile(extended_by)):
            return path
    short = {_stem(path.name): path for path in shipped.values()}
    if recipe := shipped.get(name) or short.get(name):
        return recipe
    files = (folder / path_or_name).parent.glob("*.y*ml")
    near = did_you_mean(_stem(path_or_name.name), [*(_stem(path.name) for path in files), *short])
    raise UsageError(
        f"there is no file or shipped recipe '{path_or_name}'",
        where=f"{extended_by}: extends" if extended_by else "",
        do=near or "`synmt train --list` shows all names",
    )


def shipped_folder(name: str = "recipes") -> Path:
    """Name the folder of the shipped recipes, or `docs`: in the package if it was installed, else
    next to it."""
    package = Path(__file__).parents[1]
    installed = package / name
    return installed if installed.is_dir() else package.parent / name


def _stem(name: str) -> str:
    # not Path.stem, which would cut `ignore0.3`
    return name.removesuffix(".yaml").removesuffix(".yml")


def split_overrides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into recipes and overrides, which begin at the first `key=value` that is not
    a file."""
    for first, argument in enumerate(arguments):
        if "=" in argument and not os.path.isfile(argument):
            return list(arguments[:first]), list(arguments[first:])
    return list(arguments), []
