"""`synmt analyze --gates`: how much syntax each target word used, by part of speech."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.analysis.gates import GatedSentence
    from synmt.analysis.gates_page import About
    from synmt.analysis.gates_table import GateTable, TagRow
    from synmt.decode.translator import Translator
    from synmt.outputs import Outputs
    from synmt.recipe import Recipe
    from synmt.syntax.parse import Parse
    from synmt.syntax.parsers import StanzaParser

_LINES = 256
"""So many lines are tagged between two steps of the progress."""


def analyze_gates(
    *,
    run: Path | None,
    test: str | None,
    page: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Show how much syntax each target word used."""
    _check_files(page, plot)
    from synmt.analysis.gates import check_gates
    from synmt.analysis.gates_page import About
    from synmt.analysis.gates_table import tabulate
    from synmt.checkpoint import find_run
    from synmt.decode.translator import Translator
    from synmt.outputs import from_run

    opened = find_run(run)
    outputs, recipe = from_run(opened.folder, test), opened.recipe()
    translator = Translator.load(opened, remark=console.remark)
    check_gates(translator, str(opened.folder))
    if outputs.other_tests and test is None:
        console.remark(f"test set {outputs.test}; choose with --test: {', '.join(outputs.other_tests)}")
    parser = _tagger(recipe)
    tagger = f"Stanza, {parser.language}, {parser.model}"
    console.remark(f"the gates are those of the references, which the model is made to write; tags: {tagger}")
    sentences = _gates(translator, outputs, _tagged(outputs.reference, parser, tagger))
    table = tabulate(sentences)
    about = About(outputs.system, outputs.test, recipe.source, recipe.target, tagger)
    _print(table, sentences, about, as_json=as_json)
    _save(table, sentences, about, page, plot)


def _check_files(page: Path | None, plot: Path | None) -> None:
    if page:
        from synmt.analysis.gates_page import check_page

        check_page(page)
    if plot:
        from synmt.plots import check_plot

        check_plot(plot)


def _tagger(recipe: Recipe) -> StanzaParser:
    """Make the target's parser; where it is the compact one and has no model for the language, Stanza's own."""
    from synmt.errors import SynmtError
    from synmt.needs import make_parser
    from synmt.syntax.parsers import StanzaParser

    settings = recipe.target_parser
    try:
        return make_parser(recipe, "target")
    except SynmtError as error:
        if settings.model != "compact":
            raise
        try:
            return StanzaParser(recipe.target, model="official", package=settings.package, device=settings.device)
        except SynmtError as missing:
            raise type(missing)(
                f"the words of the target are grouped by part of speech: {missing.what}",
                where=missing.where,
                allowed=missing.allowed,
                do=missing.do,
            ) from error


def _tagged(lines: list[str], parser: StanzaParser, tagger: str) -> list[Parse]:
    from synmt.analysis.gates import check_tags

    parses: list[Parse] = []
    with console.progress("tag", len(lines), "lines") as advance:
        for begin in range(0, len(lines), _LINES):
            parses += parser.parse(lines[begin : begin + _LINES])
            advance(len(parses) - begin)
    check_tags(parses, tagger)
    return parses


def _gates(translator: Translator, outputs: Outputs, parses: list[Parse]) -> list[GatedSentence]:
    from synmt.analysis.gates import read_gates

    sentences: list[GatedSentence] = []
    with console.progress("gates", len(parses), "sentences") as advance:
        for one in read_gates(translator, outputs.source, outputs.reference, parses):
            sentences.append(one)
            advance(1)
    return sentences


def _print(table: GateTable, sentences: list[GatedSentence], about: About, *, as_json: bool) -> None:
    from synmt.analysis.gates_table import FEW
    from synmt.analysis.gates_table import as_json as values

    if as_json:
        facts = {"system": about.system, "test": about.test, "of": "reference", "tagger": about.tagger}
        print(json.dumps(facts | values(table, sentences), ensure_ascii=False, indent=2))
        return
    print(f"{about.system}, test set {about.test}: gates of {table.words:,} words in {table.sentences:,} sentences\n")
    columns = ["tag", "words", "share", "norm", "± sd", "highest", "by chance", "ratio", "95 % interval", "no PUNCT"]
    console.table("", columns, [_cells(row) for row in table.rows], to_stdout=True)
    print(f"\nnorm: 0 is shut, 1 is wide open; all words {table.norm:.3f} ± {table.deviation:.3f}")
    print("highest: sentences whose highest word has the tag; ratio: highest / by chance; no PUNCT: among other words")
    if any(row.few for row in table.rows):
        print(f"*: fewer than {FEW} words")
    if table.without:
        print(f"left out: {table.without:,} words without a piece of their own")


def _cells(row: TagRow) -> list[str]:
    return [
        row.tag + (" *" if row.few else ""),
        f"{row.words:,}",
        f"{row.share:.1%}",
        f"{row.norm:.3f}",
        f"{row.deviation:.3f}",
        f"{row.highest:.1%}",
        f"{row.expected:.1%}",
        f"{row.ratio:.2f}",
        f"{row.interval[0]:.2f}-{row.interval[1]:.2f}" if row.interval else "-",
        "-" if row.unpunctuated is None else f"{row.unpunctuated:.2f}",
    ]


def _save(table: GateTable, sentences: list[GatedSentence], about: About, page: Path | None, plot: Path | None) -> None:
    """Write the page and the plot; what they replace is said."""
    there = {path for path in (page, plot) if path and path.exists()}
    if page:
        from synmt.analysis.gates_page import make_page
        from synmt.files import write_atomically

        with write_atomically(page) as out:
            out.write(make_page(table, sentences, about))
        console.remark(f"page: {page}" + (" (replaced)" if page in there else ""))
    if plot:
        from synmt.analysis.gates_plot import save_gates_plot

        save_gates_plot(table, plot, system=about.system)
        console.remark(f"plot: {plot}" + (" (replaced)" if plot in there else ""))
