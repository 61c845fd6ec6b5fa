"""`synmt analyze --gates`: how much syntax each target word used, by part of speech."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.inputs import find_parser, name_parser, parse_lines, read_test, save_plot, say_left_out
from synmt.cli import console
from synmt.cli.finding import AnalysisReport

if TYPE_CHECKING:
    from synmt.analysis.gates.norms import ModelGates
    from synmt.analysis.gates.page import About
    from synmt.analysis.gates.table import GateTable
    from synmt.decode.translator import Translator
    from synmt.evaluation.outputs import Outputs
    from synmt.syntax.parse import Parse


def analyze_gates(
    *,
    run: Path | None,
    test: str | None,
    parser: str | None,
    plot: Path | None,
) -> AnalysisReport:
    """Find how much syntax each target word used."""
    if plot:
        from synmt.analysis.plots import check_plot

        check_plot(plot)
    from synmt.analysis.gates.norms import check_gates, check_tags
    from synmt.analysis.gates.page import About, make_section
    from synmt.analysis.gates.table import as_json, tabulate
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    opened = find_run(run)
    outputs, recipe = read_test(opened.folder, test), opened.recipe()
    translator = Translator.load(opened, remark=console.warn)
    check_gates(translator, str(opened.folder))
    tagging = find_parser(recipe, "target", parser, to="tag")
    tagger = name_parser(tagging)
    console.remark(f"the gates are those of the references, which the model is made to write; tags: {tagger}")
    parses = parse_lines(tagging, outputs.reference)
    check_tags(parses, tagger)
    gates = _gates(translator, outputs, parses)
    table = tabulate(gates.sentences)
    about = About(outputs.system, outputs.test, recipe.source, recipe.target, tagger)
    say_left_out(too_long=gates.too_long, empty=gates.empty)
    if plot:
        from synmt.analysis.gates.plot import save_gates_plot

        save_plot(plot, lambda: save_gates_plot(table, plot, system=about.system))
    facts = {"system": about.system, "test": about.test, "of": "reference", "tagger": about.tagger}
    return AnalysisReport(
        about.system,
        lambda: facts | as_json(table, gates),
        lambda: _show(table, about),
        lambda: [make_section(table, gates.sentences, about)],
        (opened.folder,),
    )


def _gates(translator: Translator, outputs: Outputs, parses: list[Parse]) -> ModelGates:
    from synmt.analysis.gates.norms import read_gates

    with console.progress("reading gates", len(parses), "sentences") as advance:
        return read_gates(translator, outputs.source, outputs.reference, parses, advance)


def _show(table: GateTable, about: About) -> None:
    from synmt.analysis.gates.table import COLUMNS, FEW

    print(f"{about.system}, test set {about.test}: gates of {table.words:,} words in {table.sentences:,} sentences\n")
    console.table("", COLUMNS, [row.cells() for row in table.rows], to_stdout=True)
    print(f"\nnorm: 0 is shut, 1 is wide open; all words {table.norm:.3f} ± {table.deviation:.3f}")
    print("highest: sentences whose highest word has the tag; chance: the same by chance")
    print("ratio: highest / chance, with 95 % interval; no PUNCT: among other words")
    print(f"tags: those of {about.tagger}")
    if any(row.few for row in table.rows):
        print(f"*: fewer than {FEW} words")
    if table.without:
        print(f"left out: {table.without:,} words without a piece of their own")
