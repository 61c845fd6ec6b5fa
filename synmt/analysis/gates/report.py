"""Which target words use syntax? The norm of the gate to syntactic annotations, by part of speech."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from synmt.analysis.gates.norms import check_gates, check_tags, read_gates
from synmt.analysis.gates.page import GateContext, gates_as_html
from synmt.analysis.gates.plot import draw_gates
from synmt.analysis.gates.table import COLUMNS, MIN_WORDS, GateTable, gates_as_json, tabulate
from synmt.analysis.inputs import (
    check_recorded,
    find_parser,
    name_parser,
    parse_lines,
    read_test,
    save_plot,
    say_left_out,
)
from synmt.analysis.options import GateOptions
from synmt.analysis.report import AnalysisReport, TextTable
from synmt.decode.translator import Translator
from synmt.evaluation.outputs import the_test_set
from synmt.reporting.figures import check_plot
from synmt.run import find_run

_logger = logging.getLogger(__name__)


def analyze_gates(options: GateOptions) -> AnalysisReport:
    """Measure how far the gate to syntax is open at each target word, as in Tran & Bisk (2018)."""
    if options.plot:
        check_plot(options.plot)
    run = find_run(options.run)
    outputs, recipe = read_test(run.folder, options.test).as_read(), run.recipe()
    translator = Translator.load(run)
    check_gates(translator, str(run.folder))
    check_recorded(translator, run.folder)
    tagger = find_parser(recipe, "target", options.parser, to="tag")
    context = GateContext(outputs.system, outputs.test, recipe.source, recipe.target, name_parser(tagger))
    _logger.info("gates are read while the model is forced to produce the references; tags: %s", context.tagger)
    parses = parse_lines(tagger, outputs.reference)
    check_tags(parses, context.tagger)
    gates = read_gates(translator, outputs.source, outputs.reference, parses)
    table = tabulate(gates.sentences)
    say_left_out(too_long=gates.too_long, empty=gates.empty)
    if options.plot:
        save_plot(options.plot, lambda: draw_gates(table, system=context.system), grid="x")
    facts = {"system": context.system, "test": context.test, "of": "reference", "tagger": context.tagger}
    return AnalysisReport(
        context.system,
        to_json=lambda: facts | gates_as_json(table, gates),
        to_text=lambda: _to_text(table, context),
        to_html=lambda: [gates_as_html(table, gates.sentences, context)],
        runs=(run.folder,),
    )


def _to_text(table: GateTable, context: GateContext) -> Iterator[str | TextTable]:
    of = f"{table.words:,} words in {table.sentences:,} sentences"
    yield f"{context.system} on {the_test_set(context.test)}: gates of {of}\n"
    yield TextTable(COLUMNS, [row.cells() for row in table.rows])
    yield f"\nnorm: mean norm of the gate, 0 = closed, 1 = open; all words {table.norm:.3f} ± {table.deviation:.3f}"
    yield "highest: sentences with the highest norm on this tag; chance: expected share"
    yield "ratio: highest / chance, with 95 % interval; no PUNCT: without punctuation"
    yield f"tags: {context.tagger}"
    if any(row.few for row in table.rows):
        yield f"*: fewer than {MIN_WORDS} words"
    if table.without:
        yield f"left out: {table.without:,} words that share all their pieces with other words"
