"""What do damaged trees do to translations? Translate the test set again with other trees."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from synmt.analysis.inputs import find_parser, name_parser, parse_lines, read_test, save_plot, scoring_options
from synmt.analysis.options import RobustnessOptions
from synmt.analysis.report import AnalysisReport, TextTable
from synmt.analysis.robustness.conditions import (
    ModelTrees,
    check_translator,
    find_model_trees,
    make_conditions,
    parse_shares,
)
from synmt.analysis.robustness.plot import draw_robustness
from synmt.analysis.robustness.translations import Outcome, corrected, measure
from synmt.decode.translator import Translator
from synmt.evaluation.metrics import Metric, make_metric
from synmt.evaluation.outputs import Outputs, the_test_set
from synmt.parsing.parser import StanzaParser
from synmt.reporting.figures import check_plot
from synmt.reporting.page import Section, figure, paragraph, table
from synmt.reporting.progress import progress
from synmt.run import find_run
from synmt.syntax.conllu import read_parses
from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Results:
    """The outcomes of all conditions.

    parser: name of the parser, or of the file, of the original trees.
    control: name of the recipe's control; empty without one.
    differing: number of translations with the original trees that differ from those stored in the run.
    """

    outputs: Outputs
    metric: Metric
    outcomes: list[Outcome]
    parser: str
    control: str
    seed: int
    with_arcs: bool
    differing: int

    @property
    def title(self) -> str:
        return f"{self.outputs.system} on {the_test_set(self.outputs.test)}"


def analyze_robustness(options: RobustnessOptions) -> AnalysisReport:
    """Translate the test set of a run with damaged trees, with other parsers' trees and without a parser."""
    if options.plot:
        check_plot(options.plot)
    shares = parse_shares(options.shares)
    run = find_run(options.run)
    outputs = read_test(run.folder, options.test)
    metric = make_metric(options.metric, scoring_options(outputs, options.tokenize, options.lowercase, options.metric))
    translator = Translator.load(run)
    check_translator(translator, str(run.folder), has_trees=options.parses is not None)
    # a missing parser should be reported before the test set is parsed
    other = find_parser(run.recipe(), "source", options.parser, to="parse") if options.parser else None
    if other and translator.reading.of_parser:
        other = other.with_features(translator.reading.of_parser)
    own, name = _read_own_trees(translator, outputs, options.parses)
    conditions = list(
        make_conditions(own, shares, seed=options.seed, others=_other_trees(translator, own, name, other))
    )
    if own.with_arcs:
        _logger.info("the model reads arc probabilities: original trees have the parser's, all other arcs are certain")
    with progress("translating", len(outputs.source) * (len(conditions) + 1), "lines") as advance:
        outcomes = corrected(list(measure(translator, own, conditions, metric, outputs, advance)))
    differing = sum(one != stored for one, stored in zip(outcomes[0].translations, outputs.hypothesis, strict=True))
    if differing:
        count = f"{differing:,} of {len(outputs.hypothesis):,}"
        _logger.warning("%s translations with the original trees differ from those stored in the run", count)
    results = _Results(outputs, metric, outcomes, name, own.control.name, options.seed, own.with_arcs, differing)
    if options.plot:
        save_plot(options.plot, lambda: draw_robustness(outcomes, metric, system=results.title))
    return AnalysisReport(
        outputs.system,
        to_json=lambda: _to_json(results),
        to_text=lambda: _to_text(results),
        to_html=lambda: [_to_html(results)],
        runs=(run.folder,),
    )


def _read_own_trees(translator: Translator, outputs: Outputs, parses: Path | None) -> tuple[ModelTrees, str]:
    """Parse the test set, or read its trees from a file, and name the parser or the file."""
    lines = outputs.as_read().source
    if parses is None:
        return find_model_trees(translator, lines, parse_lines(translator.parser, lines)), name_parser(
            translator.parser
        )
    trees = list(read_parses(parses, lines))
    # raises an error for trees without the arc probabilities that the model reads
    translator.trees(lines, trees)
    return find_model_trees(translator, lines, trees), parses.name


def _other_trees(
    translator: Translator, own: ModelTrees, name: str, parser: StanzaParser | None
) -> list[tuple[str, list[Parse]]]:
    """Name the trees without the control of the recipe, and the trees of another parser, if there are any."""
    others = [] if own.control.idle else [(_without_control(name), own.before_control)]
    if parser is not None:
        parses = parse_lines(parser.with_arcs() if own.with_arcs else parser, own.lines)
        # a control would replace the trees of every parser by the same random trees
        others.append((name_parser(parser), find_model_trees(translator, own.lines, parses).before_control))
    return others


def _without_control(parser: str) -> str:
    return f"{parser}, unchanged"


def _to_json(results: _Results) -> dict[str, Any]:
    names = ("name", "kind", "share", "uas", "score", "against_own", "holm_p", "changed")
    return {
        "system": results.outputs.system,
        "test": results.outputs.test,
        "sentences": len(results.outputs.source),
        "metric": results.metric.title,
        "signature": results.metric.signature,
        "higher_is_better": results.metric.higher_is_better,
        "parser": results.parser,
        "control": results.control or None,
        "seed": results.seed,
        "probabilities_of_arcs": results.with_arcs,
        "not_as_in_the_run": results.differing,
        "conditions": [{name: values[name] for name in names} for values in map(asdict, results.outcomes)],
    }


def _score_table(results: _Results) -> TextTable:
    columns = ["trees", "UAS", results.metric.title, "difference", "95 % interval", "p (Holm)", "changed"]
    return TextTable(columns, list(map(_score_cells, results.outcomes)))


def _score_cells(one: Outcome) -> list[str]:
    cells, compared = [one.name, f"{one.uas:.1%}", f"{one.score:.2f}"], one.against_own
    if compared is None:
        return [*cells, *["-"] * 4]
    interval = f"{compared.low:+.2f} to {compared.high:+.2f}"
    return [*cells, f"{compared.difference:+.2f}", interval, f"{one.holm_p:.3f}", f"{one.changed:.1%}"]


def _notes(results: _Results) -> Iterator[str]:
    if results.control:
        made = f"{results.control} trees made from those of {results.parser}"
        row = _without_control(results.parser)
        yield f"own: the original trees, which the model reads ({made}); row '{row}': those of the parser"
    else:
        yield f"own: the original trees, which the model reads, by {results.parser}"
    yield "rewired: this percentage of words, sampled at random without the root, has a different parent"
    yield "left, right: the parent is always the next, the previous word"
    yield "random: a random tree; shuffled: the same tree over shuffled words"
    yield "flat: the parent is always the first word, as in lines that cannot be parsed"
    yield "UAS: words with the same parent as in the original trees"
    lower = "" if results.metric.higher_is_better else f"; {results.metric.title}: lower is better"
    yield f"difference: from the score with the original trees, by paired bootstrap{lower}"
    yield "p: two-sided, corrected for the comparisons of the table (Holm, 1979); intervals are not corrected"
    yield "changed: translations that differ from those with the original trees"
    if results.with_arcs:
        yield "arcs: original trees and those of other parsers have probabilities; all other arcs are certain"


def _to_text(results: _Results) -> Iterator[str | TextTable]:
    yield f"{results.title}: {len(results.outputs.source):,} sentences with other trees, seed {results.seed}\n"
    yield _score_table(results)
    yield from ("", *_notes(results))
    yield f"\n{results.metric.title}|{results.metric.signature}"


def _to_html(results: _Results) -> Section:
    metric, scores = results.metric, _score_table(results)
    introduction = (
        f"{results.title}: {len(results.outputs.source):,} sentences, translated by the same model with other trees. "
        "The more the score falls, the more the model relies on its trees."
    )
    caption = (
        f"{metric.title} by share of words with a different parent. Bars: 95 % intervals of the difference from the "
        "original trees, whose score is the dashed line"
    )
    body = paragraph(introduction)
    body += table(scores.columns, scores.rows, caption=f"{metric.title} by trees, seed {results.seed}")
    body += figure(lambda: draw_robustness(results.outcomes, metric, system=results.title), caption=caption)
    notes = [*_notes(results), f"{metric.title}|{metric.signature}"]
    return Section("Robustness to other trees", body + "".join(paragraph(note, faint=True) for note in notes))
