"""`synmt analyze --trees`: trees read off a model's weights, against gold or parsed ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from synmt.analysis.inputs import (
    as_read,
    check_name,
    check_recorded,
    name_parser,
    parse_texts,
    parser_of,
    read_test,
    say_left_out,
)
from synmt.cli import console
from synmt.cli.finding import AnalysisReport
from synmt.errors import SynmtError, UsageError

if TYPE_CHECKING:
    from synmt.analysis.html import Section
    from synmt.analysis.trees.induced import ModelTrees, Texts
    from synmt.analysis.trees.report import Gold, TreeReport
    from synmt.analysis.trees.svg import Drawn
    from synmt.arrays import Side
    from synmt.decode.translator import Translator
    from synmt.evaluation.outputs import Outputs
    from synmt.parsing.parser import StanzaParser
    from synmt.run import Run


def analyze_trees(
    *,
    run: Path | None,
    test: str | None,
    parser: str | None,
    gold: Path | None,
    head: str | None,
    side: str,
    draw: int,
    plot: Path | None,
) -> AnalysisReport:
    """Compare trees read off a model's weights with gold or parsed ones."""
    from synmt.analysis.trees.induced import induce, tree_sources
    from synmt.analysis.trees.report import as_json, report_trees
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    checked = _check_request(side, test, gold, draw, plot)
    _check_trees(parser, gold)
    opened = find_run(run)
    translator = Translator.load(opened, remark=console.warn)
    sources = tree_sources(translator.model, checked, head, where=str(opened.folder))
    texts, whose = _texts(translator, opened, checked, test, gold, parser)
    console.remark(f"compared with: {whose}")
    with console.progress("reading trees off the model", len(texts.source), "sentences") as advance:
        trees = induce(translator, sources, texts, advance)
    report = report_trees(trees, texts, system=opened.folder.resolve().name, gold=whose)
    say_left_out(too_long=report.too_long, empty=report.empty)
    drawn = _drawn(report, trees, texts, draw)
    if drawn:
        _save(drawn, report, plot or _picture(opened.folder, report))
    return AnalysisReport(
        report.system,
        lambda: as_json(report),
        lambda: _show(report, drawn),
        lambda: [_section(report, drawn)],
        (opened.folder,),
    )


def _check_request(side: str, test: str | None, gold: Path | None, draw: int, plot: Path | None) -> Side:
    from synmt.arrays import SIDES

    check_name(side, SIDES, "side")
    if test and gold and side == "source":
        raise UsageError("`--gold` brings its own sentences, in place of a test set", do="Leave one of the two out")
    if plot and not draw:
        raise UsageError("nothing was asked to be drawn", where=str(plot), do="Say how many sentences, by `--draw N`")
    if plot and plot.suffix.lower() != ".svg":
        raise UsageError("trees are drawn as SVG", where=str(plot), allowed="Ending: .svg")
    return cast("Side", side)


def _check_trees(parser: str | None, gold: Path | None) -> None:
    if parser and gold:
        raise UsageError("`--gold` brings its own trees, in place of a parser's", do="Leave one of the two out")


def _texts(
    translator: Translator, run: Run, side: Side, test: str | None, gold: Path | None, parser: str | None
) -> tuple[Texts, Gold]:
    """Find what the model reads and writes, the trees to compare with, and whose these are."""
    if side == "target":
        check_recorded(translator, run.folder)
    elif gold is None:
        check_recorded(translator, run.folder, do="Give text and trees, by `--gold FILE.conllu`")
    if gold and side == "source":
        return _treebank(translator, gold)
    outputs = read_test(run.folder, test)
    return _given(outputs, gold) if gold else _parsed(translator, run, side, outputs, parser)


def _treebank(translator: Translator, gold: Path) -> tuple[Texts, Gold]:
    """Take the sentences of a treebank for the source; without a parser of its own, the model reads gold trees."""
    from synmt.analysis.trees.induced import Texts
    from synmt.analysis.trees.report import Gold
    from synmt.syntax.conllu import read_conllu

    read = list(read_conllu(gold))
    if not any(len(parse) for _, parse in read):
        raise SynmtError("has no sentence with words", where=str(gold), do="Give a treebank as CoNLL-U")
    lines, parses = [text for text, _ in read], [parse for _, parse in read]
    reads_these = translator.reads_trees and translator.parser_identity is None
    texts = Texts("source", lines, None, parses, parses if reads_these else None)
    return texts, Gold(treebank=gold.name, read=_read(translator, texts))


def _given(outputs: Outputs, gold: Path) -> tuple[Texts, Gold]:
    """Take given trees of the references."""
    from synmt.analysis.trees.induced import Texts
    from synmt.analysis.trees.report import Gold
    from synmt.syntax.conllu import read_parses

    parses = list(read_parses(gold, outputs.reference))
    return Texts("target", outputs.source, outputs.reference, parses), Gold(outputs.test, treebank=gold.name)


def _parsed(translator: Translator, run: Run, side: Side, outputs: Outputs, model: str | None) -> tuple[Texts, Gold]:
    """Parse the test set; the model reads the trees too where it reads any of this side, and its own parser's."""
    from synmt.analysis.trees.report import Gold

    target = outputs.reference if side == "target" else None
    parser = _parser(translator, run, side, model)
    texts = parse_texts(translator, parser, side, outputs.source, target, named=model is not None)
    return texts, Gold(outputs.test, parser=name_parser(parser), read=_read(translator, texts))


def _read(translator: Translator, texts: Texts) -> str:
    return "" if texts.read is None else as_read(translator.reading.control)


def _parser(translator: Translator, run: Run, side: Side, model: str | None) -> StanzaParser:
    try:
        return parser_of(translator, run.recipe(), side, model)
    except SynmtError as error:
        do = f"{error.do}, or give trees by `--gold FILE.conllu`"
        raise type(error)(error.what, allowed=error.allowed, do=do) from None


def _picture(run: Path, report: TreeReport) -> Path:
    source = report.rows[report.best].source
    assert source is not None
    return run / "analysis" / f"trees-{source.file_name}.svg"


def _drawn(report: TreeReport, found: ModelTrees, texts: Texts, count: int) -> list[Drawn]:
    """Take the first sentences, with the trees of the best row."""
    from synmt.analysis.trees.svg import Drawn

    trees = found.found[report.best].trees
    return [
        Drawn(f"sentence {index + 1}", parents, texts.gold[index])
        for index, parents in zip(found.kept[:count], trees[:count], strict=True)
    ]


def _heading(report: TreeReport) -> str:
    return f"{report.system}, {report.rows[report.best].name}"


def _save(drawn: list[Drawn], report: TreeReport, path: Path) -> None:
    from synmt.analysis.trees.svg import draw_svg
    from synmt.files import write_atomically

    with console.written("trees", path), write_atomically(path) as out:
        out.write(draw_svg(drawn, _heading(report)))


def _show(report: TreeReport, drawn: list[Drawn]) -> None:
    from synmt.analysis.trees.drawing import LEGEND, draw_tree
    from synmt.cli.tree_tables import print_tables

    print_tables(report)
    for one in drawn:
        assert one.parents is not None
        print(f"\n{one.title}, {report.rows[report.best].name}")
        print("\n".join(draw_tree(one.parents, one.gold)))
    if drawn:
        print(f"\n{LEGEND}")


def _section(report: TreeReport, drawn: list[Drawn]) -> Section:
    from synmt.analysis.html import Section, picture
    from synmt.analysis.trees.svg import draw_svg
    from synmt.cli.tree_tables import tables_as_html

    pictures = [picture(draw_svg([one], _heading(report)), caption=one.title) for one in drawn]
    return Section(f"Trees of the {report.side}", tables_as_html(report) + "".join(pictures))
