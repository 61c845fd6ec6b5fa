"""From a text to its trees: a file, made in shards that survive every interruption, or a stream."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import platform
import shutil
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from pydantic import Field

from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import read_cached_json
from synmt.files.reading import (
    cache_folder,
    fingerprint,
    read_available_lines,
    read_lines,
    sha256,
)
from synmt.files.writing import locked, write_atomically, write_json, write_output
from synmt.parallel.engine import cluster_in_use, in_shards
from synmt.parallel.gzip_blocks import packed_in_blocks
from synmt.parsing.lines import warn_of_failure
from synmt.parsing.parser import Parser
from synmt.parsing.shards import (
    Manifest,
    Shard,
    finished_shard,
    join_shards,
    parse_shard,
    shards_of,
)
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


@dataclass(frozen=True)
class ParseProgress:
    """The result of one step of `parse_file`.

    state: `kept` and `parsed` describe a shard, `finished` and `unchanged` the whole file.
    words: parsed words; words of repeated lines count in the whole file only.
    seconds: since the start.
    processes: how many parse together; 0 if a cluster does.
    processor_seconds: of a shard; None if that is not known.
    """

    state: State
    lines: int
    words: int
    failures: int
    seconds: float
    processes: int = 0
    processor_seconds: float | None = None


def usual_processes(lines: int, processes: int) -> int:
    """Return how many of a parser's processes parse a text of this size together: one if it is
    small."""
    shards = math.ceil(lines / _SHARD_LINES)
    return 1 if shards < _SHARDS_FOR_WORKERS else min(processes, shards)


def parse_file(
    source: str | Path,
    target: str | Path,
    parser: Parser,
    *,
    workers: int | None = None,
    shard_lines: int = _SHARD_LINES,
    overwrite: bool = False,
    fewer: str = "--workers 1",
) -> Generator[ParseProgress, None, None]:
    """Parse a text (`-`: standard input) into a CoNLL-U file, gzipped if it ends in `.gz`; yield
    the progress.

    It also writes `<target>.json` (see Summary) and, if lines failed, `<target>.failures.jsonl`.
    Until it is finished, shards are stored in `<target>.parts`: after any interruption the same
    call continues from there, and the files are those of an uninterrupted run, byte for byte, with
    any number of workers.

    workers: processes; by default the parser's choice, and 1 for a small text.
    overwrite: replace a file made from another text or by another parser.
    fewer: how the user asks for one process.
    """
    started, target, parsed = time.monotonic(), Path(target), 0

    def progress(state: State, lines: int, words: int, failures: int, *more: Any) -> ParseProgress:
        return ParseProgress(state, lines, words, failures, time.monotonic() - started, *more)

    check_target(target, overwrite=overwrite)
    if str(source) != "-" and target.exists() and target.samefile(source):
        raise UsageError(
            "input and output are the same file", where=str(target), do="Choose another output"
        )
    existing = read_summary(target) if target.exists() and not overwrite else None
    if existing is not None:
        _check_same(source, target, existing, parser)
        shutil.rmtree(parts_folder(target), ignore_errors=True)
        yield progress("unchanged", existing.lines, existing.words, existing.failures)
        return
    with _work_folder(target, parser.fingerprint, overwrite) as folder:
        digest = hashlib.sha256()
        lines = read_lines(source)
        shards = shards_of(_hashed(lines, digest), shard_lines)
        count = processes = 0
        for state, manifest, processes in _parse_shards(parser, shards, folder, workers, fewer):
            count, parsed = count + 1, parsed + (state == "parsed")
            cost = processes, manifest.processor_seconds
            yield progress(state, manifest.lines, manifest.words, len(manifest.failures), *cost)
        summary = _finish(target, folder, count, parser, digest.hexdigest())
    yield progress(
        "finished", summary.lines, summary.words, summary.failures, min(processes, parsed)
    )


def parse_stream(
    stream: BinaryIO, parser: Parser, *, where: str = "standard input"
) -> Iterator[str]:
    """Yield the CoNLL-U blocks of a stream as its lines arrive, several lines at once if several
    have arrived."""
    first = 1
    for lines in read_available_lines(stream, _WINDOW, where=where):
        parses = parser.parse(lines, on_failure=partial(_warn, first))
        pairs = enumerate(zip(parses, lines, strict=True), start=first)
        yield "".join(format_conllu(parse, line, number) for number, (parse, line) in pairs)
        first += len(lines)


def _warn(first: int, index: int, reason: str) -> None:
    warn_of_failure(first + index, reason)


@contextlib.contextmanager
def _work_folder(target: Path, fingerprint: str, overwrite: bool) -> Iterator[Path]:
    """Lock the folder for the shards of one parser; remove it when the block ends without an
    error."""
    folder = parts_folder(target)
    state = folder / "parser"
    if not folder.exists() and target.exists() and not overwrite:
        raise not_overwritten(FOREIGN, target)
    with locked(folder, "these trees"):
        finished = list(folder.glob("[0-9]*"))
        if finished and state.exists() and state.read_bytes() != fingerprint.encode():
            if not overwrite:
                raise not_overwritten(
                    "contains trees of another parser, from an interrupted run", folder
                )
            for file in finished:
                file.unlink()
        with write_atomically(state) as stream:
            stream.write(fingerprint)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def _hashed(lines: Iterable[str], digest: Any) -> Iterator[str]:
    """Add each line to a digest as it passes."""
    for line in lines:
        digest.update(f"{line}\n".encode())
        yield line


def _parse_shards(
    parser: Parser, shards: Iterator[Shard], folder: Path, workers: int | None, fewer: str
) -> Iterator[tuple[Literal["kept", "parsed"], Manifest, int]]:
    """Yield each shard with the number of processes, 0 on a cluster."""
    kept: deque[Manifest] = deque()

    def missing() -> Iterator[Shard]:
        for shard in shards:
            if manifest := finished_shard(shard, folder, parser.fingerprint):
                kept.append(manifest)
            else:
                yield shard

    unfinished = missing()
    first = list(islice(unfinished, _SHARDS_FOR_WORKERS))
    on_cluster = cluster_in_use() is not None
    if workers is None:
        workers = parser.processes() if len(first) == _SHARDS_FOR_WORKERS and not on_cluster else 1
    processes = 0 if on_cluster else workers
    for shard in in_shards(
        parse_shard, parser, chain(first, unfinished), workers, where=folder, fewer=fewer
    ):
        shard.write(folder)
        while kept:
            yield "kept", kept.popleft(), processes
        yield "parsed", shard.manifest, processes
    for manifest in kept:
        yield "kept", manifest, processes


def _finish(target: Path, folder: Path, shards: int, parser: Parser, digest: str) -> Summary:
    """Join the shards; write the summary last, since it tells that the trees are complete."""
    summary_path(target).unlink(missing_ok=True)
    lines = words = 0
    failures: list[str] = []
    with write_output(target, pack=packed_in_blocks) as stream:
        for lines, block in enumerate(join_shards(folder, shards), start=1):
            stream.write(block.text)
            words += block.words
            if block.failure:
                failures.append(json.dumps({"line": lines, "reason": block.failure}) + "\n")
    failures_path = target.with_name(f"{target.name}.failures.jsonl")
    failures_path.unlink(missing_ok=True)
    if failures:
        with write_atomically(failures_path) as stream:
            stream.writelines(failures)
    summary = Summary(
        parser.identity,
        parser.fingerprint,
        lines,
        words,
        len(failures),
        input=digest,
        output=sha256(target),
    )
    write_json(summary_path(target), vars(summary), indent=2)
    return summary


def _check_same(source: str | Path, target: Path, existing: Summary, parser: Parser) -> None:
    """Raise unless the finished trees belong to this text and this parser, and have not been
    changed."""
    digest = hashlib.sha256()
    deque(_hashed(read_lines(source), digest), maxlen=0)
    if existing.fingerprint != parser.fingerprint:
        raise not_overwritten(_difference(existing, parser), target)
    if existing.input != digest.hexdigest():
        raise not_overwritten("was made from another text", target)
    if existing.output != sha256(target):
        raise not_overwritten("was changed after `synmt parse` made it", target)


def _difference(existing: Summary, parser: Parser) -> str:
    then, now = dict(existing.parser), dict(parser.identity)
    differing: list[str] = []
    for name in ("arcs", "features"):
        had, has = then.pop(name, None), now.pop(name, None)
        if bool(had) != bool(has):
            differing.append(f"{'with' if had else 'without'} --{name}")
    if then == now and differing:
        return f"was parsed {' and '.join(differing)}"
    return f"was made by another parser ({existing.fingerprint}, this one is {parser.fingerprint})"


# how fast this machine parses: measured while a text is parsed, for the next estimate

REFERENCE = 4_500
"""Words that the compact English parser parses in a second on one core of an AMD Zen 5
(`synmt --docs results`)."""
_Rate = Annotated[float, Field(gt=0, le=1e18)]
_ENOUGH = 200_000
"""Words. Fewer may have been parsed in one process, and loading the models took a good part of the
time."""


def remember_rate(parser: Parser, words: int, seconds: float, processes: int) -> None:
    """Keep the rate at which a text was parsed, unless the text was short.

    processes: how many parsed it together.
    """
    if words < _ENOUGH or seconds <= 0:
        return
    # without a writable cache, the next estimate is only less exact
    with contextlib.suppress(SynmtError):
        write_json(_path(parser), {"words_per_second": words / seconds / processes})


def measured_rate(parser: Parser) -> float | None:
    """Return how many words a second one process of this parser parsed here the last time; None if
    it never did."""
    return (read_cached_json(_path(parser), dict[str, _Rate]) or {}).get("words_per_second")


def _path(parser: Parser) -> Path:
    # several machines may share one cache
    return cache_folder() / "rates" / f"{fingerprint(platform.node(), parser.fingerprint)}.json"
