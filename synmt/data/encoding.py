"""Segments both sides into pieces, shard by shard, and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from synmt.arrays import Array, BoolArray, Pair, Values
from synmt.corpora.corpus import CorpusPart, part_tags, tags_of_lines
from synmt.data.arrow import ArrowTable, lists, table_bytes
from synmt.data.corpus import shard_name
from synmt.data.filtering import EMPTY, KEPT, PIECES, REASONS, count_reasons
from synmt.data.text_pairs import PairChunk, read_chunks
from synmt.data.vocabulary import UNK, Vocabulary, truncate
from synmt.files.schemas import TextFacts
from synmt.files.writing import write_content
from synmt.parallel.engine import in_shards, with_number
from synmt.parallel.processes import process_count
from synmt.recipe.corpus import SplitFiles
from synmt.reporting.progress import progress

S = TypeVar("S")
T = TypeVar("T")

KEPT_FILE = "kept.arrow"
SHARD_LINES = 50_000
_FEW_LINES = 50_000
"""Up to this number of lines, starting processes costs more than it saves."""


def shard_paths(folder: Path, split: str, lines: int) -> list[Path]:
    """Name the files of a split, each with the rows of SHARD_LINES lines of its text."""
    return [folder / shard_name(split, shard) for shard in range(-(-lines // SHARD_LINES))]


def write_shards(
    paths: Sequence[Path],
    work: Callable[[S, T], bytes],
    state: S,
    shards: Iterator[tuple[int, T]],
    *,
    lines: int,
    what: str,
) -> None:
    """Make missing shards on all cores or on the cluster in use, and write each when it is ready;
    `shards` yields what they are made of, and is not read if there are none."""
    missing = sum(not path.exists() for path in paths)
    if not missing:
        return
    left = min(lines, missing * SHARD_LINES)
    numbered = partial(with_number, work)
    with progress(what, lines, "lines") as advance:
        advance(lines - left)
        for shard, content in in_shards(
            numbered, state, shards, encoding_processes(left), where=paths[0].parent
        ):
            write_content(paths[shard], content)
            advance(min(left, SHARD_LINES))
            left -= SHARD_LINES


def rows_of_missing(paths: Sequence[Path], rows: Iterator[T]) -> Iterator[tuple[int, list[T]]]:
    """Yield each shard that has no file, with its rows; the last one has all that are left, so that
    a row too many is noticed."""
    for shard, path in enumerate(paths):
        chunk = list(islice(rows, None if path == paths[-1] else SHARD_LINES))
        if not path.exists():
            yield shard, chunk


def encoding_processes(lines: int) -> int:
    """Compute how many processes should make the shards of a number of lines."""
    return process_count(-(-lines // SHARD_LINES)) if lines > _FEW_LINES else 1


def kept_reasons(folder: Path) -> Array:
    """Read the index in REASONS of every pair of train: (lines,)."""
    return ArrowTable(folder / KEPT_FILE).numbers("reason")


def remove_unfinished(folder: Path) -> None:
    """Remove temporary files that a killed process left."""
    for path in folder.glob(".*"):
        if path.is_file():
            path.unlink()


@dataclass(frozen=True)
class Encoder:
    """Segments pairs of one split into pieces, and makes their shards, each without regard to
    earlier ones.

    Only train is filtered. From valid, pairs without pieces on one side are removed, and sides that
    are too long are truncated.

    parts: the parts of the training text, whose tags come before its sources.
    tail: number of pieces at the end of a source that are kept when it is truncated: its task tag.
    """

    max_pieces: int
    vocabularies: tuple[Vocabulary, Vocabulary]
    split: str
    parts: Sequence[CorpusPart] = ()
    tail: int = 0

    def encode(self, text: SplitFiles, folder: Path, lines: int) -> None:
        """Write the missing shards into a folder, which already says which pairs of train are
        kept."""
        paths = shard_paths(folder, self.split, lines)
        write_shards(
            paths,
            Encoder.shard,
            self,
            self._missing_shards(text, paths),
            lines=lines,
            what=f"prepare: {self.split}",
        )

    def _missing_shards(
        self, text: SplitFiles, paths: Sequence[Path]
    ) -> Iterator[tuple[int, tuple[PairChunk, BoolArray]]]:
        for shard, chunk in enumerate(read_chunks(text, SHARD_LINES)):
            is_kept = np.ones(len(chunk), dtype=bool)
            if self.split == "train":
                is_kept = kept_reasons(paths[shard].parent)[chunk.first :][: len(chunk)] == KEPT
            if not paths[shard].exists():
                yield shard, (chunk, is_kept)

    def shard(self, pairs: tuple[PairChunk, BoolArray]) -> bytes:
        """Make the file of a shard from pairs, and from which of them are kept."""
        chunk, is_kept = pairs
        numbered = list(compress(enumerate(chunk.pairs(), start=chunk.first), is_kept))
        segmented = [
            vocabulary.encode_batch([pair[side] for _, pair in numbered])
            for side, vocabulary in enumerate(self.vocabularies)
        ]
        lines, texts, columns = list[int](), list[Pair](), ([], [])
        reasons, cut, tags = Counter[str](), 0, self._tags([line for line, _ in numbered])
        for (line, pair), tag, source, target in zip(numbered, tags, *segmented, strict=True):
            too_long = max(len(tag) + len(source), len(target)) > self.max_pieces
            # a tag alone is no source
            code = KEPT if source and target else EMPTY
            if code == KEPT and too_long and self.split == "train":
                code = PIECES
            reasons[REASONS[code]] += 1
            if code == KEPT:
                cut += too_long
                lines.append(line)
                texts.append(pair)
                columns[0].append(truncate(tag + source, self.max_pieces, self.tail))
                columns[1].append(truncate(target, self.max_pieces, 0))
        facts = {
            "reasons": reasons,
            "cut": cut,
            "words": [sum(len(pair[side].split()) for pair in texts) for side in (0, 1)],
            "pieces": [sum(map(len, column)) for column in columns],
            "unknown": [sum(ids.count(UNK) for ids in column) for column in columns],
        }
        table = {
            "line": pa.array(lines, type=pa.int64()),
            "source": lists(columns[0], np.int32),
            "target": lists(columns[1], np.int32),
        }
        return table_bytes(table, facts)

    def _tags(self, lines: list[int]) -> list[list[int]]:
        """Number the tag that comes before the source of each line."""
        source = self.vocabularies[0]
        numbers = {tag: [source.tag_number(tag)] for tag in part_tags(self.parts)} | {"": []}
        return [numbers[tag] for tag in tags_of_lines(self.parts, np.array(lines, dtype=np.int64))]


def summarize(folder: Path, split: str, lines: int) -> Values:
    """Add up the counts of all shards of a split."""
    tables = [ArrowTable(path, TextFacts) for path in shard_paths(folder, split, lines)]
    shards = [table.facts for table in tables]
    reasons = Counter[str]()
    if split == "train":
        reasons.update({**count_reasons(kept_reasons(folder)), "kept": 0})
    for facts in shards:
        reasons.update(facts["reasons"])
    return {
        name: np.sum([facts[name] for facts in shards], axis=0).tolist()
        for name in ("cut", "words", "pieces", "unknown")
    } | {
        "lines": lines,
        "rows": sum(map(len, tables)),
        "shards": len(tables),
        "reasons": {reason: reasons[reason] for reason in REASONS},
    }
