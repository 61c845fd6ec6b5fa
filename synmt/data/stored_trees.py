"""The trees of one shard of an annotation as columns of numbers, written here and read here.

parents, relations, tags            lists of each row; relations, tags and features are numbers of
                                    names among the facts
word_of                             the word of each piece; trees that fit every segmentation have
                                    starts and ends of their words, and `before`, in its place
constituent_starts, constituent_ends    the first word of each constituent, and the word after its
                                        last one
arc_counts                          the number of arcs of each word
arc_parents, arc_relations, arc_probabilities
                                    of each arc, probabilities in 65,535ths: four bytes an arc in
                                    most corpora
case, lemma, fine_tag, morphology, scenes
                                    where a system reads them

Older corpora have arc_words, the word of each arc, in place of the counts, and probabilities in
float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from synmt.arrays import IntArray, Texts
from synmt.data.arrow import ArrowTable, lists, table_bytes
from synmt.data.vocabulary import word_of
from synmt.files.schemas import TreeFacts
from synmt.syntax.feature_signals import cases_of
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Arcs, Parse

_TREE, _CONSTITUENTS = ("parents", "relations", "tags"), ("constituent_starts", "constituent_ends")
_PLACES = {True: ("starts", "ends"), False: ("word_of",)}
"""The columns that link words and pieces: of whole trees, and of others."""
_ARCS = ("arc_parents", "arc_relations", "arc_probabilities")
_WHOLE = 2**16 - 1
_NONE = np.zeros(0, dtype=np.int64)
_NO_ARCS = Arcs(_NONE, _NONE, _NONE, np.zeros(0, dtype=np.float32), ())


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of one side of a pair.

    parse: from a prepared corpus, its words are empty strings and its spans are zero.
    word_of: the word that each piece belongs to, (T,); -1 for a piece without a word.
    key: what a random control depends on; None for the pieces.
    """

    parse: Parse
    word_of: IntArray
    key: bytes | None = None


@dataclass(frozen=True, eq=False)
class WholeTree:
    """The tree of one side that fits every segmentation into pieces: no word is merged yet.

    parse: its spans (W, 2) count the symbols of the text, the smallest pieces, and not characters.
    before: number of pieces before the text, which belong to no word: its tag.
    """

    parse: Parse
    before: int

    def on(self, spans: IntArray) -> Tree:
        """Fit the tree to pieces, whose spans (T, 2) count symbols."""
        owners = word_of(spans, self.parse.spans)
        owners[: self.before] = -1
        return Tree(*merge_unowned(self.parse, spans, owners))


class StoredTrees:
    """The trees of one shard, read row by row."""

    def __init__(self, path: Path) -> None:
        table = ArrowTable(path, TreeFacts)
        facts, whole = table.facts, table.facts.get("whole", False)
        features = facts.get("features", {})
        self._before = table.numbers("before") if whole else None
        self._features, self._arc_names = list(features), facts["arcs"]
        columns = [*_TREE, *_PLACES[whole], *features]
        columns += _ARCS if self._arc_names is not None else ()
        columns += filter(table.has, ("arc_words", "arc_counts", *_CONSTITUENTS))
        self._columns = {name: table.lists(name) for name in columns}
        names = {"relations": facts["relations"], "tags": facts["tags"]}
        names |= {name: of_feature["values"] for name, of_feature in features.items()}
        self._names = {name: np.array(values, dtype=object) for name, values in names.items()}

    def tree(self, row: int) -> Tree | WholeTree:
        """Read the tree of a row."""
        parents = self._numbers("parents", row)
        spans = np.zeros((len(parents), 2), dtype=np.int64)
        if self._before is not None:
            spans = self._spans(_PLACES[True], row)
        parse = Parse(
            words=[""] * len(parents),
            spans=spans,
            parents=parents,
            relations=self._strings("relations", row),
            tags=self._strings("tags", row),
            arcs=None if self._arc_names is None else self._arcs(row, self._arc_names),
            constituents=self._spans(_CONSTITUENTS, row)
            if _CONSTITUENTS[0] in self._columns
            else None,
            features={name: self._strings(name, row) for name in self._features},
        )
        if self._before is None:
            return Tree(parse, self._numbers("word_of", row))
        return WholeTree(parse, int(self._before[row]))

    def _arcs(self, row: int, names: Texts) -> Arcs:
        probabilities = self._columns["arc_probabilities"][row]
        if "arc_words" in self._columns:
            words = self._numbers("arc_words", row)
        else:
            counts = self._columns["arc_counts"][row]  # (W,)
            words = np.repeat(np.arange(len(counts)), counts)  # (N,)
            probabilities = (probabilities / _WHOLE).astype(np.float32)
        return Arcs(
            words,
            self._numbers("arc_parents", row),
            self._numbers("arc_relations", row),
            probabilities,
            tuple(names),
        )

    def _numbers(self, column: str, row: int) -> IntArray:
        return self._columns[column][row].astype(np.int64)

    def _spans(self, columns: Texts, row: int) -> IntArray:
        return np.stack([self._numbers(column, row) for column in columns], axis=1)

    def _strings(self, column: str, row: int) -> list[str]:
        return self._names[column][self._columns[column][row]].tolist()


class TreeColumns:
    """Collects the trees of the rows of one shard; names are numbered in the order of their first
    occurrence.

    If one tree lacks probabilities of arcs, none are stored.

    features: some of feature_signals.STORED.
    """

    def __init__(self, *, whole: bool, constituents: bool, features: Texts) -> None:
        self._whole, self._constituents, self._features = whole, constituents, features
        self._has_arcs = True
        places = (*_PLACES[whole], *("before",) * whole, *_CONSTITUENTS * constituents)
        self._rows: dict[str, list[Any]] = {
            name: [] for name in (*_TREE, *places, "arc_counts", *_ARCS, *features)
        }
        self._names: dict[str, dict[str, int]] = {
            name: {} for name in ("relations", "tags", "arc_relations", *features)
        }

    def add(self, tree: Parse, places: Mapping[str, IntArray | int]) -> None:
        """Append the tree of the next row, and what links its words and pieces."""
        unknown = ["_"] * len(tree)
        row = {"parents": tree.parents, **places}
        if self._constituents:
            assert tree.constituents is not None
            row |= zip(_CONSTITUENTS, tree.constituents.T, strict=True)
        names = {"relations": tree.relations, "tags": tree.tags or unknown}
        for name in self._features:
            names[name] = cases_of(tree) if name == "case" else tree.features.get(name) or unknown
        row |= {name: self._numbered(name, values) for name, values in names.items()}
        arcs = tree.arcs or _NO_ARCS
        self._has_arcs &= tree.arcs is not None or not len(tree)
        row["arc_counts"] = np.bincount(arcs.words, minlength=len(tree))
        row["arc_parents"] = arcs.parents
        row["arc_relations"] = self._numbered("arc_relations", arcs.names)[arcs.relations]
        row["arc_probabilities"] = shares(arcs)
        for name, values in self._rows.items():
            values.append(row[name])

    def _numbered(self, column: str, names: Texts) -> IntArray:
        numbers = self._names[column]
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)

    def to_bytes(self, counts: Mapping[str, int]) -> bytes:
        """Make the file of the shard; `counts` are added to its facts."""
        names = {column: list(numbers) for column, numbers in self._names.items()}
        facts = {
            "relations": names["relations"],
            "tags": names["tags"],
            "relation_counts": self._totals("relations"),
            "counts": counts,
            "arcs": names["arc_relations"] if self._has_arcs else None,
            "whole": self._whole,
            "features": {
                name: {"values": names[name], "counts": self._totals(name)}
                for name in self._features
            },
        }
        columns = {
            name: pa.array(rows, type=pa.int8()) if name == "before" else lists(rows)
            for name, rows in self._rows.items()
            if self._has_arcs or name not in ("arc_counts", *_ARCS)
        }
        return table_bytes(columns, facts)

    def _totals(self, column: str) -> list[int]:
        """Count how often each name occurs."""
        numbers = np.concatenate([_NONE, *self._rows[column]])
        return np.bincount(numbers, minlength=len(self._names[column])).tolist()


def shares(arcs: Arcs) -> IntArray:
    """Round probabilities to 65,535ths: (N,).

    Each is off by less than one of them, and the sum of a word by half: sums are rounded, not
    single probabilities, so that a word does not gain or lose what the rounding of many arcs adds
    up to.
    """
    sums = np.cumsum(arcs.probabilities, dtype=np.float64)  # (N,) over all words
    first = np.searchsorted(arcs.words, arcs.words)  # (N,) the first arc of the same word
    before = np.append(0.0, sums)[first]  # (N,) sum over the words before
    rounded = np.rint((sums - before) * _WHOLE).astype(np.int64)  # (N,)
    steps = np.diff(rounded, prepend=0)  # (N,)
    starts = first == np.arange(len(first))
    return np.where(starts, rounded, steps)
