"""Adds trees to a prepared corpus, row by row, with the word that each piece belongs to.

The text is prepared without a parser. The trees of each parser are a separate annotation, so that
all variants and parsers share one prepared corpus.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import CorpusPart, tags_of_lines
from synmt.corpora.resolve import Corpus
from synmt.data.annotation_shard import COUNTS, ShardAnnotator, ShardRows
from synmt.data.arrow import ArrowTable
from synmt.data.corpus import FORMAT, PreparedCorpus, shard_name
from synmt.data.encoding import ShardFiles, remove_unfinished
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
    return {
        "parser": "conllu",
        **{split: stored_sha256(path) for split, path in sorted(parses.items())},
    }


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
    """Add trees to a prepared corpus, or continue after an interruption; does nothing if the
    annotation is complete.

    The annotation is named `annotation_name(side, parser)`, and stores the `features` of words that
    `parser` lists.

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
        files = {
            split: ShardFiles(annotation, split, prepared.facts["splits"][split]["lines"])
            for split in parses
        }
        for split, path in parses.items():
            annotator = ShardAnnotator(
                prepared.vocabularies[SIDES.index(side)],
                parses=path,
                arcs=arcs,
                whole=whole and split == "train",
                constituents=constituents,
                features=tuple(parser.get("features", ())),
            )
            trees = read_unparsed(path, read_lines(getattr(corpus.splits()[split], side)))
            parts = corpus.parts if (side, split) == ("source", "train") else ()
            shards = (
                (shard, _rows_of(folder / shard_name(split, shard), side, parts, list(chunk)))
                for shard, chunk in files[split].rows_of_missing(trees)
            )
            files[split].write(
                ShardAnnotator.shard, annotator, shards, what=f"prepare: trees of {split}"
            )
        described = {"format": FORMAT, "side": side, "parser": dict(parser), **_summarize(files)}
        options: dict[str, Any] = {"indent": 1, "ensure_ascii": False, "sort_keys": True}
        write_last(annotation, "annotation.json", described, "*.arrow", **options)


def _rows_of(
    text: Path, side: Side, parts: Sequence[CorpusPart], trees: list[UnreadParse]
) -> ShardRows:
    """Read the rows of a shard of the text, for the trees of its lines."""
    table = ArrowTable(text)
    lines = table.numbers("line")
    before = [int(tag != "") for tag in tags_of_lines(parts, lines)]
    return ShardRows(
        text, lines - (trees[0].line - 1 if trees else 0), table.lists(side), before, trees
    )


def _summarize(files: Mapping[str, ShardFiles]) -> dict[str, Any]:
    """Add up the facts of all shards of each split."""
    tables = {
        split: [ArrowTable(path, TreeFacts) for path in each.paths] for split, each in files.items()
    }
    facts = {split: [table.facts for table in each] for split, each in tables.items()}
    every = list(chain.from_iterable(facts.values()))
    return {
        "relations": {split: _relation_counts(shards) for split, shards in facts.items()},
        "arc_relations": {split: _expected_counts(shards) for split, shards in facts.items()},
        "arc_mass": {split: _mean_mass(each) for split, each in tables.items()},
        "arcs": all(shard["arcs"] is not None for shard in every),
        "tags": sorted({name for shard in every for name in shard["tags"]}),
        "counts": {
            split: {name: sum(shard["counts"][name] for shard in shards) for name in COUNTS}
            for split, shards in facts.items()
        },
    }


def _relation_counts(shards: Sequence[TreeFacts]) -> dict[str, int]:
    counts = Counter[str]()
    for shard in shards:
        counts.update(dict(zip(shard["relations"], shard["relation_counts"], strict=True)))
    return dict(sorted(counts.items()))


def _expected_counts(shards: Sequence[TreeFacts]) -> dict[str, int]:
    sums = Counter[str]()
    for shard in shards:
        sums.update(shard.get("arc_mass", {}))
    return {name: round(mass) for name, mass in sorted(sums.items()) if round(mass)}


def _mean_mass(tables: Sequence[ArrowTable]) -> float | None:
    """Compute the probability that the stored arcs of a word sum to on average; None if a shard has
    no arcs."""
    if any(table.facts["arcs"] is None or not table.has("arc_counts") for table in tables):
        return None
    words = sum(int(table.lists("arc_counts").lengths.sum()) for table in tables)
    return sum(sum(table.facts["arc_mass"].values()) for table in tables) / words if words else None
