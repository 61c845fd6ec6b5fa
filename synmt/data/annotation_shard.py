"""Makes one shard of an annotation: trees, the word of each piece, probabilities of arcs, and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from synmt.arrays import IntArray
from synmt.data.arrow import Lists, lists, table_bytes
from synmt.data.stored_arcs import shares
from synmt.data.stored_constituents import constituent_columns
from synmt.data.stored_features import FeatureColumns
from synmt.data.vocabulary import SentencePieces, Vocabulary, straddles, word_of
from synmt.errors import SynmtError
from synmt.syntax.arcs import without_arcs
from synmt.syntax.conllu import UnreadParse
from synmt.syntax.constituents import ordered, without_constituents
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Arcs, Parse

COUNTS = ("words", "pieces", "straddling", "characters", "unowned", "merged")
"""Counts for the summary; `unowned` characters are in no piece or no word, `merged` words own no piece."""


@dataclass(frozen=True, eq=False)
class ShardRows:
    """The rows of a shard, and the trees of its lines, from which the shard of trees is made.

    shard: its file, for messages.
    lines: the line of each row among the lines of the shard, from 0: (N,).
    ids: the pieces of each row.
    before: number of pieces before the text in each row, its tag; they belong to no word.
    trees: the lines of the shard with their trees.
    """

    shard: Path
    lines: IntArray
    ids: Lists
    before: Sequence[int]
    trees: Sequence[UnreadParse]


@dataclass(frozen=True)
class ShardAnnotator:
    """Makes the shards of trees of one split; each numbers its relations and tags by itself.

    parses: the file of the trees, for messages.
    arcs: whether every tree must have probabilities of arcs.
    whole: make trees that fit every segmentation: none of their words is merged, and their positions count symbols.
    constituents: store constituents, which every tree must have.
    features: what is stored of words besides tag and relation, some of feature_signals.STORED.
    """

    vocabulary: Vocabulary
    parses: Path
    arcs: bool = False
    whole: bool = False
    constituents: bool = False
    features: tuple[str, ...] = ()

    def shard(self, rows: ShardRows) -> bytes:
        """Make the file of the trees of a shard's rows."""
        counts: dict[str, int] = {name: 0 for name in COUNTS}
        relations, tags, arcs, features = _Names(), _Names(), _ArcColumns(), FeatureColumns(self.features)
        columns: dict[str, list[Any]] = {name: [] for name in ("parents", "relations", "tags", *self._places())}
        constituents: list[IntArray] = []
        for row, (text, parse) in enumerate(self._of_rows(rows)):
            tree, places = self._project(text, parse, rows, row, counts)
            columns["parents"].append(tree.parents)
            columns["relations"].append(relations.number(tree.relations))
            columns["tags"].append(tags.number(tree.tags or ["_"] * len(tree)))
            for name, values in zip(self._places(), places, strict=True):
                columns[name].append(values)
            arcs.add(tree)
            if tree.constituents is not None:
                constituents.append(tree.constituents)
            features.add(tree)
        assert len(columns["parents"]) == len(rows.lines), (len(columns["parents"]), rows.shard)
        used = np.fromiter(chain.from_iterable(columns["relations"]), dtype=np.int64)
        facts = {
            "relations": list(relations.numbers),
            "relation_counts": np.bincount(used, minlength=len(relations.numbers)).tolist(),
            "tags": list(tags.numbers),
            "counts": counts,
            "arcs": None if arcs.missing else list(arcs.names.numbers),
            "arc_mass": arcs.mass(),
        }
        # a word's number is below the length of its row, and relations and tags are few
        table = {name: lists(each, _smallest(max(map(len, each), default=0))) for name, each in columns.items()}
        if self.whole:
            table |= {name: lists(columns[name], np.int32) for name in self._places()}
            table["before"] = pa.array(rows.before, type=pa.int8())
            facts["whole"] = True
        if self.constituents:
            table |= constituent_columns(constituents)
        if self.features:
            facts["features"] = features.facts()
        return table_bytes(table | arcs.stored() | features.stored(), facts)

    def _places(self) -> tuple[str, ...]:
        return ("starts", "ends") if self.whole else ("word_of",)

    def _of_rows(self, rows: ShardRows) -> Iterator[tuple[str, Parse]]:
        kept = np.zeros(len(rows.trees), dtype=bool)
        kept[rows.lines] = True
        return compress(map(self._read, rows.trees), kept.tolist())

    def _read(self, tree: UnreadParse) -> tuple[str, Parse]:
        parse = tree.parse(where=str(self.parses))
        if self.arcs and parse.arcs is None and len(parse):
            raise without_arcs(f"the tree of line {tree.line}", str(self.parses))
        if self.constituents and parse.constituents is None:
            if len(parse):
                raise without_constituents(f"the tree of line {tree.line}", str(self.parses))
            parse = replace(parse, constituents=ordered(()))
        return tree.text, parse

    def _project(
        self, text: str, parse: Parse, rows: ShardRows, row: int, counts: dict[str, int]
    ) -> tuple[Parse, tuple[IntArray, ...]]:
        before, pieces = rows.before[row], self.vocabulary.encode(text)
        ids = rows.ids[row][before:]
        if not np.array_equal(pieces.ids[: len(ids)], ids):
            raise SynmtError(
                f"the text has changed since it was prepared: row {row} has other pieces",
                where=str(rows.shard),
                do="Run `synmt prepare` again",
            )
        # if a side was truncated, the words after its end own no piece
        spans = pieces.spans[: len(ids)]
        owners = word_of(spans, parse.spans)
        merged, after = merge_unowned(parse, spans, owners)
        _count(counts, text, spans, parse, merged)
        if self.whole:
            # BPE dropout is for these vocabularies only
            assert isinstance(self.vocabulary, SentencePieces)
            return parse, tuple(before + _in_symbols(parse.spans, self.vocabulary.encode_symbols(text).spans).T)
        return merged, (np.append(np.full(before, -1), after),)


def _in_symbols(words: IntArray, symbols: IntArray) -> IntArray:
    """Count the positions of words (W, 2) in symbols, whose spans are (N, 2): [start, end), (W, 2).

    `word_of` and `merge_unowned` compare the start of a piece with the ends of words, and the end of a piece with the
    starts of words. A piece is a sequence of symbols, so these comparisons give the same results in symbols.
    """
    starts = np.searchsorted(symbols[:, 1], words[:, 0], side="right")
    ends = np.searchsorted(symbols[:, 0], words[:, 1], side="left")
    return np.stack((starts, ends), axis=1)


@dataclass
class _Names:
    """Numbers strings in the order of their first occurrence."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, names: list[str]) -> list[int]:
        """Return the numbers of names; a new name gets the next number."""
        return [self.numbers.setdefault(name, len(self.numbers)) for name in names]


@dataclass
class _ArcColumns:
    """The probabilities of arcs of one shard; if one sentence lacks them, the shard stores none."""

    names: _Names = field(default_factory=_Names)
    rows: list[Arcs] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    missing: bool = False

    def add(self, parse: Parse) -> None:
        """Append the arcs of the next sentence."""
        self.words.append(len(parse))
        if parse.arcs is not None:
            numbers = np.array(self.names.number(list(parse.arcs.names)), dtype=np.int64)
            self.rows.append(replace(parse.arcs, relations=numbers[parse.arcs.relations]))
        elif len(parse):
            self.missing = True
        else:
            self.rows.append(_NO_ARCS)

    def mass(self) -> dict[str, float]:
        """Sum the probabilities of each relation, which is its expected number of arcs."""
        rows = self.rows or [_NO_ARCS]
        relations, values = (
            np.concatenate([getattr(r, name) for r in rows]) for name in ("relations", "probabilities")
        )
        sums = np.bincount(relations, weights=values, minlength=len(self.names.numbers))
        return dict(zip(self.names.numbers, sums.tolist(), strict=True))

    def stored(self) -> dict[str, Any]:
        if self.missing:
            return {}
        counts = [np.bincount(row.words, minlength=words) for row, words in zip(self.rows, self.words, strict=True)]
        columns = {
            "counts": counts,
            "parents": [row.parents for row in self.rows],
            "relations": [row.relations for row in self.rows],
            "probabilities": [shares(row) for row in self.rows],
        }
        return {f"arc_{name}": lists(rows, _smallest_unsigned(rows)) for name, rows in columns.items()}


_NONE = np.zeros(0, dtype=np.int64)
_NO_ARCS = Arcs(_NONE, _NONE, _NONE, np.zeros(0, dtype=np.float32), ())


def _count(counts: dict[str, int], text: str, spans: IntArray, parse: Parse, merged: Parse) -> None:
    counts["words"] += len(parse)
    counts["pieces"] += len(spans)
    counts["straddling"] += int(straddles(spans, parse.spans).sum())
    counts["merged"] += len(parse) - len(merged)
    bare = ~(_covered(spans, len(text)) & _covered(parse.spans, len(text)))  # (characters,)
    counts["unowned"] += sum(not text[place].isspace() for place in np.flatnonzero(bare).tolist())
    counts["characters"] += len("".join(text.split()))


def _covered(spans: IntArray, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Mark the characters that are in a span: (length,)."""
    opened = np.bincount(spans[:, 0], minlength=length + 1)  # (length + 1,)
    closed = np.bincount(spans[:, 1], minlength=length + 1)  # (length + 1,)
    return np.cumsum(opened - closed)[:length] > 0


def _smallest_unsigned(rows: list[IntArray]) -> type[np.unsignedinteger]:
    largest = max((int(row.max()) for row in rows if len(row)), default=0)
    return np.uint8 if largest < 2**8 else np.uint16 if largest < 2**16 else np.uint32


def _smallest(longest: int) -> type[np.signedinteger]:
    return np.int16 if longest < 2**15 else np.int32
