"""Trees beside a prepared corpus: row by row, with the word that each piece belongs to.

The text is prepared without a parser; each parser's trees are an annotation of their own beside it, so that one
prepared corpus serves every variant and every parser.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, compress, islice, tee
from pathlib import Path
from typing import Any

import numpy as np

from synmt.corpora import Corpus
from synmt.corpus import FORMAT, SIDES, PreparedCorpus, Side, shard_name
from synmt.encoding import SHARD_LINES, Progress, remaining_shards, remove_unfinished
from synmt.errors import SynmtError
from synmt.files import fingerprint, locked, read_lines, saying_what_failed, sha256, write_atomically
from synmt.syntax.conllu import read_parses
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Arcs, IntArray, Parse
from synmt.syntax.pieces import Vocabulary, straddles, word_of
from synmt.tables import Table, lists, write_table

COUNTS = ("words", "pieces", "straddling", "characters", "unowned", "merged")
"""What is counted for people; `unowned` characters are in no piece or in no word, `merged` words own no piece."""


def annotation_name(side: Side, parser: Mapping[str, Any]) -> str:
    """Name the annotation of a side by a parser, which is described by values that fit into JSON."""
    return f"parse-{side}-{fingerprint(json.dumps(parser, sort_keys=True))}"


def describe_files(parses: Mapping[str, Path]) -> dict[str, Any]:
    """Describe trees that were given as CoNLL-U, in place of a parser."""
    return {"parser": "conllu", **{split: sha256(path) for split, path in sorted(parses.items())}}


def annotate(
    folder: Path,
    corpus: Corpus,
    parses: Mapping[str, Path],
    *,
    parser: Mapping[str, Any],
    side: Side = "source",
    arcs: bool = False,
) -> Iterator[Progress]:
    """Add trees to a prepared corpus, or go on with it: a CoNLL-U file for each of train and valid.

    The annotation is called `annotation_name(side, parser)`; nothing is done where it is complete.

    arcs: whether every tree must have probabilities of arcs.
    """
    prepared = PreparedCorpus.open(folder)
    place = folder / annotation_name(side, parser)
    if (place / "annotation.json").is_file():
        return
    with saying_what_failed(place):
        place.mkdir(exist_ok=True)
    with locked(place, "these trees"):
        remove_unfinished(place)
        for split, path in parses.items():
            text = getattr(corpus.splits()[split], side)
            trees = read_trees(text, path)
            yield from _annotate_split(prepared, place, split, side, _with_arcs(trees, path) if arcs else trees)
        _finish(prepared, place, side, parser, list(parses))


Line = tuple[str, Parse]


def read_trees(text: Path, parses: Path) -> Iterator[Line]:
    """Read the lines of a text with their trees."""
    lines, again = tee(read_lines(text))
    return zip(lines, read_parses(parses, again), strict=True)


def _with_arcs(trees: Iterator[Line], path: Path) -> Iterator[Line]:
    for number, (text, parse) in enumerate(trees, start=1):
        if parse.arcs is None and len(parse):
            raise SynmtError(
                f"the tree of line {number} has no probabilities of arcs, and a variant reads them",
                where=str(path),
                do="Parse the text again with `synmt parse --arcs`",
            )
        yield text, parse


def _annotate_split(
    prepared: PreparedCorpus, place: Path, split: str, side: Side, trees: Iterator[Line]
) -> Iterator[Progress]:
    lines = prepared.facts["splits"][split]["lines"]
    vocabulary = prepared.vocabularies[SIDES.index(side)]
    remaining = remaining_shards(place, split, lines)
    if not any(remaining):
        return
    for shard, wanted in enumerate(remaining):
        # the last shard takes all that is left: a tree too many shows only behind the last line
        chunk = islice(trees, SHARD_LINES) if shard + 1 < len(remaining) else trees
        if wanted:
            table = Table(prepared.folder / shard_name(split, shard))
            _Annotator(vocabulary, table, side).write(chunk, shard * SHARD_LINES, place)
        else:
            for _ in chunk:
                pass
        yield Progress(f"trees of {split}", min((shard + 1) * SHARD_LINES, lines), lines)


@dataclass
class _Names:
    """Strings by number, in the order in which they come."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, names: list[str]) -> list[int]:
        """Give the numbers of names; a new name gets the next one."""
        return [self.numbers.setdefault(name, len(self.numbers)) for name in names]


@dataclass
class _ArcColumns:
    """The probabilities of arcs of one shard; it has none at all where a sentence has none."""

    names: _Names = field(default_factory=_Names)
    rows: list[Arcs] = field(default_factory=list)
    missing: bool = False

    def add(self, parse: Parse) -> None:
        """Take the arcs of the next sentence."""
        if parse.arcs is not None:
            numbers = np.array(self.names.number(list(parse.arcs.names)), dtype=np.int64)
            self.rows.append(replace(parse.arcs, relations=numbers[parse.arcs.relations]))
        elif len(parse):
            self.missing = True
        else:
            self.rows.append(_NO_ARCS)

    def stored_names(self) -> list[str] | None:
        return None if self.missing else list(self.names.numbers)

    def mass(self) -> dict[str, float]:
        """Sum the probabilities of each relation, which is how many arcs it is expected to have."""
        sums = np.zeros(len(self.names.numbers))
        for row in self.rows:
            np.add.at(sums, row.relations, row.probabilities)
        return dict(zip(self.names.numbers, sums.tolist(), strict=True))

    def stored(self) -> dict[str, Any]:
        if self.missing:
            return {}
        kinds = {"words": np.int16, "parents": np.int16, "relations": np.int16, "probabilities": np.float32}
        return {f"arc_{name}": lists([getattr(row, name) for row in self.rows], k) for name, k in kinds.items()}


_NONE = np.zeros(0, dtype=np.int64)
_NO_ARCS = Arcs(_NONE, _NONE, _NONE, np.zeros(0, dtype=np.float32), ())


@dataclass(frozen=True)
class _Annotator:
    """Writes the trees of one shard; numbers of relations and tags hold within it."""

    vocabulary: Vocabulary
    table: Table
    side: Side

    def write(self, trees: Iterator[Line], first: int, place: Path) -> None:
        """Write the trees of the shard's rows; `first` is the line of the first tree."""
        counts: dict[str, int] = {name: 0 for name in COUNTS}
        relations, tags, arcs = _Names(), _Names(), _ArcColumns()
        columns: dict[str, list[Any]] = {name: [] for name in ("parents", "relations", "tags", "word_of")}
        for row, (text, parse) in enumerate(self._of_rows(trees, first)):
            merged, owners = self._project(text, parse, row, counts)
            columns["parents"].append(merged.parents)
            columns["relations"].append(relations.number(merged.relations))
            columns["tags"].append(tags.number(merged.tags or ["_"] * len(merged)))
            columns["word_of"].append(owners)
            arcs.add(merged)
        assert len(columns["parents"]) == len(self.table), (len(columns["parents"]), self.table.path)
        facts = {
            "relations": list(relations.numbers),
            "relation_counts": _occurrences(columns["relations"], len(relations.numbers)),
            "tags": list(tags.numbers),
            "counts": counts,
            "arcs": arcs.stored_names(),
            "arc_mass": arcs.mass(),
        }
        table = {name: lists(rows, _smallest(rows)) for name, rows in columns.items()}
        write_table(place / self.table.path.name, table | arcs.stored(), facts)

    def _of_rows(self, trees: Iterator[Line], first: int) -> Iterator[Line]:
        lines = self.table.numbers("line") - first
        wanted = np.zeros(SHARD_LINES, dtype=bool)
        wanted[lines] = True
        return compress(trees, wanted.tolist())

    def _project(self, text: str, parse: Parse, row: int, counts: dict[str, int]) -> tuple[Parse, IntArray]:
        pieces = self.vocabulary.encode(text)
        ids = self.table.lists(self.side)[row]
        if not np.array_equal(pieces.ids[: len(ids)], ids):
            raise SynmtError(
                f"the text has changed since it was prepared: row {row} has other pieces",
                where=str(self.table.path),
                do="Run `synmt prepare` again",
            )
        # of a side that was cut off, the words behind the cut own no piece
        spans = pieces.spans[: len(ids)]
        owners = word_of(spans, parse.spans)
        merged, after = merge_unowned(parse, spans, owners)
        _count(counts, text, spans, parse, merged)
        return merged, after


def _count(counts: dict[str, int], text: str, spans: IntArray, parse: Parse, merged: Parse) -> None:
    counts["words"] += len(parse)
    counts["pieces"] += len(spans)
    counts["straddling"] += int(straddles(spans, parse.spans).sum())
    counts["merged"] += len(parse) - len(merged)
    bare = ~(_covered(spans, len(text)) & _covered(parse.spans, len(text)))  # (characters,)
    counts["unowned"] += sum(not text[place].isspace() for place in np.flatnonzero(bare).tolist())
    counts["characters"] += len("".join(text.split()))


def _covered(spans: IntArray, length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell which characters are in a span: (length,)."""
    opened = np.bincount(spans[:, 0], minlength=length + 1)  # (length + 1,)
    closed = np.bincount(spans[:, 1], minlength=length + 1)  # (length + 1,)
    return np.cumsum(opened - closed)[:length] > 0


def _occurrences(rows: list[list[int]], names: int) -> list[int]:
    return np.bincount(np.fromiter(chain.from_iterable(rows), dtype=np.int64), minlength=names).tolist()


def _smallest(rows: list[Any]) -> type[np.signedinteger]:
    longest = max(map(len, rows), default=0)
    return np.int16 if longest < 2**15 else np.int32


def _finish(prepared: PreparedCorpus, place: Path, side: Side, parser: Mapping[str, Any], splits: list[str]) -> None:
    facts = {split: _shard_facts(prepared, place, split) for split in splits}
    every = [shard for shards in facts.values() for shard in shards]
    described = {
        "format": FORMAT,
        "side": side,
        "parser": dict(parser),
        "relations": {split: _relation_counts(shards) for split, shards in facts.items()},
        "arc_relations": {split: _expected_counts(shards) for split, shards in facts.items()},
        "arcs": all(shard["arcs"] is not None for shard in every),
        "tags": sorted({name for shard in every for name in shard["tags"]}),
        "counts": {
            split: {name: sum(shard["counts"][name] for shard in shards) for name in COUNTS}
            for split, shards in facts.items()
        },
    }
    with write_atomically(place / "annotation.json") as stream:
        json.dump(described, stream, indent=1, ensure_ascii=False, sort_keys=True)
        stream.write("\n")


def _relation_counts(shards: list[dict[str, Any]]) -> dict[str, int]:
    counts = Counter[str]()
    for shard in shards:
        counts.update(dict(zip(shard["relations"], shard["relation_counts"], strict=True)))
    return dict(sorted(counts.items()))


def _expected_counts(shards: list[dict[str, Any]]) -> dict[str, int]:
    sums = Counter[str]()
    for shard in shards:
        sums.update(shard["arc_mass"])
    return {name: round(mass) for name, mass in sorted(sums.items()) if round(mass)}


def _shard_facts(prepared: PreparedCorpus, place: Path, split: str) -> list[dict[str, Any]]:
    shards = prepared.facts["splits"][split]["shards"]
    return [Table(place / shard_name(split, shard)).facts for shard in range(shards)]
