"""The trees of a prepared corpus, read from the columns of one shard of an annotation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synmt.arrays import Array, IntArray
from synmt.data.arrow import ArrowTable, Lists
from synmt.data.stored_arcs import StoredArcs, open_arcs
from synmt.data.stored_constituents import StoredConstituents, open_constituents
from synmt.data.stored_features import StoredFeatures, open_features
from synmt.data.vocabulary import word_of
from synmt.errors import SynmtError
from synmt.files.schemas import TreeFacts
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Parse


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


class StoredTrees(NamedTuple):
    """The columns of one shard.

    features: numbers and values of each, if systems read them.
    word_of: None for trees that fit every segmentation, which have starts, ends and before.
    """

    parents: Lists
    relations: Lists
    tags: Lists
    relation_names: npt.NDArray[np.object_]
    tag_names: npt.NDArray[np.object_]
    arcs: StoredArcs | None
    features: StoredFeatures
    word_of: Lists | None
    places: tuple[Lists, Lists, Array] | None
    constituents: StoredConstituents | None = None

    def tree(self, row: int) -> Tree | WholeTree:
        """Read the tree of a row."""
        if self.places is not None:
            starts, ends, before = self.places
            spans = np.stack((starts[row], ends[row]), axis=1).astype(np.int64)
            return WholeTree(self._parse(row, spans), int(before[row]))
        assert self.word_of is not None
        spans = np.zeros((len(self.parents[row]), 2), dtype=np.int64)
        return Tree(self._parse(row, spans), self.word_of[row].astype(np.int64))

    def _parse(self, row: int, spans: IntArray) -> Parse:
        parents = self.parents[row].astype(np.int64)
        return Parse(
            words=[""] * len(parents),
            spans=spans,
            parents=parents,
            relations=self.relation_names[self.relations[row]].tolist(),
            tags=self.tag_names[self.tags[row]].tolist(),
            arcs=self.arcs.row(row) if self.arcs else None,
            constituents=self.constituents.row(row) if self.constituents else None,
            features={name: values[numbers[row]].tolist() for name, (numbers, values) in self.features.items()},
        )


def open_trees(path: Path, rows: int) -> StoredTrees:
    """Open one shard of an annotation; `rows` is the number of rows of its text."""
    table = ArrowTable(path, TreeFacts)
    if len(table) != rows:
        raise SynmtError(f"has {len(table)} rows, but its text has {rows}", where=str(path), do="Prepare again")
    whole = table.facts.get("whole", False)
    return StoredTrees(
        *(table.lists(name) for name in ("parents", "relations", "tags")),
        relation_names=np.array(table.facts["relations"], dtype=object),
        tag_names=np.array(table.facts["tags"], dtype=object),
        arcs=open_arcs(table),
        features=open_features(table),
        word_of=None if whole else table.lists("word_of"),
        places=(table.lists("starts"), table.lists("ends"), table.numbers("before")) if whole else None,
        constituents=open_constituents(table),
    )
