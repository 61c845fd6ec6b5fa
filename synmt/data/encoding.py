"""Segments both sides into pieces, shard by shard, and counts them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from synmt.arrays import BoolArray
from synmt.corpora.parts import CorpusPart, part_tags, tags_of_lines
from synmt.data.arrow import ArrowTable, lists, table_bytes
from synmt.data.corpus import shard_name
from synmt.data.filtering import EMPTY, KEPT, PIECES, REASONS
from synmt.data.pairs import Pair, PairChunk, read_chunks
from synmt.data.vocabulary import UNK, Vocabulary, truncate
from synmt.files.schemas import TextFacts
from synmt.files.writing import write_atomically
from synmt.parallel.engine import in_shards, with_number
from synmt.parallel.processes import process_count
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe
from synmt.reporting.progress import progress

Row = TypeVar("Row")
S = TypeVar("S")
T = TypeVar("T")

KEPT_FILE = "kept.arrow"
SHARD_LINES = 50_000
_FEW_LINES = 50_000
"""Up to this number of lines, starting processes costs more than it saves."""


@dataclass(frozen=True)
class Encoder:
    """Segments pairs of one split into pieces, and makes their shards.

    A shard contains the pairs of SHARD_LINES lines of the text, so it does not depend on earlier shards. Only train is
    filtered. From valid, pairs without pieces on one side are removed, and sides that are too long are truncated.

    parts: the parts of the training text, whose tags come before its sources.
    tail: number of pieces at the end of a source that are kept when it is truncated: its task tag.
    """

    filters: FilterRecipe
    vocabularies: tuple[Vocabulary, Vocabulary]
    split: str
    parts: Sequence[CorpusPart] = ()
    tail: int = 0

    def encode(self, files: SplitFiles, folder: Path, lines: int) -> None:
        """Write the missing shards into a folder, which already says which pairs of train are kept."""
        missing = _missing(folder, self.split, lines)
        chunks = compress(read_chunks(files, SHARD_LINES), missing) if any(missing) else ()
        shards = ((chunk.first // SHARD_LINES, (chunk, self._kept(chunk, folder))) for chunk in chunks)
        write_shards(_encoded, self, shards, folder, self.split, lines, what=f"prepare: {self.split}")

    def _kept(self, chunk: PairChunk, folder: Path) -> BoolArray:
        if self.split != "train":
            return np.ones(SHARD_LINES, dtype=bool)
        return ArrowTable(folder / KEPT_FILE).numbers("reason")[chunk.first :][:SHARD_LINES] == KEPT

    def shard(self, kept: list[tuple[int, Pair]]) -> bytes:
        """Make the file of a shard from its pairs and their lines."""
        sides = [
            vocabulary.encode_batch([pair[side] for _, pair in kept])
            for side, vocabulary in enumerate(self.vocabularies)
        ]
        sides[0] = self._tagged(sides[0], [line for line, _ in kept])
        codes = [self._judge(*row) for row in zip(*sides, strict=True)]
        counts = dict(Counter(REASONS[code] for code in codes))
        good = [code == KEPT for code in codes]
        longest = self.filters.max_pieces
        cut = sum(max(map(len, row)) > longest for row in compress(zip(*sides, strict=True), good))
        tails = (self.tail, 0)
        columns = [
            [truncate(ids, longest, tail) for ids in compress(side, good)]
            for side, tail in zip(sides, tails, strict=True)
        ]
        rows = list(compress(kept, good))
        facts = {"reasons": counts, "cut": cut, **_measure(rows, columns)}
        table = {
            "line": pa.array([line for line, _ in rows], type=pa.int64()),
            "source": lists(columns[0], np.int32),
            "target": lists(columns[1], np.int32),
        }
        return table_bytes(table, facts)

    def _tagged(self, sources: list[list[int]], lines: list[int]) -> list[list[int]]:
        """Put the tags of parts before the sources of the training text; one without pieces stays empty."""
        if self.split != "train" or not part_tags(self.parts):
            return sources
        numbers = {tag: [self.vocabularies[0].tag_number(tag)] for tag in part_tags(self.parts)} | {"": []}
        tags = tags_of_lines(self.parts, np.array(lines, dtype=np.int64))
        return [numbers[tag] + source if source else [] for tag, source in zip(tags, sources, strict=True)]

    def _judge(self, source: list[int], target: list[int]) -> int:
        if not source or not target:
            return EMPTY
        if self.split == "train" and max(len(source), len(target)) > self.filters.max_pieces:
            return PIECES
        return KEPT


def _measure(rows: list[tuple[int, Pair]], columns: list[list[list[int]]]) -> dict[str, Any]:
    """Count words, pieces and unknown pieces of each side, and find its longest sentence."""
    measures: dict[str, Callable[[int], int]] = {
        "words": lambda side: sum(len(pair[side].split()) for _, pair in rows),
        "pieces": lambda side: sum(map(len, columns[side])),
        "unknown": lambda side: sum(ids.count(UNK) for ids in columns[side]),
        "longest": lambda side: max(map(len, columns[side]), default=0),
    }
    return {name: [measure(side) for side in (0, 1)] for name, measure in measures.items()}


def missing_shards(rows: Iterator[Row], folder: Path, split: str, lines: int) -> Iterator[tuple[int, Iterator[Row]]]:
    """Yield each shard of a split that has no file, with its rows, which are to be read before the next shard.

    Nothing is read if all files exist. The last shard reads `rows` to the end, so that a row too many is noticed.
    """
    missing = _missing(folder, split, lines)
    for shard in range(len(missing) * any(missing)):
        chunk = islice(rows, SHARD_LINES) if shard + 1 < len(missing) else rows
        if missing[shard]:
            yield shard, chunk
        deque(chunk, maxlen=0)


def write_shards(
    work: Callable[[S, T], bytes],
    state: S,
    shards: Iterator[tuple[int, T]],
    folder: Path,
    split: str,
    lines: int,
    *,
    what: str,
) -> None:
    """Make the contents of missing shards on all cores or on the cluster in use, and write each when it is ready."""
    missing = _missing(folder, split, lines)
    sizes = [min(SHARD_LINES, lines - shard * SHARD_LINES) for shard in range(len(missing))]
    left = sum(compress(sizes, missing))
    workers = encoding_processes(left)
    with progress(what, lines, "lines") as advance:
        advance(lines - left)
        for shard, content in in_shards(partial(with_number, work), state, shards, workers, where=folder):
            with write_atomically(folder / shard_name(split, shard), binary=True) as stream:
                stream.write(content)
            advance(sizes[shard])


def encoding_processes(lines: int) -> int:
    """Compute how many processes should make the shards of a number of lines."""
    return process_count(_shards(lines)) if lines > _FEW_LINES else 1


def _encoded(encoder: Encoder, shard: tuple[PairChunk, BoolArray]) -> bytes:
    chunk, kept = shard
    return encoder.shard(list(compress(enumerate(chunk.pairs(), start=chunk.first), kept)))


def _missing(folder: Path, split: str, lines: int) -> list[bool]:
    return [not (folder / shard_name(split, shard)).exists() for shard in range(_shards(lines))]


def _shards(lines: int) -> int:
    return -(-lines // SHARD_LINES)


def summarize(folder: Path, split: str, lines: int) -> dict[str, Any]:
    """Add up the counts of all shards of a split."""
    tables = [ArrowTable(folder / shard_name(split, shard), TextFacts) for shard in range(_shards(lines))]
    reasons = Counter[str]()
    if split == "train":
        codes = np.bincount(ArrowTable(folder / KEPT_FILE).numbers("reason"), minlength=len(REASONS))
        reasons.update(dict(zip(REASONS, codes.tolist(), strict=True)))
        reasons["kept"] = 0
    for table in tables:
        reasons.update(table.facts["reasons"])
    totals = {
        name: np.sum([[0, 0], *(table.facts[name] for table in tables)], axis=0).tolist()
        for name in ("words", "pieces", "unknown")
    }
    return {
        "lines": lines,
        "rows": sum(map(len, tables)),
        "shards": len(tables),
        "reasons": {reason: reasons[reason] for reason in REASONS},
        "cut": sum(table.facts["cut"] for table in tables),
        **totals,
        "longest": np.max([[0, 0], *(table.facts["longest"] for table in tables)], axis=0).tolist(),
    }


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files that a killed process left."""
    for path in folder.glob(".*"):
        if path.is_file():
            path.unlink()
