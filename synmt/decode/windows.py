"""How text is taken in: in windows that are sorted and batched inside, as wide as what has arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def windows(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Group lines that are there already."""
    lines = iter(lines)
    while window := list(islice(lines, size)):
        yield window


def batches(items: Sequence[T], length: Callable[[T], int], *, sentences: int, pieces: int) -> Iterator[list[T]]:
    """Put items of like length together, longest first: so many sentences, so many pieces with padding."""
    ordered = sorted(items, key=length, reverse=True)
    while ordered:
        count = max(1, min(sentences, pieces // max(1, length(ordered[0]))))
        yield ordered[:count]
        ordered = ordered[count:]
