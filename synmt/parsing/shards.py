"""Shards: parts of a text that are parsed separately, kept if a run is interrupted, and joined at
its end.

A line that equals a recent one is not parsed again: its block in the shard has no words, and gets
them when the shards are joined. Which lines these are depends on the text alone, not on the number
of processes or on interruptions, so that the result is always the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from synmt.errors import SynmtError
from synmt.files.json_files import Amount, Count, read_json
from synmt.files.reading import sha256
from synmt.files.writing import write_atomically, write_json
from synmt.parsing.parser import Parser
from synmt.syntax.conllu import format_comments, format_rows

V = TypeVar("V")

_RECENT_LINES = 50_000
_MAX_CHARACTERS = 300


class Recent(Generic[V]):
    """A value for each of the last 50,000 distinct short lines: about 60 MB if the values are
    trees."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, V] = OrderedDict()

    def find(self, content: str) -> V | None:
        """Return the value of a line, which becomes the most recent one; None if it has none."""
        if content in self._values:
            self._values.move_to_end(content)
        return self._values.get(content)

    def remember(self, content: str, value: V) -> None:
        """Store the value of a line unless the line is empty or long; drop the least recent
        line."""
        if len(content) <= _MAX_CHARACTERS and content.removeprefix("# text = ").strip():
            self._values[content] = value
            if len(self._values) > _RECENT_LINES:
                self._values.popitem(last=False)


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a text.

    number: of the shard, from 1.
    first: number of its first line, from 1.
    repeated: whether each line equals a recent one.
    """

    number: int
    first: int
    lines: list[str]
    repeated: list[bool]

    def digest(self) -> str:
        """Hash everything that determines the shard's trees, except the parser."""
        marked = zip(self.lines, self.repeated, strict=True)
        text = "".join(f"{'=' if repeated else '+'}{line}\n" for line, repeated in marked)
        return hashlib.sha256(f"{self.first}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """How the file of a shard was made; written after it, so that it proves that the file is
    complete.

    input, output: SHA-256 of what the shard was made from, and of its file.
    failures: numbers of lines with the reason why their trees are flat or joined.
    processor_seconds: that it took to parse the shard; None if an old version made it.
    """

    lines: Count
    words: Count
    fingerprint: str
    input: str
    output: str
    failures: dict[int, str]
    processor_seconds: Amount | None = None


def shards_of(lines: Iterable[str], size: int) -> Iterator[Shard]:
    """Split a text into shards of `size` lines; only one is in memory."""
    recent: Recent[bool] = Recent()
    lines = iter(lines)
    first = number = 1
    while window := list(islice(lines, size)):
        yield Shard(number, first, window, [_is_repeated(recent, line) for line in window])
        first, number = first + len(window), number + 1


def _is_repeated(recent: Recent[bool], line: str) -> bool:
    content = _content(format_comments(line, 1))
    if recent.find(content):
        return True
    recent.remember(content, True)
    return False


def _content(comments: str) -> str:
    """Remove the number of the line; the rest is the same for equal lines."""
    return comments.rstrip("\n").split("\n", 1)[1]


@dataclass(frozen=True)
class ParsedShard:
    """The file of a shard, which is not written yet, and its manifest."""

    number: int
    content: bytes
    manifest: Manifest

    def write(self, folder: Path) -> None:
        """Write the file, then the manifest."""
        path = _file(folder, self.number)
        with write_atomically(path, binary=True) as stream:
            stream.write(self.content)
        write_json(path.with_suffix(".json"), asdict(self.manifest))


def parse_shard(parser: Parser, shard: Shard) -> ParsedShard:
    """Parse the lines of a shard that do not equal recent ones."""
    began = time.process_time()
    new = [index for index, repeated in enumerate(shard.repeated) if not repeated]
    failures: dict[int, str] = {}
    parses = parser.parse(
        [shard.lines[index] for index in new],
        on_failure=lambda index, reason: failures.update({shard.first + new[index]: reason}),
    )
    rows = dict(zip(new, map(format_rows, parses), strict=True))
    blocks = (
        format_comments(line, shard.first + index) + rows.get(index, "\n")
        for index, line in enumerate(shard.lines)
    )
    content = "".join(blocks).encode()
    words, output = sum(map(len, parses)), hashlib.sha256(content).hexdigest()
    made = shard.digest(), output, failures, time.process_time() - began
    manifest = Manifest(len(shard.lines), words, parser.fingerprint, *made)
    return ParsedShard(shard.number, content, manifest)


def finished_shard(shard: Shard, folder: Path, fingerprint: str) -> Manifest | None:
    """Read the manifest of a shard that an earlier run finished; None if the shard must be
    parsed."""
    try:
        manifest = read_manifest(folder, shard.number)
        is_complete = sha256(_file(folder, shard.number)) == manifest.output
    except (OSError, SynmtError):
        return None
    return (
        manifest
        if is_complete and (manifest.input, manifest.fingerprint) == (shard.digest(), fingerprint)
        else None
    )


def read_manifest(folder: Path, number: int) -> Manifest:
    """Read the manifest of a shard."""
    return read_json(_file(folder, number).with_suffix(".json"), Manifest)


@dataclass(frozen=True)
class FinishedBlock:
    """The CoNLL-U block of one line, its number of words, and the reason if parsing failed."""

    text: str
    words: int
    failure: str


def join_shards(folder: Path, shards: int) -> Iterator[FinishedBlock]:
    """Yield the blocks of all shards in order; repeated lines get the words of their first
    occurrence."""
    recent: Recent[tuple[str, str]] = Recent()
    for number in range(1, shards + 1):
        failures = read_manifest(folder, number).failures
        text = _file(folder, number).read_bytes().decode("utf-8")
        for block in text.split("\n\n")[:-1]:
            comments, _, rows = block.partition("\n1\t")
            rows = f"1\t{rows}\n" if rows else ""
            content = _content(comments)
            line = int(comments.split("\n", 1)[0].removeprefix("# line = "))
            known = None if rows else recent.find(content)
            rows, reason = known or (rows, failures.get(line, ""))
            if known is None:
                recent.remember(content, (rows, reason))
            yield FinishedBlock(f"{comments}\n{rows}\n", rows.count("\n"), reason)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.conllu"
