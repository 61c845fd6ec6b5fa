"""Where two recipes differ, key by key."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any


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
