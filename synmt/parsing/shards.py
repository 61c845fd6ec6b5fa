"""Shards: parts of a text, parsed by themselves, kept when a run breaks off, put together at its end.

A line that was seen a short while ago is not parsed again: its block has no words in the shard, and gets
them when the shards are put together. Which lines those are follows from the text alone, never from the
number of processes or from where a run broke off; so the result is the same byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from synmt import files
from synmt.parsing.parser import Parser
from synmt.syntax.conllu import format_comments, format_rows

V = TypeVar("V")

_REMEMBERED = 50_000
_LONGEST_REMEMBERED = 300


class Recent(Generic[V]):
    """What was seen of the last 50,000 distinct short lines: some 60 MB with their trees."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, V] = OrderedDict()

    def find(self, content: str) -> V | None:
        """Give what is remembered of a line, and remember it for longer."""
        if content in self._values:
            self._values.move_to_end(content)
        return self._values.get(content)

    def remember(self, content: str, value: V) -> None:
        """Remember a line unless it is blank or long; the least recently seen one is forgotten."""
        if len(content) <= _LONGEST_REMEMBERED and content.removeprefix("# text = ").strip():
            self._values[content] = value
            if len(self._values) > _REMEMBERED:
                self._values.popitem(last=False)


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a text.

    first: the number of its first line, from 1.
    repeated: which of the lines were seen before.
    """

    number: int
    first: int
    lines: list[str]
    repeated: list[bool]

    def digest(self) -> str:
        """Hash what the shard's file is made from."""
        marked = zip(self.lines, self.repeated, strict=True)
        text = "".join(f"{'=' if repeated else '+'}{line}\n" for line, repeated in marked)
        return hashlib.sha256(f"{self.first}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """What a shard's file holds, and what it was made from.

    failures: number of the line, and the reason why its tree is flat or pieced together.
    """

    lines: int
    words: int
    fingerprint: str
    input: str
    output: str
    failures: dict[int, str]


def shards_of(lines: Iterable[str], size: int) -> Iterator[Shard]:
    """Cut a text into shards of `size` lines, holding one at a time."""
    recent: Recent[bool] = Recent()
    lines = iter(lines)
    first = number = 1
    while window := list(islice(lines, size)):
        yield Shard(number, first, window, [_seen(recent, line) for line in window])
        first, number = first + len(window), number + 1


def _seen(recent: Recent[bool], line: str) -> bool:
    content = _content(format_comments(line, 1))
    if recent.find(content):
        return True
    recent.remember(content, True)
    return False


def _content(comments: str) -> str:
    """Leave out the number of the line: what remains is the same for equal lines."""
    return comments.rstrip("\n").split("\n", 1)[1]


def write_shard(parser: Parser, shard: Shard, folder: Path) -> Manifest:
    """Parse a shard into its file and its manifest, which comes last and vouches for the file."""
    fresh = [index for index, repeated in enumerate(shard.repeated) if not repeated]
    failures: dict[int, str] = {}
    parses = parser.parse(
        [shard.lines[index] for index in fresh],
        on_failure=lambda place, reason: failures.update({shard.first + fresh[place]: reason}),
    )
    rows = dict(zip(fresh, map(format_rows, parses), strict=True))
    with files.write_atomically(_file(folder, shard)) as stream:
        for index, line in enumerate(shard.lines):
            stream.write(format_comments(line, shard.first + index) + rows.get(index, "\n"))
    manifest = Manifest(
        lines=len(shard.lines),
        words=sum(map(len, parses)),
        fingerprint=parser.fingerprint,
        input=shard.digest(),
        output=files.sha256(_file(folder, shard)),
        failures=failures,
    )
    with files.write_atomically(_file(folder, shard).with_suffix(".json")) as stream:
        json.dump(asdict(manifest), stream)
    return manifest


def kept_shard(shard: Shard, folder: Path, fingerprint: str) -> Manifest | None:
    """Give the manifest of a shard that an earlier run finished; None where it has to be parsed (again)."""
    try:
        manifest = read_manifest(folder, shard.number)
        whole = files.sha256(_file(folder, shard)) == manifest.output
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return manifest if whole and (manifest.input, manifest.fingerprint) == (shard.digest(), fingerprint) else None


def read_manifest(folder: Path, number: int) -> Manifest:
    """Read the manifest of a shard."""
    found = json.loads((folder / f"{number:06d}.json").read_text(encoding="utf-8"))
    return Manifest(**{**found, "failures": {int(line): reason for line, reason in found["failures"].items()}})


@dataclass(frozen=True)
class Finished:
    """One block of the whole file: its text, its number of words, and the reason where it failed."""

    block: str
    words: int
    failure: str


def put_together(folder: Path, shards: int) -> Iterator[Finished]:
    """Yield the blocks of all shards in order; repeated lines get the words of the first time."""
    recent: Recent[tuple[str, str]] = Recent()
    for number in range(1, shards + 1):
        failures = read_manifest(folder, number).failures
        text = (folder / f"{number:06d}.conllu").read_bytes().decode("utf-8")
        for block in text.split("\n\n")[:-1]:
            comments, _, rows = block.partition("\n1\t")
            rows = f"1\t{rows}\n" if rows else ""
            content = _content(comments)
            line = int(comments.split("\n", 1)[0].removeprefix("# line = "))
            known = None if rows else recent.find(content)
            rows, reason = known or (rows, failures.get(line, ""))
            if known is None:
                recent.remember(content, (rows, reason))
            yield Finished(f"{comments}\n{rows}\n", rows.count("\n"), reason)


def _file(folder: Path, shard: Shard) -> Path:
    return folder / f"{shard.number:06d}.conllu"
