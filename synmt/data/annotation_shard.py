"""Makes one shard of an annotation: trees, the word of each piece, probabilities of arcs, and
counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.data.arrow import Lists
from synmt.data.stored_trees import TreeColumns
from synmt.data.vocabulary import SentencePieces, Vocabulary, straddles, word_of
from synmt.errors import SynmtError
from synmt.syntax.arcs import without_arcs
from synmt.syntax.conllu import UnreadParse
from synmt.syntax.constituents import ordered, without_constituents
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Parse

COUNTS = ("words", "pieces", "straddling", "characters", "unowned", "merged")
"""Counts for the summary; `unowned` characters are in no piece or no word, `merged` words own no
piece."""


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
    whole: make trees that fit every segmentation: none of their words is merged, and their
        positions count symbols.
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
        columns = TreeColumns(
            whole=self.whole, constituents=self.constituents, features=self.features
        )
        counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        for row, (text, parse) in enumerate(self._of_rows(rows)):
            before = rows.before[row]
            spans = self._spans(text, rows, row)
            owners = word_of(spans, parse.spans)
            merged, after = merge_unowned(parse, spans, owners)
            _count(counts, text, spans, parse, merged)
            if self.whole:
                starts, ends = self._in_symbols(text, parse.spans)
                columns.add(
                    parse, {"starts": before + starts, "ends": before + ends, "before": before}
                )
            else:
                columns.add(merged, {"word_of": np.append(np.full(before, -1), after)})
        assert len(columns) == len(rows.lines), (len(columns), rows.shard)
        return columns.to_bytes(counts)

    def _of_rows(self, rows: ShardRows) -> Iterator[tuple[str, Parse]]:
        kept = np.isin(np.arange(len(rows.trees)), rows.lines)
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

    def _spans(self, text: str, rows: ShardRows, row: int) -> IntArray:
        """Find the characters of the pieces of a row: (T, 2); if a side was truncated, only of
        those that are left."""
        pieces, ids = self.vocabulary.encode(text), rows.ids[row][rows.before[row] :]
        if not np.array_equal(pieces.ids[: len(ids)], ids):
            raise SynmtError(
                f"the text has changed since it was prepared: row {row} has other pieces",
                where=str(rows.shard),
                do="Run `synmt prepare` again",
            )
        return pieces.spans[: len(ids)]

    def _in_symbols(self, text: str, words: IntArray) -> tuple[IntArray, IntArray]:
        """Count the positions of words (W, 2) in the symbols of a text: the first of each word, the
        one after its last.

        `word_of` and `merge_unowned` compare the start of a piece with the ends of words, and the
        end of a piece with the starts of words. A piece is a sequence of symbols, so these
        comparisons give the same results in symbols.
        """
        # BPE dropout is for these vocabularies only
        assert isinstance(self.vocabulary, SentencePieces)
        symbols = self.vocabulary.encode_symbols(text).spans  # (N, 2)
        starts = np.searchsorted(symbols[:, 1], words[:, 0], side="right")
        return starts, np.searchsorted(symbols[:, 0], words[:, 1], side="left")


def _count(counts: dict[str, int], text: str, spans: IntArray, parse: Parse, merged: Parse) -> None:
    counts["words"] += len(parse)
    counts["pieces"] += len(spans)
    counts["straddling"] += int(straddles(spans, parse.spans).sum())
    counts["merged"] += len(parse) - len(merged)
    bare = ~(_covered(spans, len(text)) & _covered(parse.spans, len(text)))  # (characters,)
    counts["unowned"] += sum(not text[place].isspace() for place in np.flatnonzero(bare).tolist())
    counts["characters"] += len("".join(text.split()))


def _covered(spans: IntArray, length: int) -> BoolArray:
    """Mark the characters that are in a span: (length,)."""
    opened = np.bincount(spans[:, 0], minlength=length + 1)  # (length + 1,)
    closed = np.bincount(spans[:, 1], minlength=length + 1)  # (length + 1,)
    return np.cumsum(opened - closed)[:length] > 0
