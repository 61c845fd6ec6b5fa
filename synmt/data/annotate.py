"""Adds trees to a prepared corpus, row by row, with the word that each piece belongs to.

The text is prepared without a parser. The trees of each parser are a separate annotation, so that
all variants and parsers share one prepared corpus.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from synmt.arrays import SIDES, Facts, IntArray, Side, Strings, Values
from synmt.corpora.corpus import CorpusPart, tags_of_lines
from synmt.corpora.resolve import Corpus
from synmt.data.arrow import ArrowTable
from synmt.data.corpus import FORMAT, PreparedCorpus, shard_name
from synmt.data.encoding import remove_unfinished, rows_of_missing, shard_paths, write_shards
from synmt.data.stored_trees import TreeColumns
from synmt.data.vocabulary import IdArray, SentencePieces, Vocabulary, word_of
from synmt.errors import SynmtError
from synmt.files.checksums import write_last
from synmt.files.reading import fingerprint, read_lines, stored_sha256
from synmt.files.schemas import TreeFacts
from synmt.files.writing import locked
from synmt.syntax.arcs import without_arcs
from synmt.syntax.conllu import UnreadParse, read_unparsed
from synmt.syntax.constituents import ordered, without_constituents
from synmt.syntax.feature_signals import FeatureValues
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import FEATURES, Parse

COUNTS = ("words", "pieces", "merged")
"""Counts for the summary; `merged` words own no piece."""
_LEAST = 2
"""Rarer values share a row with those that the training text does not have; so this row is trained,
too."""


def annotation_name(side: Side, parser: Facts) -> str:
    """Name the annotation of a side; `parser` describes its parser by values that fit into JSON."""
    return f"parse-{side}-{fingerprint(json.dumps(parser, sort_keys=True))}"


def describe_files(parses: Mapping[str, Path]) -> Values:
    """Describe trees from CoNLL-U files, in place of a parser."""
    hashes = {split: stored_sha256(path) for split, path in sorted(parses.items())}
    return {"parser": "conllu", **hashes}


def annotate(
    folder: Path,
    corpus: Corpus,
    parses: Mapping[str, Path],
    *,
    parser: Facts,
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
        shards: dict[str, list[Facts]] = {}
        for split, path in parses.items():
            annotator = ShardAnnotator(
                prepared.vocabularies[SIDES.index(side)],
                parses=path,
                arcs=arcs,
                whole=whole and split == "train",
                constituents=constituents,
                features=tuple(parser.get("features", ())),
            )
            lines = prepared.facts["splits"][split]["lines"]
            paths = shard_paths(annotation, split, lines)
            trees = read_unparsed(path, read_lines(getattr(corpus.splits()[split], side)))
            parts = corpus.parts if (side, split) == ("source", "train") else ()
            rows = (
                (shard, _rows(folder / paths[shard].name, side, parts, chunk))
                for shard, chunk in rows_of_missing(paths, trees)
            )
            write_shards(
                paths,
                ShardAnnotator.shard,
                annotator,
                rows,
                lines=lines,
                what=f"prepare: trees of {split}",
            )
            shards[split] = [ArrowTable(path, TreeFacts).facts for path in paths]
        write_last(
            annotation,
            "annotation.json",
            {"format": FORMAT, "side": side, "parser": dict(parser), **_summarize(shards)},
            "*.arrow",
            indent=1,
            ensure_ascii=False,
            sort_keys=True,
        )


def learn_features(prepared: PreparedCorpus, annotation: str) -> FeatureValues:
    """Collect the lemmas, fine tags and morphologies in the trees of the training text, as far as
    the annotation stores them.

    Most frequent values come first: their order gives the rows of embeddings. A run stores them
    (`Run.features`).
    """
    counts = defaultdict[str, Counter[str]](Counter)
    for shard in range(prepared.facts["splits"]["train"]["shards"]):
        table = ArrowTable(prepared.folder / annotation / shard_name("train", shard), TreeFacts)
        for name, counted in table.facts.get("features", {}).items():
            counts[name].update(dict(zip(counted["values"], counted["counts"], strict=True)))
    return {name: _frequent(counts[name]) for name in FEATURES if name in counts}


def _frequent(counts: Counter[str]) -> Strings:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(value for value, count in ranked if count >= _LEAST)


@dataclass(frozen=True, eq=False)
class TreeRow:
    """The tree of a line, and the row of this line, if it was kept.

    ids: the pieces of the row.
    before: number of pieces before the text, its tag; they belong to no word.
    """

    tree: UnreadParse
    ids: IdArray | None
    before: int


def _rows(
    text: Path, side: Side, parts: Sequence[CorpusPart], trees: Sequence[UnreadParse]
) -> list[TreeRow]:
    """Read the rows of a shard of the text, for the trees of its lines."""
    table = ArrowTable(text)
    lines, pieces = table.numbers("line"), table.lists(side)
    before = [int(tag != "") for tag in tags_of_lines(parts, lines)]
    row_of_line = {line: (pieces[row], before[row]) for row, line in enumerate(lines.tolist())}
    return [TreeRow(tree, *row_of_line.get(tree.line - 1, (None, 0))) for tree in trees]


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
    features: Strings = ()

    def shard(self, rows: Iterable[TreeRow]) -> bytes:
        """Make the file of the trees of a shard's rows; those of the other lines are checked as
        well."""
        columns = TreeColumns(
            whole=self.whole, constituents=self.constituents, features=self.features
        )
        counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        for row in rows:
            parse, before = self._parse(row.tree), row.before
            if row.ids is None:
                continue
            spans = self._spans(row)
            merged, owners = merge_unowned(parse, spans, word_of(spans, parse.spans))
            counts["words"] += len(parse)
            counts["pieces"] += len(spans)
            counts["merged"] += len(parse) - len(merged)
            if self.whole:
                starts, ends = self._in_symbols(row.tree.text, parse.spans)
                columns.add(
                    parse, {"starts": before + starts, "ends": before + ends, "before": before}
                )
            else:
                columns.add(merged, {"word_of": np.append(np.full(before, -1), owners)})
        return columns.to_bytes(counts)

    def _parse(self, tree: UnreadParse) -> Parse:
        parse, what = tree.parse(where=str(self.parses)), f"the tree of line {tree.line}"
        if self.arcs and parse.arcs is None and len(parse):
            raise without_arcs(what, str(self.parses))
        if self.constituents and parse.constituents is None:
            if len(parse):
                raise without_constituents(what, str(self.parses))
            parse = replace(parse, constituents=ordered(()))
        return parse

    def _spans(self, row: TreeRow) -> IntArray:
        """Find the characters of the pieces of a row: (T, 2); if a side was truncated, only of
        those that are left."""
        assert row.ids is not None
        pieces, ids = self.vocabulary.encode(row.tree.text), row.ids[row.before :]
        if not np.array_equal(pieces.ids[: len(ids)], ids):
            raise SynmtError(
                f"line {row.tree.line} of its text has changed since it was prepared",
                where=self.parses,
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
        return (
            np.searchsorted(symbols[:, 1], words[:, 0], side="right"),
            np.searchsorted(symbols[:, 0], words[:, 1], side="left"),
        )


def _summarize(shards: Mapping[str, Sequence[Facts]]) -> Values:
    """Add up the facts of all shards of each split."""
    relations = {split: Counter[str]() for split in shards}
    counts = {split: Counter(dict.fromkeys(COUNTS, 0)) for split in shards}
    has_arcs, tags = True, set[str]()
    for split, of_split in shards.items():
        for facts in of_split:
            names = zip(facts["relations"], facts["relation_counts"], strict=True)
            relations[split].update(dict(names))
            counts[split].update(facts["counts"])
            has_arcs &= facts["arcs"] is not None
            tags.update(facts["tags"])
    return {"relations": relations, "counts": counts, "arcs": has_arcs, "tags": sorted(tags)}
