"""What is asked of a translator for one line, and how lines are taken in: in windows, sorted and batched inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from synmt.errors import SynmtError
from synmt.syntax.parse import Parse

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Request:
    """A line to translate.

    prefix: what its translation has to begin with; it is cut into pieces by itself, so it should end with a word.
    tree: to read in place of the parser's.
    other_tree: to translate it under once more, for comparison.
    """

    text: str
    prefix: str = ""
    tree: Parse | None = None
    other_tree: Parse | None = None


def windows(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Group lines that are there already."""
    lines = iter(lines)
    while window := list(islice(lines, size)):
        yield window


def zip_windows(windows: Iterable[list[T]], others: Iterable[U], what: str) -> Iterator[tuple[list[T], list[U]]]:
    """Give each window of lines what stands beside it; raises SynmtError where the lines or the others run out."""
    others, count = iter(others), 0
    for window in windows:
        some = list(islice(others, len(window)))
        count += len(some)
        if len(some) < len(window):
            raise SynmtError(f"there are only {count:,} {what}", where=f"line {count + 1}")
        yield window, some
    # a reader of trees that has some left says so now
    if next(others, None) is not None:
        raise SynmtError(f"there are more {what} than lines, {count:,}")


def batches(items: Sequence[T], length: Callable[[T], int], *, sentences: int, pieces: int) -> Iterator[list[T]]:
    """Put items of like length together, longest first: so many sentences, so many pieces with padding."""
    ordered = sorted(items, key=length, reverse=True)
    while ordered:
        count = max(1, min(sentences, pieces // max(1, length(ordered[0]))))
        yield ordered[:count]
        ordered = ordered[count:]
