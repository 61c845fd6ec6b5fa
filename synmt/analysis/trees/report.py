"""Which trees has a model learned? Induce them from its weights and compare them with gold or
parsed trees."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from synmt.analysis import inputs
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.heads import Head, tree_heads
from synmt.analysis.options import TreeOptions
from synmt.analysis.trees.attachment import (
    Attachment,
    Rule,
    branching,
    compare_trees,
    count_rules,
    most_frequent,
    not_punctuation,
    share_of_rule,
)
from synmt.analysis.trees.drawing import LEGEND, TreeDrawing, draw_svg, draw_tree
from synmt.analysis.trees.induced import induce_trees
from synmt.arrays import SIDES, IntArray
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.outputs import the_test_set
from synmt.files.writing import write_atomically
from synmt.reporting.page import picture
from synmt.reporting.svg import check_svg
from synmt.reporting.values import (
    Marked,
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
from synmt.syntax.parse import Parse
from synmt.tokenization.word_tokenizer import WordTokenizer

_logger = logging.getLogger(__name__)

_MOST_RULES = 24
"""Number of rules in the table, the most frequent ones in the gold trees."""


@dataclass(frozen=True)
class GoldTrees:
    """The trees that the model is compared with.

    name: where they come from, and how the model reads them, if it does.
    test: name of the test set; None for the sentences of a treebank.
    parser: name of the parser; None for a file.
    """

    name: str
    test: str | None = None
    parser: str | None = None


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


def analyze_trees(options: TreeOptions) -> Report:
    """Compare the trees that a model has learned with gold or parsed trees, as in Tran & Bisk
    (2018)."""
    _check_options(options)
    run = find_run(options.run)
    translator = Translator.load(run)
    heads = tree_heads(translator.model, options.side, options.head, where=str(run.folder))
    text, gold = _read_text(translator, run, options)
    _logger.info(f"compared with: {gold.name}")
    trees, left_out = induce_trees(translator, heads, text)
    parses = [text.gold[index] for index in trees]
    if not any(not_punctuation(parse).any() for parse in parses):
        raise SynmtError(
            "there are no words to compare: all sentences are empty, longer than the model takes, "
            "or punctuation, which does not count",
            where=gold.name,
        )
    rows = _compare(heads, list(trees.values()), parses)
    best = max(range(len(heads)), key=lambda row: rows[row].attachment.da.value)
    rules = count_rules([parse.parents for parse in parses], parses)
    compared = [rows[best], *rows[len(heads) :]]
    tables = [
        _accuracy_table(rows, gold, best=best if len(heads) > 1 else None),
        _relation_table(compared),
        _rule_table(compared, rules),
    ]
    words = rows[0].attachment.words
    counts = f"{words:,} words without punctuation in {len(parses):,} sentences"
    system = run.folder.resolve().name
    facts = {"system": system, "side": options.side, "left_out": left_out, "test": gold.test}
    facts |= {"gold": gold.name, "parser": gold.parser, "sentences": len(parses), "words": words}
    facts |= {"best": rows[best].name, "rows": list(map(_row_facts, rows))}
    drawings = [
        TreeDrawing(f"sentence {index + 1}", of_heads[best][0], text.gold[index])
        for index, of_heads in list(trees.items())[: options.draw]
    ]
    return Report(
        title=f"{system}: trees of the {options.side}; {gold.name}",
        parts=[
            TextBlock(lines=[counts]),
            *(table for table in tables if table.rows),
            *_draw(drawings, heads[best], run, options, "parser's" if gold.parser else "gold"),
        ],
        facts={**facts, "gold_children": _children(rules)},
        system=system,
        runs=(run.folder,),
    )


def _compare(
    heads: Sequence[Head],
    trees: Sequence[Sequence[tuple[IntArray, IntArray]]],
    parses: Sequence[Parse],
) -> list[TreeRow]:
    """Compare the trees of each head, and the branching baselines, with those of the parses."""
    rows = []
    for head, pairs in zip(heads, zip(*trees, strict=True), strict=True):
        induced, choices = zip(*pairs, strict=True)
        found = compare_trees(induced, parses), count_rules(induced, parses)
        rows.append(TreeRow(head.name, *found, head, compare_trees(choices, parses)))
    for to in ("left", "right"):
        chains = [branching(parse, to) for parse in parses]
        found = compare_trees(chains, parses), count_rules(chains, parses)
        rows.append(TreeRow(f"{to} branching", *found))
    return rows


def _check_options(options: TreeOptions) -> None:
    inputs.check_name(options.side, SIDES, "side")
    plot = options.plot
    if options.test and options.gold and options.side == "source":
        raise UsageError(
            "`--gold` has its own sentences, and no test set", do="Leave out `--test` or `--gold`"
        )
    if plot and not options.draw:
        raise UsageError(
            "`--plot` needs a number of sentences", where=str(plot), do="Add `--draw N`"
        )
    if plot:
        check_svg(plot, "trees")
    if options.parser and options.gold:
        raise UsageError(
            "`--gold` has its own trees, and no parser", do="Leave out `--parser` or `--gold`"
        )


def _read_text(
    translator: Translator, run: Run, options: TreeOptions
) -> tuple[ParsedText, GoldTrees]:
    """Read the text for the model and the trees to compare with, from a treebank or from a parsed
    test set."""
    side, gold = options.side, options.gold
    if gold and side == "source":
        return _read_treebank(translator, gold)
    inputs.check_recorded(translator, run.folder, "--gold" if side == "source" else "")
    outputs = inputs.read_test(run.folder, options.test).as_read()
    target = outputs.reference if side == "target" else None
    if gold:
        parses = list(read_parses(gold, outputs.reference))
        text = ParsedText(side, outputs.source, target, parses)
        return text, GoldTrees(f"gold, {gold.name}", outputs.test)
    text, parser = inputs.parse_text(translator, run, side, outputs.source, target, options.parser)
    name = f"{the_test_set(outputs.test)}, parsed by {parser}{inputs.as_read(translator, text)}"
    return text, GoldTrees(name, outputs.test, parser)


def _read_treebank(translator: Translator, path: Path) -> tuple[ParsedText, GoldTrees]:
    """Read source sentences and their trees; a model without a recorded parser reads the gold trees
    itself."""
    blocks = list(read_conllu(path))
    if not any(len(parse) for _, parse in blocks):
        raise SynmtError(
            "no sentence has words", where=str(path), do="Give a treebank in CoNLL-U format"
        )
    lines, parses = _as_read(translator.tokenizers["source"], blocks)
    reads_gold = translator.reads_trees and translator.parser_identity is None
    text = ParsedText("source", lines, None, parses, parses if reads_gold else None)
    return text, GoldTrees(f"gold, {path.name}{inputs.as_read(translator, text)}")


def _as_read(
    tokenizer: WordTokenizer, blocks: Sequence[tuple[str, Parse]]
) -> tuple[list[str], list[Parse]]:
    """Tokenize the lines of a treebank as the model reads them, and find its words there."""
    lines = tokenizer.tokenize_lines([text for text, _ in blocks])
    if not tokenizer.recipe.changes:
        return lines, [parse for _, parse in blocks]
    parses = []
    for line, (text, parse) in zip(lines, blocks, strict=True):
        words = [text[start:end] for start, end in parse.spans.tolist()]
        parses.append(replace(parse, spans=locate_words(words, line)))
    return lines, parses


def _accuracy_table(rows: Sequence[TreeRow], gold: GoldTrees, *, best: int | None) -> Table:
    """Lay out the accuracy of all trees; `best`: the row to mark."""
    notes = ["left, right branching: the parent is always the next, the previous word"]
    notes.append("words are surface tokens: a multi-word token counts once")
    if gold.parser:
        notes.append(f"gold trees come from a parser, which makes errors: {gold.parser}")
    cells = []
    for row in rows:
        da, ua = row.attachment.da, row.attachment.ua
        top = row.choices and row.choices.da.value
        cells.append([row.name, da.value, da.interval, ua.value, ua.interval, top])
    if best is not None:
        notes.append("*: the best, selected on these sentences; expect a lower accuracy on others")
        cells[best][0] = Marked(rows[best].name, "*")
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
        [" → ".join(rule), *(share_of_rule(rule, one) for one in grammars)]
        for rule, _ in most_frequent(gold)[:_MOST_RULES]
    ]
    names = ["gold", *(row.name for row in compared)]
    columns = [text_column("parent → child"), *map(share_column, names)]
    title = "Parts of speech of children: share of the parent's children, the most frequent first"
    return Table(title=title, columns=columns, rows=rows)


def _row_facts(row: TreeRow) -> dict[str, Any]:
    """List all numbers of a row as plain values, with every relation and rule."""
    relations = {
        name: {"words": words, "directed": da, "undirected": ua}
        for name, (words, da, ua) in row.attachment.relations.items()
    }
    head = row.head or Head()
    return {
        "trees": row.name,
        "variant": head.variant or None,
        "layer": head.layer or None,
        "head": head.number or None,
        "directed": asdict(row.attachment.da),
        "undirected": asdict(row.attachment.ua),
        "top_choice": asdict(row.choices.da) if row.choices else None,
        "relations": relations,
        "children": _children(row.rules),
    }


def _children(rules: Counter[Rule]) -> dict[str, dict[str, int]]:
    """List a grammar: tag of the parent -> tag of the child -> words, the most frequent first."""
    found = {}
    for (parent, child), words in most_frequent(rules):
        found.setdefault(parent, {})[child] = words
    return found


def _draw(
    drawings: Sequence[TreeDrawing], head: Head, run: Run, options: TreeOptions, kind: str
) -> Iterator[TextBlock]:
    """Write an SVG file of all sentences, and yield each of them, and a legend, which the pictures
    of a page have themselves."""
    if not drawings:
        return
    heading = f"{run.folder.resolve().name}, {head.name}"
    place = f"head-{head.layer}.{head.number}" if head.layer else head.name.partition(" ")[0]
    name = f"trees-{'target-' * (options.side == 'target')}{place}.svg"
    path = options.plot or run.folder / "analysis" / name
    _save(draw_svg(drawings, heading, kind), path, required=options.plot is not None)
    for one in drawings:
        assert one.parents is not None
        lines = [f"{one.title}, {heading}", *draw_tree(one.parents, one.gold)]
        yield TextBlock(
            lines=lines, html=picture(draw_svg([one], heading, kind), caption=one.title)
        )
    yield TextBlock(lines=[LEGEND.format(kind)], html="")


def _save(svg: str, path: Path, *, required: bool) -> None:
    replaced = path.exists()
    try:
        with write_atomically(path) as stream:
            stream.write(svg)
    except SynmtError as error:
        # the run may be someone else's, and the trees are shown anyway
        if required:
            raise
        _logger.warning("the trees were not drawn as SVG: %s", error)
        return
    _logger.info("trees: %s%s", path, " (replaced)" * replaced)
