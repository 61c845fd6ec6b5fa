"""The prepared corpus on disk: pieces of both sides, and beside them what parsers said of a side.

corpus.json                         format, languages, filters, counts; written last
vocabulary.model                    or source.model and target.model; `.words` for whole words
train-00000.arrow, valid-00000.arrow, …
                                    rows: line, source pieces, target pieces, without BOS and EOS
parse-source-1a2b3c4d5e6f/          an annotation: the same rows in the same files
    annotation.json                 parser, relations, counts; written last
    train-00000.arrow, …            rows: parents, relations, tags, word_of; with probabilities of arcs also
                                    arc_words, arc_parents, arc_relations, arc_probabilities
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from synmt.arrays import IntArray, Side
from synmt.data.arrow import Lists, Table
from synmt.data.vocabulary import IdArray, Vocabulary
from synmt.errors import SynmtError
from synmt.syntax.parse import Arcs, Parse

FORMAT = 2


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of one side of a pair.

    parse: its words are empty strings without a place where it comes from a prepared corpus.
    word_of: the word that each piece belongs to, (T,); -1 for a piece without a word.
    """

    parse: Parse
    word_of: IntArray


@dataclass(frozen=True, eq=False)
class Example:
    """A sentence pair as the model sees it.

    line: its line in the text, counted from 0.
    source, target: pieces without BOS and EOS, (T,); views of the file, not to be written to.
    trees: of the sides that were asked for.
    """

    line: int
    source: IdArray
    target: IdArray
    trees: Mapping[Side, Tree] = field(default_factory=dict)


class PreparedCorpus:
    """A complete prepared corpus."""

    def __init__(self, folder: Path, facts: dict[str, Any]) -> None:
        self.folder, self.facts = folder, facts

    @classmethod
    def open(cls, folder: Path) -> PreparedCorpus:
        """Open a folder that `synmt prepare` has finished; raises SynmtError for any other."""
        return cls(folder, _read_json(folder / "corpus.json"))

    @cached_property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """Source and target; one and the same where the vocabulary is joint."""
        names = self.facts["vocabularies"]
        source = Vocabulary.load(self.folder, names["source"])
        if names["source"] == names["target"]:
            return source, source
        return source, Vocabulary.load(self.folder, names["target"])

    def annotations(self) -> dict[str, dict[str, Any]]:
        """Give every complete annotation by name: side, parser, relations, statistics."""
        found = sorted(self.folder.glob("parse-*/annotation.json"))
        return {path.parent.name: _read_json(path) for path in found}

    def split(self, name: str, trees: Mapping[Side, str] | None = None) -> Split:
        """Give the rows of `train` or `valid`, with the trees of an annotation for each side."""
        for annotation in (trees or {}).values():
            if not (self.folder / annotation / "annotation.json").is_file():
                names = ", ".join(self.annotations()) or "none"
                raise SynmtError(
                    f"the corpus was prepared without the parses {annotation}",
                    where=str(self.folder),
                    allowed=f"It has: {names}",
                    do="Run `synmt prepare` again",
                )
        return Split(self.folder, name, self.facts["splits"][name]["shards"], dict(trees or {}))


def is_complete(folder: Path) -> bool:
    """Tell whether a folder is a finished prepared corpus of this version."""
    try:
        _read_json(folder / "corpus.json")
    except SynmtError:
        return False
    return True


class _Arcs(NamedTuple):
    """The columns of one shard that hold the probabilities of arcs."""

    words: Lists
    parents: Lists
    relations: Lists
    probabilities: Lists
    names: tuple[str, ...]


class _Trees(NamedTuple):
    """The columns of one shard of an annotation."""

    parents: Lists
    relations: Lists
    tags: Lists
    word_of: Lists
    relation_names: npt.NDArray[np.object_]
    tag_names: npt.NDArray[np.object_]
    arcs: _Arcs | None


class Split:
    """The rows of one split, read from the mapped files as they are asked for."""

    def __init__(self, folder: Path, name: str, shards: int, annotations: dict[Side, str]) -> None:
        self._place = (folder, name, shards, annotations)
        tables = [Table(folder / shard_name(name, shard)) for shard in range(shards)]
        self._starts = np.cumsum([0, *map(len, tables)])  # (shards + 1,)
        self._columns = [(t.numbers("line"), t.lists("source"), t.lists("target")) for t in tables]
        self._trees: dict[Side, list[_Trees]] = {
            side: [_open_trees(folder / annotation / table.path.name, len(table)) for table in tables]
            for side, annotation in annotations.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # another process maps the files again
        return Split, self._place

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def source_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces of each source, without EOS: (N,)."""
        return np.concatenate([source.lengths for _, source, _ in self._columns])

    @cached_property
    def target_lengths(self) -> npt.NDArray[np.int32]:
        """Pieces of each target, without EOS: (N,)."""
        return np.concatenate([target.lengths for _, _, target in self._columns])

    def rows(self, indices: IntArray | Sequence[int]) -> list[Example]:
        """Read the rows of these numbers, in this order."""
        wanted = np.asarray(indices, dtype=np.int64)
        if len(wanted) and not 0 <= wanted.min() <= wanted.max() < len(self):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} of {len(self)}")
        shards = np.searchsorted(self._starts, wanted, side="right") - 1
        inside = wanted - self._starts[shards]
        return [self._row(*place) for place in zip(shards.tolist(), inside.tolist(), strict=True)]

    def _row(self, shard: int, row: int) -> Example:
        lines, source, target = self._columns[shard]
        trees: dict[Side, Tree] = {side: _tree(shards[shard], row) for side, shards in self._trees.items()}
        return Example(int(lines[row]), source[row], target[row], trees)


def shard_name(split: str, shard: int) -> str:
    """Name one of the files of a split."""
    return f"{split}-{shard:05d}.arrow"


def _tree(trees: _Trees, row: int) -> Tree:
    parents = trees.parents[row].astype(np.int64)
    parse = Parse(
        words=[""] * len(parents),
        spans=np.zeros((len(parents), 2), dtype=np.int64),
        parents=parents,
        relations=trees.relation_names[trees.relations[row]].tolist(),
        tags=trees.tag_names[trees.tags[row]].tolist(),
        arcs=_row_of_arcs(trees.arcs, row) if trees.arcs else None,
    )
    return Tree(parse, trees.word_of[row].astype(np.int64))


def _row_of_arcs(arcs: _Arcs, row: int) -> Arcs:
    words, parents, relations = (column[row].astype(np.int64) for column in arcs[:3])
    return Arcs(words, parents, relations, arcs.probabilities[row], arcs.names)


def _open_trees(path: Path, rows: int) -> _Trees:
    table = Table(path)
    if len(table) != rows:
        raise SynmtError(f"has {len(table)} rows, the text beside it {rows}", where=str(path), do="Prepare again")
    arcs = None
    if table.facts["arcs"] is not None:
        arcs = _Arcs(*(table.lists(f"arc_{name}") for name in _Arcs._fields[:-1]), names=tuple(table.facts["arcs"]))
    return _Trees(
        *(table.lists(name) for name in ("parents", "relations", "tags", "word_of")),
        relation_names=np.array(table.facts["relations"], dtype=object),
        tag_names=np.array(table.facts["tags"], dtype=object),
        arcs=arcs,
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SynmtError(
            "this is no finished prepared corpus", where=str(path.parent), do="Run `synmt prepare` with its recipe"
        ) from None
    except (OSError, ValueError) as error:
        raise SynmtError(
            f"cannot be read ({error})", where=str(path), do="Remove the folder, and prepare again"
        ) from None
    if facts.get("format") != FORMAT:
        raise SynmtError(
            f"prepared in format {facts.get('format')}",
            where=str(path),
            allowed=f"This synmt reads format {FORMAT}",
            do="Prepare again into another folder",
        )
    return facts
