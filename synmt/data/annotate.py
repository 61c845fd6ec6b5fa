"""Adds trees to a prepared corpus, row by row, with the word that each piece belongs to.

The text is prepared without a parser. The trees of each parser are a separate annotation, so that all variants and
parsers share one prepared corpus.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.corpora.parts import tags_of_lines
from synmt.corpora.resolve import Corpus
from synmt.data.annotation_shard import COUNTS, ShardAnnotator, ShardRows
from synmt.data.arrow import ArrowTable
from synmt.data.corpus import FORMAT, PreparedCorpus, shard_name
from synmt.data.encoding import missing_shards, remove_unfinished, write_shards
from synmt.data.stored_arcs import mean_mass
from synmt.files.checksums import write_last
from synmt.files.reading import fingerprint, read_lines, stored_sha256
from synmt.files.schemas import TreeFacts
from synmt.files.writing import locked
from synmt.syntax.conllu import UnreadParse, read_unparsed


def annotation_name(side: Side, parser: Mapping[str, Any]) -> str:
    """Name the annotation of a side; `parser` describes its parser by values that fit into JSON."""
    return f"parse-{side}-{fingerprint(json.dumps(parser, sort_keys=True))}"


def describe_files(parses: Mapping[str, Path]) -> dict[str, Any]:
    """Describe trees from CoNLL-U files, in place of a parser."""
    return {"parser": "conllu", **{split: stored_sha256(path) for split, path in sorted(parses.items())}}


def annotate(
    folder: Path,
    corpus: Corpus,
    parses: Mapping[str, Path],
    *,
    parser: Mapping[str, Any],
    side: Side = "source",
    arcs: bool = False,
    whole: bool = False,
    constituents: bool = False,
) -> None:
    """Add trees to a prepared corpus, or continue after an interruption; does nothing if the annotation is complete.

    The annotation is named `annotation_name(side, parser)`, and stores the `features` of words that `parser` lists.

    parses: the CoNLL-U files of train and valid.
    arcs: whether every tree must have probabilities of arcs.
    whole: whether the trees of train must fit every segmentation, for BPE dropout.
    constituents: whether every tree must have constituents, which are stored.
    """
    prepared = PreparedCorpus.open(folder)
    annotation = folder / annotation_name(side, parser)
    if (annotation / "annotation.json").is_file():
        return
    with locked(annotation, "these trees"):
        remove_unfinished(annotation)
        features = tuple(parser.get("features", ()))
        for split, path in parses.items():
            vocabulary = prepared.vocabularies[SIDES.index(side)]
            annotator = ShardAnnotator(vocabulary, path, arcs, whole and split == "train", constituents, features)
            trees = read_unparsed(path, read_lines(getattr(corpus.splits()[split], side)))
            _annotate_split(prepared, annotation, split, trees, annotator, partial(_rows, corpus, side))
        _finish(prepared, annotation, side, parser, list(parses))


_MakeRows = Callable[[str, Path, Iterator[UnreadParse]], ShardRows]


def _annotate_split(
    prepared: PreparedCorpus,
    annotation: Path,
    split: str,
    trees: Iterator[UnreadParse],
    annotator: ShardAnnotator,
    rows: _MakeRows,
) -> None:
    lines = prepared.facts["splits"][split]["lines"]
    chunks = missing_shards(trees, annotation, split, lines)
    shards = ((shard, rows(split, prepared.folder / shard_name(split, shard), chunk)) for shard, chunk in chunks)
    write_shards(_annotated, annotator, shards, annotation, split, lines, what=f"prepare: trees of {split}")


def _annotated(annotator: ShardAnnotator, rows: ShardRows) -> bytes:
    return annotator.shard(rows)


def _rows(corpus: Corpus, side: Side, split: str, shard: Path, trees: Iterator[UnreadParse]) -> ShardRows:
    table, read = ArrowTable(shard), list(trees)
    lines = table.numbers("line")
    tagged = corpus.parts if (side, split) == ("source", "train") else ()
    before = [int(tag != "") for tag in tags_of_lines(tagged, lines)]
    return ShardRows(shard, lines - (read[0].line - 1 if read else 0), table.lists(side), before, read)


def _finish(
    prepared: PreparedCorpus, annotation: Path, side: Side, parser: Mapping[str, Any], splits: list[str]
) -> None:
    shards = {split: range(prepared.facts["splits"][split]["shards"]) for split in splits}
    tables = {
        split: [ArrowTable(annotation / shard_name(split, shard), TreeFacts) for shard in numbers]
        for split, numbers in shards.items()
    }
    facts = {split: [table.facts for table in each] for split, each in tables.items()}
    every = [shard for shards in facts.values() for shard in shards]
    described = {
        "format": FORMAT,
        "side": side,
        "parser": dict(parser),
        "relations": {split: _relation_counts(shards) for split, shards in facts.items()},
        "arc_relations": {split: _expected_counts(shards) for split, shards in facts.items()},
        "arc_mass": {split: mean_mass(each) for split, each in tables.items()},
        "arcs": all(shard["arcs"] is not None for shard in every),
        "tags": sorted({name for shard in every for name in shard["tags"]}),
        "counts": {
            split: {name: sum(shard["counts"][name] for shard in shards) for name in COUNTS}
            for split, shards in facts.items()
        },
    }
    options: dict[str, Any] = {"indent": 1, "ensure_ascii": False, "sort_keys": True}
    write_last(annotation, "annotation.json", described, "*.arrow", **options)


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
