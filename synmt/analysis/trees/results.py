"""Attachment accuracy of all trees induced from a model, and of branching baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.trees.attachment import Attachment, branching_baselines, compare_trees
from synmt.analysis.trees.grammar import Grammar, read_grammar
from synmt.analysis.trees.induced import InducedTrees
from synmt.analysis.trees.sources import TreeSource
from synmt.arrays import IntArray, Side
from synmt.errors import SynmtError
from synmt.evaluation.outputs import the_test_set
from synmt.syntax.parse import Parse


@dataclass(frozen=True)
class GoldTrees:
    """The origin of the trees that the model is compared with.

    test: name of the test set; empty for the sentences of a treebank.
    treebank: name of the file with the trees; empty for trees of a parser.
    parser: name of the parser; empty for a file.
    note: how the model itself reads these trees; empty if it does not.
    """

    test: str = ""
    treebank: str = ""
    parser: str = ""
    note: str = ""

    @property
    def kind(self) -> str:
        """The word before "tree" in the key of a drawing."""
        return "gold" if self.treebank else "parser's"

    def __str__(self) -> str:
        name = f"gold, {self.treebank}" if self.treebank else f"{the_test_set(self.test)}, parsed by {self.parser}"
        return name + self.note


@dataclass(frozen=True, eq=False)
class TreeRow:
    """Trees compared with gold.

    source: where the trees were read from; None for a branching baseline.
    choices: attachment of the word with the highest weight; None for a branching baseline.
    """

    name: str
    source: TreeSource | None
    attachment: Attachment
    grammar: Grammar
    choices: Attachment | None = None


@dataclass(frozen=True, eq=False)
class TreeResults:
    """The attachment accuracy of a model's trees.

    sentences: number of sentences compared.
    too_long, empty: number of sentences left out.
    rows: the sources of the model, then the baselines.
    best: number of the model's row with the highest DA.
    grammar: of the gold trees.
    """

    system: str
    side: Side
    gold: GoldTrees
    sentences: int
    too_long: int
    empty: int
    rows: list[TreeRow]
    best: int
    grammar: Grammar

    @property
    def words(self) -> int:
        """Number of words that count."""
        return self.rows[0].attachment.words

    @property
    def baselines(self) -> list[TreeRow]:
        """The rows of the branching baselines."""
        return [row for row in self.rows if row.source is None]


def compare_induced(trees: InducedTrees, text: ParsedText, *, system: str, gold: GoldTrees) -> TreeResults:
    """Compare the trees induced from a model, and the branching baselines, with the gold trees of the text."""
    parses = [text.gold[index] for index in trees.lines]
    if not parses:
        raise SynmtError("there are no sentences to compare: all are empty, or longer than the model takes")
    rows = [
        _compare(one.source.name, one.trees, parses, source=one.source, choices=compare_trees(one.choices, parses))
        for one in trees.by_source
    ]
    if not rows[0].attachment.words:
        raise SynmtError("all words are punctuation, which does not count", where=str(gold))
    return TreeResults(
        system=system,
        side=text.side,
        gold=gold,
        sentences=len(parses),
        too_long=trees.too_long,
        empty=len(text.source) - len(parses) - trees.too_long,
        rows=rows + [_compare(name, chains, parses) for name, chains in branching_baselines(parses)],
        best=max(range(len(rows)), key=lambda row: rows[row].attachment.da.value),
        grammar=read_grammar([parse.parents for parse in parses], parses),
    )


def _compare(
    name: str,
    trees: Sequence[IntArray],
    gold: Sequence[Parse],
    source: TreeSource | None = None,
    choices: Attachment | None = None,
) -> TreeRow:
    return TreeRow(name, source, compare_trees(trees, gold), read_grammar(trees, gold), choices)


def results_as_json(results: TreeResults) -> dict[str, Any]:
    """Convert results to plain values; shares are from 0 to 1, and missing values None."""
    return {
        "system": results.system,
        "side": results.side,
        "test": results.gold.test or None,
        "gold": str(results.gold),
        "parser": results.gold.parser or None,
        "sentences": results.sentences,
        "left_out": {"too_long": results.too_long, "empty": results.empty},
        "words": results.words,
        "best": results.rows[results.best].name,
        "rows": [_row_as_json(row) for row in results.rows],
        "gold_children": _grammar_as_json(results.grammar),
    }


def _row_as_json(row: TreeRow) -> dict[str, Any]:
    source = row.source
    return {
        "trees": row.name,
        "variant": source.variant or None if source else None,
        "layer": source.layer or None if source else None,
        "head": source.head or None if source else None,
        "directed": asdict(row.attachment.da),
        "undirected": asdict(row.attachment.ua),
        "top_choice": asdict(row.choices.da) if row.choices else None,
        "relations": {
            name: {"words": words, "directed": da, "undirected": ua}
            for name, (words, da, ua) in row.attachment.by_relation().items()
        },
        "children": _grammar_as_json(row.grammar),
    }


def _grammar_as_json(grammar: Grammar) -> dict[str, dict[str, int]]:
    """Convert a grammar: tag of the parent -> tag of the child -> words, the most frequent first."""
    found: dict[str, dict[str, int]] = {}
    for (parent, child), words in sorted(grammar.counts.items(), key=lambda one: (-one[1], one[0])):
        found.setdefault(parent, {})[child] = words
    return found
