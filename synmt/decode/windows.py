"""How text is taken in: in windows that are sorted and batched inside, as wide as what has arrived."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO, TypeVar

from synmt.files import decode_lines

T = TypeVar("T")


def arriving(stream: BinaryIO, size: int, *, where: str) -> Iterator[list[str]]:
    """Group the lines of a stream as they come in, without waiting for more: at most `size` in a window."""
    queue: deque[bytes] = deque()
    lines = decode_lines(iter(queue.popleft, None), where=where)
    rest = b""
    # read1 gives what is there; a plain file has no such method, and never lets one wait
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    while chunk := read(1 << 16):
        *complete, rest = (rest + chunk).split(b"\n")
        queue.extend(complete)
        while queue:
            yield list(islice(lines, min(size, len(queue))))
    if rest:
        queue.append(rest)
        yield list(islice(lines, 1))


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
