"""Finds recipes: the user's files first, then those that ship with synmt, such as `nc11-pascal`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from synmt.errors import UsageError

_ENDINGS = (".yaml", ".yml")


@cache
def shipped_recipes() -> dict[str, Path]:
    """Find the shipped recipes by name, sorted; those in a folder are named `ablations/…`, and come
    last."""
    folder = shipped_folder()
    names = {_stem(path.relative_to(folder).as_posix()): path for path in folder.rglob("*.yaml")}
    return {name: names[name] for name in sorted(names, key=lambda name: ("/" in name, name))}


def find_recipe(given: Path, folder: Path = Path()) -> Path | None:
    """Find a recipe by its path relative to a folder, or by its name; None if there is neither.

    A file in the folder comes before a shipped recipe. The ending `.yaml` may be left out.
    """
    files = (folder / given, *(folder / f"{given}{ending}" for ending in _ENDINGS))
    return next((path for path in files if path.is_file()), None) or find_shipped(given)


def find_shipped(given: Path) -> Path | None:
    """Find a shipped recipe by its name, with or without its folder and its ending."""
    name, shipped = _stem(given.as_posix()), shipped_recipes()
    return shipped.get(name) or {_stem(path.name): path for path in shipped.values()}.get(name)


def no_such_recipe(
    given: Path, folder: Path = Path(), extended_by: Path | None = None
) -> UsageError:
    """Make the error for a recipe that `find_recipe` does not find; it suggests the nearest
    name."""
    path, name = folder / given, _stem(given.as_posix())
    # a shell that completes names needs no keys
    from synmt.recipe.keys import list_keys

    if "." in given.name and any(key.path == given.as_posix() for key in list_keys()):
        return UsageError("this key has no value", where=str(given), do=f"Write {given}=VALUE")
    here = {other.stem: other for end in _ENDINGS[::-1] for other in path.parent.glob(f"*{end}")}
    shipped = {name.rpartition("/")[2]: name for name in shipped_recipes()}
    is_name = "/" not in name or name.startswith("ablations/")
    names = {**(shipped if is_name or path.stem in shipped else {}), **here}
    # without the endings, which would make all short names similar
    near = difflib.get_close_matches(_stem(given.name), names, n=1)
    do = "`synmt train --list` shows all names" if is_name else ""
    return UsageError(
        "file not found" + ", and no recipe of this name ships with synmt" * is_name,
        where=f"{extended_by} extends {path}" if extended_by else str(path),
        do=f"Did you mean '{names[near[0]]}'?" if near else do,
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
    # not Path.is_file, which fails for a long value
    is_override = ["=" in argument and not os.path.isfile(argument) for argument in arguments]
    first = [*is_override, True].index(True)
    recipes, overrides = list(arguments[:first]), list(arguments[first:])
    for argument in overrides:
        if "=" not in argument:
            raise UsageError(
                f"'{argument}' is not an override",
                do="Write all recipes before the first `key=value`",
            )
    return recipes, overrides
