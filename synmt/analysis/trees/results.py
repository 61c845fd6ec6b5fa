"""Attachment accuracy of all trees induced from a model, and of branching baselines, as tables and
plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.heads import Head
from synmt.analysis.trees.attachment import (
    Attachment,
    Rule,
    branching_baselines,
    compare_trees,
    count_rules,
    most_frequent,
    share_of_rule,
)
from synmt.analysis.trees.induced import InducedTrees
from synmt.arrays import IntArray
from synmt.errors import SynmtError
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.values import (
    Marked,
    Part,
    Table,
    TextBlock,
    count_column,
    share_column,
    text_column,
)
from synmt.syntax.parse import Parse

_MOST_RULES = 24
"""Number of rules in the table, the most frequent ones in the gold trees."""


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
        name = (
            f"gold, {self.treebank}"
            if self.treebank
            else f"{the_test_set(self.test)}, parsed by {self.parser}"
        )
        return name + self.note


@dataclass(frozen=True, eq=False)
class TreeRow:
    """Trees compared with gold.

    rules: how often each rule of their grammar was used.
    head: where the trees were read from; None for a branching baseline.
    choices: attachment of the word with the highest weight; None for a branching baseline.
    """

    name: str
    attachment: Attachment
    rules: Counter[Rule]
    head: Head | None = None
    choices: Attachment | None = None


@dataclass(frozen=True, eq=False)
class TreeResults:
    """The attachment accuracy of a model's trees.

    sentences: number of sentences compared.
    induced: the trees of each head of the model; baselines: the branching baselines.
    rules: of the grammar of the gold trees.
    """

    gold: GoldTrees
    sentences: int
    induced: list[TreeRow]
    baselines: list[TreeRow]
    rules: Counter[Rule]

    @property
    def best(self) -> int:
        """The number of the head with the highest directed accuracy."""
        return max(range(len(self.induced)), key=lambda row: self.induced[row].attachment.da.value)

    @property
    def compared(self) -> list[TreeRow]:
        """The best trees of the model and the baselines."""
        return [self.induced[self.best], *self.baselines]

    @property
    def words(self) -> int:
        """Number of words that count."""
        return self.induced[0].attachment.words


def compare_induced(trees: InducedTrees, text: ParsedText, gold: GoldTrees) -> TreeResults:
    """Compare the trees induced from a model, and the branching baselines, with the gold trees of
    the text."""
    parses = [text.gold[index] for index in trees.lines]
    if not parses:
        raise SynmtError(
            "there are no sentences to compare: all are empty, or longer than the model takes"
        )
    induced = [
        _compare(one.head.name, one.trees, parses, one.head, compare_trees(one.choices, parses))
        for one in trees.by_head
    ]
    if not induced[0].attachment.words:
        raise SynmtError("all words are punctuation, which does not count", where=str(gold))
    return TreeResults(
        gold=gold,
        sentences=len(parses),
        induced=induced,
        baselines=[_compare(name, chains, parses) for name, chains in branching_baselines(parses)],
        rules=count_rules([parse.parents for parse in parses], parses),
    )


def _compare(
    name: str,
    trees: Sequence[IntArray],
    gold: Sequence[Parse],
    head: Head | None = None,
    choices: Attachment | None = None,
) -> TreeRow:
    return TreeRow(name, compare_trees(trees, gold), count_rules(trees, gold), head, choices)


def result_parts(results: TreeResults) -> list[Part]:
    """Make tables of the accuracy of all trees, and of the best ones by relation and by part of
    speech."""
    counts = f"{results.words:,} words without punctuation in {results.sentences:,} sentences"
    tables = [_accuracy_table(results), _relation_table(results), _rule_table(results)]
    return [TextBlock(lines=[counts]), *(table for table in tables if table.rows)]


def _accuracy_table(results: TreeResults) -> Table:
    choice = len(results.induced) > 1
    notes = ["left, right branching: the parent is always the next, the previous word"]
    notes.append("words are surface tokens: a multi-word token counts once")
    if results.gold.parser:
        notes.append(f"gold trees come from a parser, which makes errors: {results.gold.parser}")
    if choice:
        notes.append("*: the best, selected on these sentences; expect a lower accuracy on others")
    rows = []
    for row in (*results.induced, *results.baselines):
        da, ua = row.attachment.da, row.attachment.ua
        top = row.choices and row.choices.da.value
        rows.append([row.name, da.value, da.interval, ua.value, ua.interval, top])
    if choice:
        rows[results.best][0] = Marked(results.induced[results.best].name, "*")
    columns = [
        text_column("trees"),
        share_column(
            "DA", about="directed attachment accuracy, the share of words with the right parent"
        ),
        share_column("95 % of DA"),
        share_column("UA", about="undirected attachment accuracy, which counts reversed arcs too"),
        share_column("95 % of UA"),
        share_column("top choice", about="words whose highest weight is on their parent"),
    ]
    return Table(columns=columns, rows=rows, notes=notes)


def _relation_table(results: TreeResults) -> Table:
    by_relation = [row.attachment.by_relation() for row in results.compared]
    rows = [
        [name, words, *(relations[name][1] for relations in by_relation)]
        for name, (words, *_) in by_relation[0].items()
    ]
    columns = [
        text_column("relation"),
        count_column("words"),
        *(share_column(row.name) for row in results.compared),
    ]
    return Table(title="Directed attachment accuracy by relation", columns=columns, rows=rows)


def _rule_table(results: TreeResults) -> Table:
    """Make the table of the grammar, without rows where the gold trees have no tags."""
    counts = [results.rules, *(row.rules for row in results.compared)]
    rows = [
        [" → ".join(rule), *(share_of_rule(rule, one) for one in counts)]
        for rule, _ in most_frequent(results.rules)[:_MOST_RULES]
    ]
    names = ["gold", *(row.name for row in results.compared)]
    columns = [text_column("parent → child"), *map(share_column, names)]
    title = "Parts of speech of children: share of the parent's children, the most frequent first"
    return Table(title=title, columns=columns, rows=rows)


def result_facts(results: TreeResults) -> dict[str, Any]:
    """List all numbers as plain values, with every relation and rule."""
    return {
        "test": results.gold.test or None,
        "gold": str(results.gold),
        "parser": results.gold.parser or None,
        "sentences": results.sentences,
        "words": results.words,
        "best": results.induced[results.best].name,
        "rows": [_row_facts(row) for row in (*results.induced, *results.baselines)],
        "gold_children": _children(results.rules),
    }


def _row_facts(row: TreeRow) -> dict[str, Any]:
    head = row.head or Head()
    return {
        "trees": row.name,
        "variant": head.variant or None,
        "layer": head.layer or None,
        "head": head.number or None,
        "directed": asdict(row.attachment.da),
        "undirected": asdict(row.attachment.ua),
        "top_choice": asdict(row.choices.da) if row.choices else None,
        "relations": {
            name: {"words": words, "directed": da, "undirected": ua}
            for name, (words, da, ua) in row.attachment.by_relation().items()
        },
        "children": _children(row.rules),
    }


def _children(rules: Counter[Rule]) -> dict[str, dict[str, int]]:
    """List a grammar: tag of the parent -> tag of the child -> words, the most frequent first."""
    found = {}
    for (parent, child), words in most_frequent(rules):
        found.setdefault(parent, {})[child] = words
    return found
