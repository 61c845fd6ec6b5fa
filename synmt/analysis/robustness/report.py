"""`synmt analyze --robustness`: the test set translated again under damaged trees, controls and other parsers'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.analysis.inputs import find_parser, name_parser, parse_lines, read_test, save_plot
from synmt.analysis.scoring import scoring
from synmt.cli import console
from synmt.cli.finding import AnalysisReport

if TYPE_CHECKING:
    from synmt.analysis.html import Section
    from synmt.analysis.robustness.translations import Condition, Outcome, TestTrees
    from synmt.decode.translator import Translator
    from synmt.evaluation.metrics import Metric
    from synmt.evaluation.outputs import Outputs
    from synmt.parsing.parser import StanzaParser
    from synmt.syntax.parse import Parse

_COLUMNS = ["trees", "UAS", "score", "difference", "95 %", "p", "changed"]


@dataclass(frozen=True)
class _Report:
    """All that is shown.

    parser: the name of what made the own trees, or of the file that they are from.
    control: the name of the recipe's control that they are under; empty where there is none.
    differing: translations under the own trees that are not those which the run has kept.
    """

    outputs: Outputs
    metric: Metric
    outcomes: list[Outcome]
    parser: str
    control: str
    seed: int
    with_arcs: bool
    differing: int


def analyze_robustness(
    *,
    run: Path | None,
    test: str | None,
    metric: str,
    tokenize: str | None,
    lowercase: bool | None,
    parser: str | None,
    parses: Path | None,
    shares: str,
    seed: int,
    plot: Path | None,
) -> AnalysisReport:
    """Find how translations suffer from damaged trees."""
    if plot:
        from synmt.analysis.plots import check_plot

        check_plot(plot)
    from synmt.analysis.robustness.translations import check_translator, conditions, parse_shares
    from synmt.decode.translator import Translator
    from synmt.evaluation.metrics import make_metric
    from synmt.run import find_run

    wanted = parse_shares(shares)
    opened = find_run(run)
    outputs = read_test(opened.folder, test)
    chosen = make_metric(metric, scoring(outputs, tokenize, lowercase))
    translator = Translator.load(opened, remark=console.warn)
    check_translator(translator, str(opened.folder), given=parses is not None)
    # a parser that cannot be had is better known before anything is parsed
    other = find_parser(opened.recipe(), "source", parser, to="parse") if parser else None
    own, name = _own_trees(translator, outputs, parses)
    made = list(conditions(own, wanted, seed=seed, others=_others(translator, own, name, other)))
    if own.with_arcs:
        console.remark("the model reads probabilities of arcs: those of the own trees are the parser's, others certain")
    outcomes = _measured(translator, own, made, chosen, outputs)
    differing = sum(one != other for one, other in zip(outcomes[0].translations, outputs.hypothesis, strict=True))
    if differing:
        count = len(outputs.hypothesis)
        console.warn(f"{differing:,} of {count:,} translations under the own trees are not those kept in the run")
    report = _Report(outputs, chosen, outcomes, name, own.control.name, seed, own.with_arcs, differing)
    if plot:
        _draw(report, plot)
    return AnalysisReport(
        outputs.system,
        lambda: _values(report),
        lambda: _show(report),
        lambda: [_section(report)],
        (opened.folder,),
    )


def _own_trees(translator: Translator, outputs: Outputs, parses: Path | None) -> tuple[TestTrees, str]:
    """Read the trees of the test set, or parse it, and name whose they are."""
    from synmt.analysis.robustness.translations import read_trees
    from synmt.syntax.conllu import read_parses

    lines = outputs.source
    if parses is None:
        return read_trees(translator, lines, parse_lines(translator.parser, lines)), name_parser(translator.parser)
    given = list(read_parses(parses, lines))
    # refuses trees without the probabilities that a model reads
    translator.trees(lines, given)
    return read_trees(translator, lines, given), parses.name


def _others(
    translator: Translator, own: TestTrees, name: str, parser: StanzaParser | None
) -> list[tuple[str, list[Parse]]]:
    """Take the trees without the recipe's control, if it has one, and those of another parser, if there is one."""
    from synmt.analysis.robustness.translations import read_trees

    found = [] if own.control.idle else [(_unchanged(name), own.uncontrolled)]
    if parser is not None:
        parses = parse_lines(parser.with_arcs() if own.with_arcs else parser, own.lines)
        # a control would put the same random trees in the place of every parser's
        found.append((name_parser(parser), read_trees(translator, own.lines, parses).uncontrolled))
    return found


def _unchanged(parser: str) -> str:
    return f"{parser}, unchanged"


def _measured(
    translator: Translator, own: TestTrees, made: list[Condition], metric: Metric, outputs: Outputs
) -> list[Outcome]:
    from synmt.analysis.robustness.translations import measure

    lines = len(outputs.source) * (len(made) + 1)
    with console.progress("translating", lines, "lines") as advance:
        return list(measure(translator, own, made, metric, outputs.reference, advance))


def _draw(report: _Report, plot: Path) -> None:
    from synmt.analysis.robustness.plot import save_robustness_plot

    title = _title(report.outputs)
    save_plot(plot, lambda: save_robustness_plot(report.outcomes, report.metric, plot, system=title))


def _title(outputs: Outputs) -> str:
    return f"{outputs.system}, test set {outputs.test}"


def _values(report: _Report) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "system": report.outputs.system,
        "test": report.outputs.test,
        "sentences": len(report.outputs.source),
        "metric": report.metric.title,
        "signature": report.metric.signature,
        "higher_is_better": report.metric.higher_is_better,
        "parser": report.parser,
        "control": report.control or None,
        "seed": report.seed,
        "probabilities_of_arcs": report.with_arcs,
        "not_as_in_the_run": report.differing,
        "conditions": [
            {
                "name": one.name,
                "kind": one.kind,
                "share": one.share,
                "uas": one.uas,
                "score": one.score,
                "against_own": asdict(one.against_own) if one.against_own else None,
                "changed": one.changed,
            }
            for one in report.outcomes
        ],
    }


def _rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    rows = []
    for one in outcomes:
        cells = [one.name, f"{one.uas:.1%}", f"{one.score:.2f}"]
        if one.against_own:
            compared = one.against_own
            cells += [f"{compared.difference:+.2f}", f"{compared.low:+.2f} to {compared.high:+.2f}"]
            cells += [f"{compared.p_value:.3f}", f"{one.changed:.1%}"]
        else:
            cells += ["-"] * 4
        rows.append(cells)
    return rows


def _columns(report: _Report) -> list[str]:
    return [report.metric.title if name == "score" else name for name in _COLUMNS]


def _notes(report: _Report) -> list[str]:
    lower = "" if report.metric.higher_is_better else f"; {report.metric.title}: lower is better"
    notes = [
        f"own: the trees that the model reads: {report.control} trees in place of those by {report.parser}, which have "
        f"the row '{_unchanged(report.parser)}'"
        if report.control
        else f"own: the trees that the model reads, by {report.parser}",
        "rewired: so many words, drawn at random and never the root, have another parent; left, right: every word "
        "hangs on the one after or before it; random: any tree; shuffled: the same tree on shuffled words; flat: every "
        "word hangs on the first, as in a line that no parser can read",
        "UAS: words that keep the parent of the own trees; difference: to the score under the own trees, with its 95 % "
        f"interval and p-value by paired bootstrap{lower}",
        "changed: translations that are another text than under the own trees",
    ]
    if report.with_arcs:
        notes.append("arcs: the own trees, and another parser's, come with probabilities; all other arcs are certain")
    return notes


def _show(report: _Report) -> None:
    print(f"{_title(report.outputs)}: {len(report.outputs.source):,} sentences under other trees, seed {report.seed}\n")
    console.table("", _columns(report), _rows(report.outcomes), to_stdout=True)
    print("\n" + "\n".join(_notes(report)))
    print(f"\n{report.metric.title}|{report.metric.signature}")


def _section(report: _Report) -> Section:
    from synmt.analysis.html import Section, figure, paragraph, table
    from synmt.analysis.robustness.plot import draw_robustness

    outputs, metric = report.outputs, report.metric
    about = (
        f"{_title(outputs)}: {len(outputs.source):,} sentences, translated by the same model under other trees. "
        "How far the score falls with them shows how far the model relies on its trees."
    )
    caption = (
        f"{metric.title} against the share of words with another parent; bars: 95 % intervals of the difference to the "
        "own trees, whose score is the dashed line"
    )
    body = paragraph(about)
    body += table(_columns(report), _rows(report.outcomes), caption=f"{metric.title} by trees, seed {report.seed}")
    body += figure(lambda: draw_robustness(report.outcomes, metric, system=_title(outputs)), caption=caption)
    body += "".join(paragraph(note, faint=True) for note in [*_notes(report), f"{metric.title}|{metric.signature}"])
    return Section("Robustness to other trees", body)
