"""Which trees has a model learned? Induce them from its weights and compare them with gold or
parsed trees."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from synmt.analysis import inputs
from synmt.analysis.forward_passes import ParsedText
from synmt.analysis.heads import tree_heads
from synmt.analysis.options import TreeOptions
from synmt.analysis.trees.drawing import LEGEND, draw_tree
from synmt.analysis.trees.induced import induce_trees
from synmt.analysis.trees.results import GoldTrees, compare_induced, result_facts, result_parts
from synmt.analysis.trees.svg import TreeDrawing, draw_svg
from synmt.arrays import SIDES, Side
from synmt.decode.translator import Translator
from synmt.errors import SynmtError, UsageError
from synmt.evaluation.outputs import Outputs
from synmt.files.writing import write_atomically
from synmt.reporting.page import picture
from synmt.reporting.svg import check_svg
from synmt.reporting.values import Report, TextBlock
from synmt.run_folder import Run, find_run
from synmt.syntax.align import locate_words
from synmt.syntax.conllu import read_conllu, read_parses
from synmt.syntax.parse import Parse
from synmt.tokenization.word_tokenizer import WordTokenizer

_logger = logging.getLogger(__name__)


def analyze_trees(options: TreeOptions) -> Report:
    """Compare the trees that a model has learned with gold or parsed trees, as in Tran & Bisk
    (2018)."""
    _check_options(options)
    run = find_run(options.run)
    translator = Translator.load(run)
    side = options.side
    heads = tree_heads(translator.model, side, options.head, where=str(run.folder))
    text, gold = _read_text(translator, run, side, options)
    _logger.info(f"compared with: {gold}")
    trees = induce_trees(translator, heads, text)
    results = compare_induced(trees, text, gold)
    left_out = inputs.log_left_out(len(text.source), len(trees.lines), trees.too_long)
    best = trees.by_head[results.best]
    drawings = [
        TreeDrawing(f"sentence {index + 1}", parents, text.gold[index])
        for index, parents in zip(trees.lines[: options.draw], best.trees, strict=False)
    ]
    system = run.folder.resolve().name
    if drawings:
        default = (
            run.folder
            / "analysis"
            / f"trees-{'target-' * (side == 'target')}{best.head.file_name}.svg"
        )
        _save(draw_svg(drawings, f"{system}, {best.head.name}", gold.kind), options.plot, default)
    return Report(
        title=f"{system}: trees of the {side}; {gold}",
        parts=[*result_parts(results), *_drawn(drawings, f"{system}, {best.head.name}", gold.kind)],
        facts={"system": system, "side": side, "left_out": left_out, **result_facts(results)},
        system=system,
        runs=(run.folder,),
    )


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
    translator: Translator, run: Run, side: Side, options: TreeOptions
) -> tuple[ParsedText, GoldTrees]:
    """Read the text for the model and the trees to compare with, from a treebank or from a parsed
    test set."""
    gold = options.gold
    if side == "target":
        inputs.check_recorded(translator, run.folder)
    elif gold is None:
        inputs.check_recorded(
            translator, run.folder, do="Give text and trees with `--gold FILE.conllu`"
        )
    if gold and side == "source":
        return _read_treebank(translator, gold)
    outputs = inputs.read_test(run.folder, options.test).as_read()
    if gold:
        parses = list(read_parses(gold, outputs.reference))
        return ParsedText("target", outputs.source, outputs.reference, parses), GoldTrees(
            outputs.test, gold.name
        )
    return _parse_test(translator, run, side, outputs, options.parser)


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
    return text, GoldTrees(treebank=path.name, note=_reading_note(translator, text))


def _as_read(
    tokenizer: WordTokenizer, blocks: Sequence[tuple[str, Parse]]
) -> tuple[list[str], list[Parse]]:
    """Tokenize the lines of a treebank as the model reads them, and find its words there."""
    lines = tokenizer.tokenize_lines([text for text, _ in blocks])
    if not tokenizer.recipe.changes:
        return lines, [parse for _, parse in blocks]
    return lines, [
        replace(
            parse,
            spans=locate_words([text[start:end] for start, end in parse.spans.tolist()], line),
        )
        for line, (text, parse) in zip(lines, blocks, strict=True)
    ]


def _parse_test(
    translator: Translator, run: Run, side: Side, outputs: Outputs, model: str | None
) -> tuple[ParsedText, GoldTrees]:
    target = outputs.reference if side == "target" else None
    try:
        parser = inputs.parser_of(translator, run.recipe(), side, model)
    except SynmtError as error:
        raise error.with_(
            where="", do=f"{error.do}, or give trees with `--gold FILE.conllu`"
        ) from None
    text = inputs.parse_texts(
        translator, parser, side, outputs.source, target, named=model is not None
    )
    return text, GoldTrees(
        outputs.test, parser=inputs.name_parser(parser), note=_reading_note(translator, text)
    )


def _reading_note(translator: Translator, text: ParsedText) -> str:
    return "" if text.model_trees is None else inputs.as_read(translator.reading.control)


def _save(svg: str, plot: Path | None, default: Path) -> None:
    path = plot or default
    replaced = path.exists()
    try:
        with write_atomically(path) as stream:
            stream.write(svg)
    except SynmtError as error:
        # the run may be someone else's, and the trees are shown anyway
        if plot:
            raise
        _logger.warning("the trees were not drawn as SVG: %s", error)
        return
    _logger.info("trees: %s%s", path, " (replaced)" * replaced)


def _drawn(drawings: Sequence[TreeDrawing], heading: str, kind: str) -> Iterator[TextBlock]:
    """Yield each sentence, and a legend, which the pictures of a page have themselves."""
    for one in drawings:
        assert one.parents is not None
        drawn = picture(draw_svg([one], heading, kind), caption=one.title)
        yield TextBlock(
            lines=[f"{one.title}, {heading}", *draw_tree(one.parents, one.gold)], html=drawn
        )
    if drawings:
        yield TextBlock(lines=[LEGEND.format(kind)], html="")
