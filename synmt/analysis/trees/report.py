"""Which trees has a model learned? Induce them from its weights and compare them with gold or
parsed trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.analysis import inputs
from synmt.analysis.answers import range_in_words
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.options import TreeOptions
from synmt.analysis.trees.attachment import (
    Attachment,
    Rule,
    branching,
    compare_trees,
    count_rules,
    share_of_rule,
)
from synmt.analysis.trees.induced import induce_trees
from synmt.arrays import IntArray
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.outputs import from_run, the_test_set
from synmt.files.writing import write_content
from synmt.model.heads import Head, tree_heads
from synmt.reporting.page import picture
from synmt.reporting.values import (
    Part,
    Report,
    Table,
    TextBlock,
    count_column,
    share_column,
    text_column,
)
from synmt.run_folder import Run, find_run
from synmt.syntax.align import locate_words
from synmt.syntax.conllu import read_conllu, read_parses
from synmt.syntax.drawing import LEGEND, TreeDrawing, draw_svg, draw_tree
from synmt.syntax.parse import Parse, Trees
from synmt.syntax.trees import not_punctuation
from synmt.tokenization.word_tokenizer import WordTokenizer

_MOST_RULES = 24
"""Number of rules in the table, the most frequent ones in the gold trees."""


@dataclass(frozen=True, eq=False)
class TreeRow:
    """Trees compared with gold.

    rules: how often each rule of their grammar was used.
    top_choice: the share of words whose highest weight is on their parent; None for a branching
        baseline.
    """

    name: str
    attachment: Attachment
    rules: Counter[Rule]
    top_choice: float | None = None


def analyze_trees(options: TreeOptions) -> Report:
    """Compare the trees that a model has learned with gold or parsed trees, as in Tran & Bisk
    (2018)."""
    if options.plot and (not options.draw or options.plot.suffix != ".svg"):
        raise UsageError(
            "trees are drawn with `--draw N`, as SVG",
            where=f"--plot {options.plot}",
            do="Add `--draw N`, and end the name in .svg",
        )
    run = find_run(options.run)
    translator = Translator.load(run)
    heads = tree_heads(translator.model, options.side, options.head, where=str(run.folder))
    text = _read_text(translator, run, options)
    gold = inputs.describe_trees(translator, text)
    trees, left_out = induce_trees(translator, heads, text)
    parses = [text.gold[index] for index in trees]
    if not any(not_punctuation(parse).any() for parse in parses):
        raise SynmtError(
            "there are no words to compare: all sentences are empty, longer than the model takes, "
            "or punctuation, which does not count",
            where=gold,
        )
    rows = _compare(heads, list(trees.values()), parses)
    best = max(range(len(heads)), key=lambda row: rows[row].attachment.da.value)
    rules = count_rules([parse.parents for parse in parses], parses)
    compared = [rows[best], *rows[len(heads) :]]
    tables = [_accuracy_table(rows), _relation_table(compared), _rule_table(compared, rules)]
    system, words = run.folder.resolve().name, rows[0].attachment.words
    drawn = {index: of_heads[best][0] for index, of_heads in list(trees.items())[: options.draw]}
    return Report(
        title=f"{system}: trees of the {options.side}; {gold}",
        parts=[
            range_in_words(tables[0], "DA", "The share of words with the right parent"),
            *(table for table in tables if table.rows),
            *_draw(drawn, heads[best], text, run, options),
        ],
        notes=[f"{words:,} words without punctuation in {len(parses):,} sentences"],
        facts={
            "gold": gold,
            "sentences": len(parses),
            "words": words,
            "left_out": left_out,
            "relations": {row.name: row.attachment.relations for row in rows},
            "rules": {"gold": _counts(rules), **{row.name: _counts(row.rules) for row in rows}},
        },
        runs=(run.folder,),
    )


def _compare(
    heads: Sequence[Head],
    trees: Sequence[Sequence[tuple[IntArray, IntArray]]],
    parses: Trees,
) -> list[TreeRow]:
    """Compare the trees of each head, and the branching baselines, with those of the parses."""
    rows = []
    for head, pairs in zip(heads, zip(*trees, strict=True), strict=True):
        induced, choices = zip(*pairs, strict=True)
        measures = compare_trees(induced, parses), count_rules(induced, parses)
        rows.append(TreeRow(head.name, *measures, compare_trees(choices, parses).da.value))
    for to in ("left", "right"):
        chains = [branching(parse, to) for parse in parses]
        measures = compare_trees(chains, parses), count_rules(chains, parses)
        rows.append(TreeRow(f"{to} branching", *measures))
    return rows


def _read_text(translator: Translator, run: Run, options: TreeOptions) -> ParsedText:
    """Read the text for the model and the trees to compare with, from a treebank or from a parsed
    test set."""
    side, gold = options.side, options.gold
    if gold and side == "source":
        return _read_treebank(translator, gold)
    inputs.check_recorded(translator, run.folder, "--gold" if side == "source" else "")
    outputs = from_run(run.folder, options.test).as_read()
    target = outputs.reference if side == "target" else None
    if gold:
        parses = list(read_parses(gold, outputs.reference))
        return ParsedText(side, outputs.source, target, parses, None, f"gold, {gold.name}")
    text = inputs.parse_text(translator, run, side, outputs.source, target, options.parser)
    return replace(text, made_by=f"{the_test_set(outputs.test)}, parsed by {text.made_by}")


def _read_treebank(translator: Translator, path: Path) -> ParsedText:
    """Read source sentences and their trees; a model without a recorded parser reads the gold trees
    itself."""
    blocks = list(read_conllu(path))
    lines, parses = _as_read(translator.tokenizers["source"], blocks)
    read = parses if translator.reads_trees and translator.parser_identity is None else None
    return ParsedText("source", lines, None, parses, read, f"gold, {path.name}")


def _as_read(
    tokenizer: WordTokenizer, blocks: Sequence[tuple[str, Parse]]
) -> tuple[list[str], list[Parse]]:
    """Tokenize the lines of a treebank as the model reads them, and find its words there."""
    lines = tokenizer.tokenize_lines([text for text, _ in blocks])
    parses = [parse for _, parse in blocks]
    if tokenizer.recipe.changes:
        read = zip(lines, parses, strict=True)
        parses = [replace(parse, spans=locate_words(parse.words, line)) for line, parse in read]
    return lines, parses


def _accuracy_table(rows: Sequence[TreeRow]) -> Table:
    """Lay out the accuracy of all trees."""
    notes = [
        "left, right branching: the parent is always the next, the previous word",
        "words are surface tokens: a multi-word token counts once",
        "the next tables have the head with the highest DA",
    ]
    cells = []
    for row in rows:
        da, ua = row.attachment.da, row.attachment.ua
        cells.append([row.name, da.value, da.interval, ua.value, ua.interval, row.top_choice])
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
    return Table(columns=columns, rows=cells, notes=notes)


def _relation_table(compared: Sequence[TreeRow]) -> Table:
    relations = [row.attachment.relations for row in compared]
    rows = [
        [name, words, *(shares[name][1] for shares in relations)]
        for name, (words, *_) in relations[0].items()
    ]
    columns = [
        text_column("relation"),
        count_column("words"),
        *(share_column(row.name) for row in compared),
    ]
    return Table(title="Directed attachment accuracy by relation", columns=columns, rows=rows)


def _rule_table(compared: Sequence[TreeRow], gold: Counter[Rule]) -> Table:
    """Make the table of the grammar, without rows where the gold trees have no tags."""
    grammars = [gold, *(row.rules for row in compared)]
    rows = [
        [" → ".join(rule), *(share_of_rule(rule, grammar) for grammar in grammars)]
        for rule, _ in gold.most_common(_MOST_RULES)
    ]
    names = ["gold", *(row.name for row in compared)]
    columns = [text_column("parent → child"), *map(share_column, names)]
    title = "Parts of speech of children: share of the parent's children, the most frequent first"
    return Table(title=title, columns=columns, rows=rows)


def _counts(rules: Counter[Rule]) -> dict[str, int]:
    """List a grammar, the most frequent rules first."""
    return {" → ".join(rule): count for rule, count in rules.most_common()}


def _draw(
    drawn: dict[int, IntArray], head: Head, text: ParsedText, run: Run, options: TreeOptions
) -> list[Part]:
    """Write an SVG file of sentences, and show each of them; `drawn`: the parents in a sentence, by
    its number from 0."""
    parts, pictures = list[Part](), list[TreeDrawing]()
    for index, parents in drawn.items():
        gold, title = text.gold[index], f"sentence {index + 1}, {head.name}"
        pair = TreeDrawing(title, parents, gold), TreeDrawing("right tree", gold.parents, gold)
        pictures += pair
        html = picture(draw_svg(pair), caption=f"{title}; dashed: wrong arcs")
        parts.append(TextBlock(lines=[title, *draw_tree(parents, gold)], html=html))
    if parts:
        parts.append(TextBlock(lines=[LEGEND], html=""))
        name = f"trees-{options.side}-{head.name.partition(' (')[0]}.svg".replace(" ", "-")
        write_content(options.plot or run.folder / "analysis" / name, draw_svg(pictures))
    return parts
