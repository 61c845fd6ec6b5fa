"""From a text to its trees: a file, made in shards that survive every interruption, or a stream.

Shards are parts of a text that are parsed separately, kept if a run is interrupted, and joined at
its end. The file of a shard is CoNLL-U, compressed if the whole file is: members of a gzip file
(RFC 1952, section 2.2) follow each other, so the shards are joined as they are.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import Amount, Count, read_json
from synmt.files.reading import read_available_lines, read_lines, sha256
from synmt.files.writing import (
    AnyPath,
    locked,
    write_atomically,
    write_content,
    write_json,
    write_lines,
)
from synmt.parallel.engine import in_shards
from synmt.parsing.lines import warn_of_failure
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import (
    FOREIGN,
    Summary,
    check_target,
    not_overwritten,
    parts_folder,
    read_summary,
    summary_path,
)
from synmt.syntax.conllu import format_conllu

State = Literal["kept", "parsed", "finished", "unchanged"]

_SHARD_LINES = 2000
_SHARDS_FOR_WORKERS = 3
"""With fewer shards, loading the models in more processes takes longer than it saves."""
_WINDOW = 1000
"""Lines of a stream that are parsed together, at most."""
_LEVEL = 6
"""The default of gzip. The highest level takes 1.7 times as long, for 2 % fewer bytes."""


@dataclass(frozen=True)
class ParseProgress:
    """The result of one step of `parse_file`.

    state: `kept` and `parsed` describe a shard, `finished` and `unchanged` the whole file.
    processor_seconds: of a shard; None if that is not known.
    """

    state: State
    lines: int
    words: int
    failures: int
    processor_seconds: float | None = None


def parse_file(
    source: AnyPath,
    target: AnyPath,
    parser: StanzaParser,
    *,
    workers: int | None = None,
    shard_lines: int = _SHARD_LINES,
    overwrite: bool = False,
) -> Generator[ParseProgress, None, None]:
    """Parse a text (`-`: standard input) into a CoNLL-U file, gzipped if it ends in `.gz`; yield
    the progress.

    It also writes `<target>.json` (see Summary) and, if lines failed, `<target>.failures.jsonl`.
    Until it is finished, shards are stored in `<target>.parts`: after any interruption the same
    call continues from there, and the files are those of an uninterrupted run, byte for byte, with
    any number of workers.

    workers: processes; by default the parser's choice, and 1 for a small text.
    overwrite: replace a file made from another text or by another parser.
    """
    target, digest = Path(target), hashlib.sha256()
    lines = _hashed(read_lines(source), digest)
    check_target(target, overwrite=overwrite)
    if str(source) != "-" and target.exists() and target.samefile(source):
        raise UsageError(
            "input and output are the same file", where=target, do="Choose another output"
        )
    finished = read_summary(target) if target.exists() and not overwrite else None
    if finished is not None:
        deque(lines, maxlen=0)
        same = parser.fingerprint, digest.hexdigest(), sha256(target)
        if same != (finished.fingerprint, finished.input, finished.output):
            raise not_overwritten(
                "was made from another text or by another parser, or was changed later", target
            )
        shutil.rmtree(parts_folder(target), ignore_errors=True)
        yield ParseProgress("unchanged", finished.lines, finished.words, finished.failures)
        return
    folder = parts_folder(target)
    if target.exists() and not folder.exists() and not overwrite:
        raise not_overwritten(FOREIGN, target)
    with locked(folder, "these trees"):
        manifests: list[Manifest] = []
        shards = shards_of(lines, shard_lines, are_packed=target.suffix == ".gz")
        for state, manifest in _parse_shards(parser, shards, folder, workers):
            manifests.append(manifest)
            yield ParseProgress(
                state,
                manifest.lines,
                manifest.words,
                len(manifest.failures),
                manifest.processor_seconds,
            )
        summary = _finish(target, folder, manifests, parser, digest.hexdigest())
        shutil.rmtree(folder, ignore_errors=True)
    yield ParseProgress("finished", summary.lines, summary.words, summary.failures)


def parse_stream(
    stream: BinaryIO, parser: StanzaParser, *, where: str = "standard input"
) -> Iterator[str]:
    """Yield the CoNLL-U blocks of a stream as its lines arrive, several lines at once if several
    have arrived."""
    first = 1
    for lines in read_available_lines(stream, _WINDOW, where=where):
        parses = parser.parse(
            lines, on_failure=lambda index, why, first=first: warn_of_failure(first + index, why)
        )
        pairs = enumerate(zip(parses, lines, strict=True), start=first)
        yield "".join(format_conllu(parse, line, number) for number, (parse, line) in pairs)
        first += len(lines)


def _hashed(lines: Iterable[str], digest: Any) -> Iterator[str]:
    """Add each line to a digest as it passes."""
    for line in lines:
        digest.update(f"{line}\n".encode())
        yield line


def _parse_shards(
    parser: StanzaParser, shards: Iterator[Shard], folder: Path, workers: int | None
) -> Iterator[tuple[Literal["kept", "parsed"], Manifest]]:
    finished: deque[Manifest] = deque()

    def missing() -> Iterator[Shard]:
        for shard in shards:
            if manifest := finished_shard(shard, folder, parser.fingerprint):
                finished.append(manifest)
            else:
                yield shard

    unfinished = missing()
    first = list(islice(unfinished, _SHARDS_FOR_WORKERS))
    if workers is None:
        workers = parser.processes() if len(first) == _SHARDS_FOR_WORKERS else 1
    for shard in in_shards(parse_shard, parser, chain(first, unfinished), workers, where=folder):
        shard.write(folder)
        while finished:
            yield "kept", finished.popleft()
        yield "parsed", shard.manifest
    for manifest in finished:
        yield "kept", manifest


def _finish(
    target: Path, folder: Path, manifests: Sequence[Manifest], parser: StanzaParser, digest: str
) -> Summary:
    """Join the shards; write the summary last, since it tells that the trees are complete."""
    summary_path(target).unlink(missing_ok=True)
    # the shards are compressed already
    with write_atomically(target, binary=True, packed=True) as stream:
        for number in range(1, len(manifests) + 1):
            with open(_file(folder, number), "rb") as content:
                shutil.copyfileobj(content, stream)
    failures = {line: why for manifest in manifests for line, why in manifest.failures.items()}
    failures_path = target.with_name(f"{target.name}.failures.jsonl")
    failures_path.unlink(missing_ok=True)
    if failures:
        rows = ({"line": line, "reason": reason} for line, reason in sorted(failures.items()))
        write_lines(failures_path, map(json.dumps, rows))
    summary = Summary(
        parser=parser.identity,
        fingerprint=parser.fingerprint,
        lines=sum(manifest.lines for manifest in manifests),
        words=sum(manifest.words for manifest in manifests),
        failures=len(failures),
        input=digest,
        output=sha256(target),
    )
    write_json(summary_path(target), asdict(summary), indent=2)
    return summary


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
        write_content(path, self.content)
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


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:06d}.conllu"
