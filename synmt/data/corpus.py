"""The prepared corpus on disk: the pieces of both sides, and annotations with the trees of a side.

corpus.json                         format, languages, filters, counts; written last
checksums.sha256                    of all these files
vocabulary.model                    or source.model and target.model; `.words` for a vocabulary of
                                    words
train-00000.arrow, valid-00000.arrow, …
                                    columns: line, source pieces, target pieces, without BOS and EOS
parse-source-1a2b3c4d5e6f/          an annotation: the trees of the same rows, in files of the same
                                    names
    annotation.json                 parser, relations, counts; written last
    checksums.sha256                of the files in this folder
    train-00000.arrow, …            see stored_trees.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from synmt.arrays import Array, Side
from synmt.data.arrow import ArrowTable
from synmt.data.stored_trees import StoredTrees, Tree, WholeTree
from synmt.data.vocabulary import IdArray, Vocabulary
from synmt.errors import SynmtError
from synmt.files.checksums import verify
from synmt.files.json_files import read_cached_json, read_json
from synmt.files.schemas import AnnotationFacts, PreparedFacts, Versioned

T = TypeVar("T")

FORMAT = 2


@dataclass(frozen=True, eq=False)
class Example:
    """A sentence pair in pieces.

    line: its line in the text, counted from 0.
    source, target: pieces without BOS and EOS, (T,); read-only views of the file.
    trees: of the sides that the model reads; whole ones are for BPE dropout, which fits them to
        pieces.
    """

    line: int
    source: IdArray
    target: IdArray
    trees: Mapping[Side, Tree | WholeTree] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PreparedCorpus:
    """A complete prepared corpus."""

    folder: Path
    facts: PreparedFacts

    @classmethod
    def open(cls, folder: Path) -> PreparedCorpus:
        """Open a complete prepared corpus; raises SynmtError for any other folder."""
        facts = _read_facts(folder / "corpus.json", PreparedFacts)
        verify(folder)
        return cls(folder, facts)

    @cached_property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of source and target; the same object if the vocabulary is joint."""
        names = self.facts["vocabularies"]
        source = Vocabulary.load(self.folder, names["source"])
        if names["source"] == names["target"]:
            return source, source
        return source, Vocabulary.load(self.folder, names["target"])

    def annotations(self) -> dict[str, AnnotationFacts]:
        """Return all complete annotations by name: side, parser, relations, statistics."""
        return {
            path.parent.name: _read_facts(path, AnnotationFacts)
            for path in sorted(self.folder.glob("parse-*/annotation.json"))
        }

    def split(self, name: str, trees: Mapping[Side, str] | None = None) -> Split:
        """Return the rows of `train` or `valid`; `trees` names the annotation of each side that
        needs one."""
        return Split(self.folder, name, self.facts["splits"][name]["shards"], trees or {})


def is_complete(folder: Path) -> bool:
    """Return whether a folder is a complete prepared corpus in this format."""
    return _is_current(folder / "corpus.json")


def _is_current(path: Path) -> bool:
    stored = read_cached_json(path, Versioned)
    return stored is not None and stored["format"] == FORMAT


class Split:
    """The rows of one split, read from the memory-mapped files on demand."""

    def __init__(
        self, folder: Path, name: str, shards: int, annotations: Mapping[Side, str]
    ) -> None:
        tables = [ArrowTable(folder / shard_name(name, shard)) for shard in range(shards)]
        self._starts = np.cumsum([0, *map(len, tables)])  # (shards + 1,)
        self._columns = [(t.numbers("line"), t.lists("source"), t.lists("target")) for t in tables]
        self._trees: dict[Side, list[StoredTrees]] = {
            side: [StoredTrees(folder / annotation / table.path.name) for table in tables]
            for side, annotation in annotations.items()
        }

    def __len__(self) -> int:
        return int(self._starts[-1])

    @cached_property
    def lines(self) -> npt.NDArray[np.int64]:
        """The line of each row in the text, ascending, counted from 0: (N,)."""
        return np.concatenate([lines for lines, _, _ in self._columns])

    def lengths(self) -> npt.NDArray[np.uint16]:
        """Count the pieces of source and target with EOS: (N, 2)."""
        columns = [
            np.stack((source.lengths, target.lengths), 1) for _, source, target in self._columns
        ]
        lengths = np.concatenate(columns) + 1  # (N, 2)
        assert lengths.max(initial=0) < 2**16
        return lengths.astype(np.uint16)

    def rows(self, indices: Array | Sequence[int]) -> list[Example]:
        """Read the rows with these numbers, in this order."""
        numbers = np.asarray(indices, dtype=np.int64)
        shards = np.searchsorted(self._starts, numbers, side="right") - 1
        rows = numbers - self._starts[shards]
        examples: list[Example] = []
        for shard, row in zip(shards.tolist(), rows.tolist(), strict=True):
            lines, source, target = self._columns[shard]
            trees: dict[Side, Tree | WholeTree] = {
                side: stored[shard].tree(row) for side, stored in self._trees.items()
            }
            examples.append(Example(int(lines[row]), source[row], target[row], trees))
        return examples


def shard_name(split: str, shard: int) -> str:
    """Name the file of a shard."""
    return f"{split}-{shard:05d}.arrow"


def _read_facts(path: Path, schema: type[T]) -> T:
    do = "Run `synmt prepare` with its recipe, after removing the folder"
    if not _is_current(path):
        raise SynmtError(
            f"not a complete prepared corpus in format {FORMAT}", where=path.parent, do=do
        )
    return read_json(path, schema, do=do)
