"""Shards: parts of a text that are parsed separately, kept if a run is interrupted, and joined at
its end.

The file of a shard is CoNLL-U, compressed if the whole file is: members of a gzip file (RFC 1952,
section 2.2) follow each other, so the shards are joined as they are.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO

from synmt.errors import SynmtError
from synmt.files.json_files import Amount, Count, read_json
from synmt.files.reading import sha256
from synmt.files.writing import write_atomically, write_json
from synmt.parsing.parser import StanzaParser
from synmt.syntax.conllu import format_conllu

_LEVEL = 6
"""The default of gzip. The highest level takes 1.7 times as long, for 2 % fewer bytes."""


@dataclass(frozen=True)
class Shard:
    """Consecutive lines of a text.

    number: of the shard, from 1.
    first: number of its first line, from 1.
    is_packed: whether its file is compressed.
    """

    number: int
    first: int
    lines: list[str]
    is_packed: bool = False

    def digest(self) -> str:
        """Hash everything that determines the shard's trees, except the parser."""
        text = "\n".join([str(self.first), *self.lines])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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


def shards_of(lines: Iterable[str], size: int, *, are_packed: bool = False) -> Iterator[Shard]:
    """Split a text into shards of `size` lines, at least one; only one is in memory."""
    lines = iter(lines)
    for number in count(1):
        window = list(islice(lines, size))
        if not window and number > 1:
            return
        yield Shard(number, 1 + (number - 1) * size, window, are_packed)


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


def parse_shard(parser: StanzaParser, shard: Shard) -> ParsedShard:
    """Parse the lines of a shard."""
    began = time.process_time()
    failures: dict[int, str] = {}
    parses = parser.parse(
        shard.lines,
        on_failure=lambda index, reason: failures.update({shard.first + index: reason}),
    )
    pairs = enumerate(zip(parses, shard.lines, strict=True), start=shard.first)
    blocks = (format_conllu(parse, line, number) for number, (parse, line) in pairs)
    content = "".join(blocks).encode()
    if shard.is_packed:
        content = gzip.compress(content, _LEVEL, mtime=0)
    manifest = Manifest(
        lines=len(shard.lines),
        words=sum(map(len, parses)),
        fingerprint=parser.fingerprint,
        input=shard.digest(),
        output=hashlib.sha256(content).hexdigest(),
        failures=failures,
        processor_seconds=time.process_time() - began,
    )
    return ParsedShard(shard.number, content, manifest)


def finished_shard(shard: Shard, folder: Path, fingerprint: str) -> Manifest | None:
    """Read the manifest of a shard that an earlier run finished; None if the shard must be
    parsed."""
    path = _file(folder, shard.number)
    try:
        manifest = read_json(path.with_suffix(".json"), Manifest)
        found = sha256(path), shard.digest(), fingerprint
    except (OSError, SynmtError):
        return None
    is_same = found == (manifest.output, manifest.input, manifest.fingerprint)
    return manifest if is_same else None


def join_shards(folder: Path, shards: int, stream: IO[bytes]) -> None:
    """Copy the files of all shards, in order."""
    for number in range(1, shards + 1):
        with open(_file(folder, number), "rb") as content:
            shutil.copyfileobj(content, stream)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.conllu"
