"""Whether runs are seeds of one system: their recipes agree in all that makes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synmt.errors import UsageError

_MAY_DIFFER = {
    "name",
    "evaluation",
    "decoding.batch_size",
    *(f"training.{key}" for key in ("seed", "device", "compile", "log_every", "keep")),
    *(f"{parser}.{key}" for parser in ("parser", "target_parser") for key in ("seed", "workers", "device")),
}
"""Keys in which seeds of one system may differ."""


def check_one_system(runs: Sequence[Path]) -> None:
    """Refuse run folders whose recipes differ in more than a seed."""
    from synmt.recipe.load import recipe_values
    from synmt.run import find_run

    if len(runs) < 2:
        return
    first, *others = ((run, recipe_values(find_run(run).recipe())) for run in runs)
    for run, values in others:
        for key, before, after in differences(first[1], values):
            raise UsageError(
                f"is no seed of the system that {first[0]} is one of: {key} is {after} here, {before} there",
                where=str(run),
                do="Name runs whose recipes differ in `name` and `training.seed`; any translations may be seeds if "
                "they are given as files, such as 'runs/*/tests/test/hypothesis.txt'",
            )


def differences(first: Any, other: Any, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Find in which keys two recipes make other systems, and what these are in each."""
    if key in _MAY_DIFFER or first == other:
        return
    for name, before, after in _parts(first, other):
        yield from differences(before, after, f"{key}.{name}" if key else str(name))
    if not list(_parts(first, other)):
        yield key, _spoken(first), _spoken(other)


def _parts(first: Any, other: Any) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        yield from ((name, first.get(name), other.get(name)) for name in dict.fromkeys([*first, *other]))
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        yield from ((index, *pair) for index, pair in enumerate(zip(first, other, strict=True)))


def _spoken(value: Any) -> str:
    """Write a value; of a list of variants their names, since their options would hide these."""
    if isinstance(value, list):
        return f"[{', '.join(_spoken(one) for one in value)}]"
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else repr(value)
