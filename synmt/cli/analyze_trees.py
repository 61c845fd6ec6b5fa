"""`synmt analyze --trees`: trees read off a model's weights, against gold or parsed ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from synmt.cli import console
from synmt.errors import SynmtError, UsageError

if TYPE_CHECKING:
    from synmt.analysis.induced import Induction, Texts
    from synmt.analysis.tree_report import TreeReport
    from synmt.checkpoint import Run
    from synmt.corpus import Side
    from synmt.decode.translator import Translator
    from synmt.outputs import Outputs
    from synmt.syntax.parse import Parse
    from synmt.syntax.parsers import StanzaParser


def analyze_trees(
    *,
    run: Path | None,
    test: str | None,
    gold: Path | None,
    head: str | None,
    side: str,
    draw: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare trees read off a model's weights with gold or parsed ones."""
    from synmt.analysis.induced import induce, tree_sources
    from synmt.analysis.tree_report import report_trees
    from synmt.checkpoint import find_run
    from synmt.cli.tree_tables import print_json, print_tables
    from synmt.decode.translator import Translator

    checked = _check_request(side, test, gold, draw, plot)
    opened = find_run(run)
    translator = Translator.load(opened, remark=console.warn)
    sources = tree_sources(translator.model, checked, head)
    texts, whose = _texts(translator, opened, checked, test, gold)
    with console.progress("reading trees off the model", len(texts.source), "sentences") as advance:
        induction = induce(translator, sources, texts, advance)
    report = report_trees(induction, texts, system=opened.folder.resolve().name, gold=whose)
    _say_what_is_left_out(report)
    show = print_json if as_json else print_tables
    show(report)
    if draw:
        _draw(report, induction, texts, draw, plot or _picture(opened.folder, report), quietly=as_json)


def _check_request(side: str, test: str | None, gold: Path | None, draw: int, plot: Path | None) -> Side:
    from synmt.corpus import SIDES
    from synmt.errors import did_you_mean

    if side not in SIDES:
        raise UsageError(
            f"there is no side '{side}'",
            where="--side",
            allowed=f"Sides: {', '.join(SIDES)}",
            do=did_you_mean(side, SIDES),
        )
    if test and gold and side == "source":
        raise UsageError("`--gold` brings its own sentences, in place of a test set", do="Leave one of the two out")
    if plot and not draw:
        raise UsageError("nothing was asked to be drawn", where=str(plot), do="Say how many sentences, by `--draw N`")
    if plot and plot.suffix.lower() != ".svg":
        raise UsageError("trees are drawn as SVG", where=str(plot), allowed="Ending: .svg")
    return cast("Side", side)


def _texts(translator: Translator, run: Run, side: Side, test: str | None, gold: Path | None) -> tuple[Texts, str]:
    """Find what the model reads and writes, the trees to compare with, and whose these are."""
    from synmt.analysis.induced import Texts
    from synmt.syntax.conllu import read_conllu, read_parses

    if translator.reads_trees and translator.parser_identity is None and (gold is None or side == "target"):
        raise UsageError(
            "the model reads dependency trees, and its run does not say which parser makes them",
            where=str(run.folder),
            do="Give text and trees, by `--gold FILE.conllu`" if side == "source" else "Take a run that says so",
        )
    if gold and side == "source":
        read = list(read_conllu(gold))
        if not any(len(parse) for _, parse in read):
            raise SynmtError("has no sentence with words", where=str(gold), do="Give a treebank as CoNLL-U")
        parses = [parse for _, parse in read]
        given = parses if translator.reads_trees and translator.parser_identity is None else None
        return _said(Texts(side, [text for text, _ in read], None, parses, given), f"gold, {gold.name}")
    outputs = _outputs(run, test)
    target = outputs.reference if side == "target" else None
    if gold:
        parses = list(read_parses(gold, outputs.reference))
        return _said(Texts(side, outputs.source, target, parses), f"gold, {gold.name}")
    return _said(*_parsed(translator, run, side, outputs, target))


def _said(texts: Texts, whose: str) -> tuple[Texts, str]:
    console.remark(f"compared with: {whose}")
    return texts, whose


def _outputs(run: Run, test: str | None) -> Outputs:
    from synmt.outputs import from_run

    outputs = from_run(run.folder, test)
    if outputs.other_tests and test is None:
        console.remark(f"test set {outputs.test}; choose with --test: {', '.join(outputs.other_tests)}")
    return outputs


def _parsed(
    translator: Translator, run: Run, side: Side, outputs: Outputs, target: list[str] | None
) -> tuple[Texts, str]:
    """Parse the test set: by the run's own parser, which may serve the model as well, or by its recipe's."""
    from synmt.analysis.induced import Texts

    lines = outputs.source if side == "source" else outputs.reference
    whose = f"test set {outputs.test}, parsed by"
    identity = translator.parser_identity
    if side == "source" and translator.reads_trees and identity is not None:
        read = [parse for parse in translator.trees(lines) if parse is not None]
        return Texts(side, lines, target, read, read), f"{whose} the parser that the model reads with"
    parser = _parser(translator, run, side)
    parses = _with_progress(parser, lines)
    return Texts(side, outputs.source, target, parses), f"{whose} Stanza ({parser.model}, {parser.language})"


def _parser(translator: Translator, run: Run, side: Side) -> StanzaParser:
    from synmt.decode.source import recorded_parser
    from synmt.needs import make_parser

    identity = translator.parser_identity
    if side == "source" and identity is not None:
        return recorded_parser(identity, str(translator.device), console.warn, arcs=False)
    try:
        return make_parser(run.recipe(), side)
    except SynmtError as error:
        do = f"{error.do}. Or give trees by `--gold FILE.conllu`"
        raise type(error)(error.what, where=error.where, allowed=error.allowed, do=do) from None


def _with_progress(parser: StanzaParser, lines: list[str]) -> list[Parse]:
    parses: list[Parse] = []
    with console.progress("parsing", len(lines), "sentences") as advance:
        for first in range(0, len(lines), 256):
            some = lines[first : first + 256]
            parses += parser.parse(some, on_failure=partial(_warn, first + 1))
            advance(len(some))
    return parses


def _warn(first: int, index: int, why: str) -> None:
    console.warn(f"line {first + index}: the tree to compare with is flat or pieced: {why}")


def _say_what_is_left_out(report: TreeReport) -> None:
    reasons = [(report.too_long, "with more pieces than the model takes"), (report.empty, "without words")]
    if any(count for count, _ in reasons):
        console.remark("sentences left out: " + ", ".join(f"{count:,} {why}" for count, why in reasons if count))


def _picture(run: Path, report: TreeReport) -> Path:
    source = report.rows[report.best].source
    assert source is not None
    return run / "analysis" / f"trees-{source.file_name}.svg"


def _draw(report: TreeReport, induction: Induction, texts: Texts, count: int, path: Path, *, quietly: bool) -> None:
    """Draw the first sentences, with the trees of the best row: as text and as SVG."""
    from synmt.analysis.drawing import LEGEND, draw_tree
    from synmt.analysis.tree_svg import Drawn, draw_svg
    from synmt.files import write_atomically

    trees = induction.found[report.best].trees
    drawn = [
        Drawn(f"sentence {index + 1}", parents, texts.gold[index])
        for index, parents in zip(induction.kept[:count], trees[:count], strict=True)
    ]
    name = report.rows[report.best].name
    for one in [] if quietly else drawn:
        print(f"\n{one.title}, {name}")
        print("\n".join(draw_tree(one.parents, one.gold)))
    if not quietly:
        print(f"\n{LEGEND}")
    replaced = path.exists()
    with write_atomically(path) as out:
        out.write(draw_svg(drawn, f"{report.system}, {name}"))
    console.remark(f"trees: {path}" + (" (replaced)" if replaced else ""))
