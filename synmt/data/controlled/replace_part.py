"""Change one part of what a sentence of the controlled corpus says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from synmt.data.controlled.meaning import Predicate, Sentence

Part = TypeVar("Part")


def replace_part(sentence: Sentence, part: Part, other: Part) -> Sentence:
    """Say something else in the place of one part; the part is the very object that the sentence holds."""
    return _exchanged(sentence, part, other)


def predicates(sentence: Sentence) -> list[Predicate]:
    """List the predicates of all clauses, those that contain others first."""
    return [part for part in _parts(sentence) if isinstance(part, Predicate)]


def _exchanged(whole: Any, part: object, other: object) -> Any:
    if whole is part:
        return other
    if isinstance(whole, tuple):
        return tuple(_exchanged(each, part, other) for each in whole)
    if not is_dataclass(whole) or isinstance(whole, type):
        return whole
    return replace(whole, **{each.name: _exchanged(getattr(whole, each.name), part, other) for each in fields(whole)})


def _parts(whole: Any) -> Iterator[Any]:
    yield whole
    inner = whole if isinstance(whole, tuple) else ()
    if is_dataclass(whole):
        inner = (getattr(whole, each.name) for each in fields(whole))
    for each in inner:
        yield from _parts(each)
