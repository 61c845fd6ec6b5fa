"""From a text to its trees: a file in shards that survives every interruption, or a stream."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from synmt import files
from synmt.errors import UsageError
from synmt.parsing.parser import OnFailure, Parser
from synmt.parsing.shards import Manifest, Shard, kept_shard, put_together, shards_of
from synmt.parsing.work_folder import exists_already, parts_folder, work_folder
from synmt.parsing.workers import write_shards
from synmt.syntax.conllu import format_conllu

_WORTH_A_SECOND_PROCESS = 3
"""Shards: a process needs some seconds to load the models."""


_WINDOW = 1000
"""Lines of a stream that are parsed together, at most."""


@dataclass(frozen=True)
class ParseProgress:
    """What one step of `parse_file` has done.

    state: `kept` and `parsed` tell of one shard, `finished` and `unchanged` of the whole file.
    words: those that were parsed; lines that were seen before count only when the file is finished.
    seconds: since the start.
    """

    state: Literal["kept", "parsed", "finished", "unchanged"]
    lines: int
    words: int
    failures: int
    seconds: float


@dataclass(frozen=True)
class Summary:
    """The file beside the trees, `<target>.json`: what they were made from and with, and no times."""

    parser: dict[str, Any]
    fingerprint: str
    lines: int
    words: int
    failures: int
    input: str
    output: str


def summary_path(target: Path) -> Path:
    """Name the file that says how trees were made."""
    return target.with_name(f"{target.name}.json")


def read_summary(target: Path) -> Summary | None:
    """Read how trees were made; None where no finished run of `synmt parse` left them."""
    try:
        return Summary(**json.loads(summary_path(target).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def parse_file(
    source: str | Path,
    target: str | Path,
    parser: Parser,
    *,
    workers: int | None = None,
    shard_lines: int = 2000,
    overwrite: bool = False,
) -> Generator[ParseProgress, None, None]:
    """Parse a text (`-`: standard input) into a CoNLL-U file, packed if it ends in `.gz`; yield the progress.

    Beside it appear `<target>.json` (see Summary) and, where lines failed, `<target>.failures.jsonl`. Until
    then the work lies in `<target>.parts`: after an interruption of any kind the same call goes on from
    there, and the files are those of an uninterrupted run, byte for byte, with any number of workers.

    workers: processes; by default as many as the parser asks for, one for a small text.
    overwrite: replace a file made from another text or by another parser.
    """
    started = time.monotonic()
    target = Path(target)
    if str(source) != "-" and target.exists() and target.samefile(source):
        raise UsageError("the text and its trees have the same name", where=str(target), do="Choose another output")
    existing = read_summary(target) if target.exists() and not overwrite else None
    if existing is not None:
        _check_same(source, target, existing, parser)
        shutil.rmtree(parts_folder(target), ignore_errors=True)
        seconds = time.monotonic() - started
        yield ParseProgress("unchanged", existing.lines, existing.words, existing.failures, seconds)
        return
    with work_folder(target, parser.fingerprint, overwrite) as folder:
        digest = hashlib.sha256()
        shards = shards_of(_hashed(files.read_lines(source), digest), shard_lines)
        count = 0
        for state, manifest in _parse_shards(parser, shards, folder, workers):
            count += 1
            seconds = time.monotonic() - started
            yield ParseProgress(state, manifest.lines, manifest.words, len(manifest.failures), seconds)
        summary = _finish(target, folder, count, parser, digest.hexdigest())
    seconds = time.monotonic() - started
    yield ParseProgress("finished", summary.lines, summary.words, summary.failures, seconds)


def parse_stream(
    stream: BinaryIO, parser: Parser, *, where: str = "standard input", on_failure: OnFailure | None = None
) -> Iterator[str]:
    """Yield the blocks of a stream, a few lines at a time: as many as have arrived.

    on_failure: takes the number of a line, from 1, and the reason why its tree is flat or pieced together.
    """
    number = 1
    for lines in files.read_available_lines(stream, _WINDOW, where=where):
        report = None if on_failure is None else lambda index, why, first=number: on_failure(first + index, why)
        parses = parser.parse(lines, on_failure=report)
        pairs = enumerate(zip(parses, lines, strict=True), start=number)
        yield "".join(format_conllu(parse, line, index) for index, (parse, line) in pairs)
        number += len(lines)


def _hashed(lines: Iterable[str], digest: Any) -> Iterator[str]:
    for line in lines:
        digest.update(f"{line}\n".encode())
        yield line


def _parse_shards(
    parser: Parser, shards: Iterator[Shard], folder: Path, workers: int | None
) -> Iterator[tuple[Literal["kept", "parsed"], Manifest]]:
    kept: deque[Manifest] = deque()
    missing = _missing(shards, folder, parser.fingerprint, kept)
    ahead = list(islice(missing, _WORTH_A_SECOND_PROCESS))
    if workers is None:
        workers = parser.processes() if len(ahead) == _WORTH_A_SECOND_PROCESS else 1
    for manifest in write_shards(parser, chain(ahead, missing), folder, workers):
        while kept:
            yield "kept", kept.popleft()
        yield "parsed", manifest
    while kept:
        yield "kept", kept.popleft()


def _missing(shards: Iterator[Shard], folder: Path, fingerprint: str, kept: deque[Manifest]) -> Iterator[Shard]:
    for shard in shards:
        manifest = kept_shard(shard, folder, fingerprint)
        if manifest is None:
            yield shard
        else:
            kept.append(manifest)


def _finish(target: Path, folder: Path, shards: int, parser: Parser, digest: str) -> Summary:
    """Put the shards together; the summary comes last, so that it vouches for the trees."""
    summary_path(target).unlink(missing_ok=True)
    lines = words = 0
    failures: list[str] = []
    with files.write_atomically(target) as stream:
        for lines, finished in enumerate(put_together(folder, shards), start=1):
            stream.write(finished.block)
            words += finished.words
            if finished.failure:
                failures.append(json.dumps({"line": lines, "reason": finished.failure}) + "\n")
    _write_failures(target, failures)
    summary = Summary(
        parser=parser.identity,
        fingerprint=parser.fingerprint,
        lines=lines,
        words=words,
        failures=len(failures),
        input=digest,
        output=files.sha256(target),
    )
    with files.write_atomically(summary_path(target)) as stream:
        json.dump(vars(summary), stream, indent=2)
        stream.write("\n")
    return summary


def _write_failures(target: Path, failures: list[str]) -> None:
    path = target.with_name(f"{target.name}.failures.jsonl")
    path.unlink(missing_ok=True)
    if failures:
        with files.write_atomically(path) as stream:
            stream.writelines(failures)


def _check_same(source: str | Path, target: Path, existing: Summary, parser: Parser) -> None:
    """Raise unless the finished trees are those of this text and this parser, and as they were written."""
    digest = hashlib.sha256()
    for _ in _hashed(files.read_lines(source), digest):
        pass
    if existing.fingerprint != parser.fingerprint:
        what = _difference(existing, parser)
    elif existing.input != digest.hexdigest():
        what = "was made from another text"
    elif files.sha256(target) != existing.output:
        what = "is not as `synmt parse` left it"
    else:
        return
    raise exists_already(what, target)


def _difference(existing: Summary, parser: Parser) -> str:
    then, now = ({**identity} for identity in (existing.parser, parser.identity))
    had, has = then.pop("arcs", False), now.pop("arcs", False)
    if then == now and had != has:
        return f"was parsed {'with' if had else 'without'} --arcs"
    return f"was made by another parser ({existing.fingerprint}, this one is {parser.fingerprint})"
