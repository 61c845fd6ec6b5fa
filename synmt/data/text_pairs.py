"""The pairs of a text: one by one, or many at once as bytes, which cost little to read and to send
to a process."""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from synmt.arrays import Pair
from synmt.files.reading import decode_lines, open_binary, read_lines
from synmt.files.writing import AnyPath
from synmt.recipe.corpus import SplitFiles


@dataclass(frozen=True)
class PairChunk:
    """Pairs that follow each other.

    first: the number of the first line, counted from 0.
    sides: the bytes of the lines of source and target.
    paths: their files, which errors name.
    """

    first: int
    sides: tuple[bytes, bytes]
    paths: Pair

    def __len__(self) -> int:
        # the end of the last line may be missing
        return self.sides[0].count(b"\n", 0, -1) + 1

    def pairs(self) -> list[Pair]:
        """Decode the lines."""
        return list(zip(*(self.lines(side) for side in (0, 1)), strict=True))

    def lines(self, side: int) -> list[str]:
        """Decode the lines of one side, as `read_lines` does."""
        content = self.sides[side] if self.first else self.sides[side].removeprefix(BOM_UTF8)
        content = content.removesuffix(b"\n").replace(b"\r\n", b"\n").removesuffix(b"\r")
        try:
            # all at once takes a quarter of the time
            return content.decode().split("\n")
        except UnicodeDecodeError:
            return list(
                decode_lines(io.BytesIO(self.sides[side]), where=self.paths[side], first=self.first)
            )


def read_chunks(files: SplitFiles, size: int) -> Iterator[PairChunk]:
    """Read a text in chunks of `size` pairs; the last one has what is left."""
    paths = str(files.source), str(files.target)
    blocks = zip(*(_blocks(path, size) for path in paths), strict=True)
    for number, sides in enumerate(blocks):
        yield PairChunk(number * size, sides, paths)


def _blocks(path: AnyPath, size: int) -> Iterator[bytes]:
    with open_binary(path) as stream:
        while block := b"".join(islice(stream, size)):
            yield block


def read_pairs(files: SplitFiles) -> Iterator[Pair]:
    """Read sentence pairs line by line."""
    return zip(read_lines(files.source), read_lines(files.target), strict=True)
