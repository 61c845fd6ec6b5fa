"""`synmt analyze`: runs or translations -> where one system beats another, its trees, and how it uses syntax."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import typer

from synmt import __version__
from synmt.cli import analyze_options as options
from synmt.cli import console
from synmt.cli.analyze_groups import analyze_groups
from synmt.cli.arguments import typed_options
from synmt.cli.finding import AnalysisReport
from synmt.errors import SynmtError, UsageError


def _report(question: str) -> Callable[..., AnalysisReport]:
    """Answer a question of `synmt.analysis`, with options as keywords."""

    def find(**values: Any) -> AnalysisReport:
        from importlib import import_module

        from synmt.analysis import options, progress

        progress.show_progress_with(console.progress)
        record = {"trees": "Tree", "gates": "Gate", "attention": "Attention", "compare": "Compare"}
        made = getattr(options, record.get(question, "Robustness") + "Options")(**values)
        report = getattr(import_module(f"synmt.analysis.{question}.report"), f"analyze_{question}")(made)

        def show() -> None:
            for part in report.to_text():
                if isinstance(part, str):
                    print(part)
                else:
                    columns, rows = list(part.columns), [list(row) for row in part.rows]
                    console.table(part.title, columns, rows, to_stdout=True)

        return AnalysisReport(report.system, report.to_json, show, report.to_html, report.runs)

    return find


@dataclass(frozen=True)
class _Kind:
    """One kind of analysis.

    asked_by: the options that ask for it.
    find: finds it, given `options`.
    figures: whether its part of a page has figures by matplotlib.
    """

    asked_by: tuple[str, ...]
    find: Callable[..., AnalysisReport]
    options: tuple[str, ...]
    figures: bool = True

    @property
    def name(self) -> str:
        """What is typed to ask for it."""
        return " or ".join("--" + name.replace("_", "-") for name in self.asked_by)


_GROUPED = ("by_length", "by_depth", "by_distance", "by_relation", "by_label")
_READING = ("by_depth", "by_distance", "by_relation", "robustness")
"""What takes trees that are given."""
_FILES = ("hypotheses", "references", "source")
_SCORED = ("metric", "tokenize", "lowercase")
_TEST = ("run", "test")
_KINDS = (
    _Kind(
        _GROUPED,
        analyze_groups,
        (
            *_GROUPED,
            *_TEST,
            *_FILES,
            *_SCORED,
            *("labels", "label", "where", "baseline", "buckets", "unit", "side", "parser", "parses", "plot"),
        ),
    ),
    _Kind(("trees",), _report("trees"), (*_TEST, "parser", "gold", "head", "side", "draw", "plot"), figures=False),
    _Kind(("gates",), _report("gates"), (*_TEST, "parser", "plot"), figures=False),
    _Kind(("attention",), _report("attention"), (*_TEST, "parser", "head", "side", "sentence", "what", "plot")),
    _Kind(("compare",), _report("compare"), ("compare", "test", *_FILES[1:], *_SCORED, "parser", "top"), figures=False),
    _Kind(("robustness",), _report("robustness"), (*_TEST, *_SCORED, "parser", "parses", "shares", "seed", "plot")),
)


def analyze(
    context: typer.Context,
    labels: options.Labels = None,
    by_length: options.ByLength = False,
    by_depth: options.ByDepth = False,
    by_distance: options.ByDistance = False,
    by_relation: options.ByRelation = False,
    by_label: options.ByLabel = False,
    trees: options.Trees = False,
    gates: options.Gates = False,
    attention: options.Attention = False,
    compare: options.Compare = None,
    robustness: options.Robustness = False,
    label: options.Label = None,
    where: options.Where = None,
    run: options.Run = None,
    test: options.Test = None,
    baseline: options.Baseline = None,
    hypotheses: options.Hypotheses = None,
    references: options.References = None,
    source: options.Source = None,
    metric: options.MetricName = "bleu",
    tokenize: options.Tokenize = None,
    lowercase: options.Lowercase = None,
    buckets: options.Buckets = None,
    unit: options.Unit = "words",
    parses: options.Parses = None,
    gold: options.Gold = None,
    head: options.Head = None,
    side: options.Side = "source",
    draw: options.Draw = 0,
    sentence: options.Sentence = 1,
    what: options.Show = "weights",
    top: options.Top = 20,
    shares: options.Shares = "0,0.1,0.25,0.5,0.75,1",
    seed: options.Seed = 1,
    parser: options.Parser = None,
    plot: options.Plot = None,
    page: options.Page = None,
    as_json: options.AsJson = False,
) -> None:
    """Find out where a system gains, which trees it has learnt, what its heads look at, and which words use syntax.

    Several analyses may be asked for at once; --html puts all of them on one page.

    Example: [bold]synmt analyze --by-length --baseline runs/multi30k-tiny --plot length.png[/]

    Example: [bold]synmt analyze --by-depth --attention --robustness --html report.html[/]

    Example: [bold]synmt analyze --compare runs/multi30k-tiny runs/multi30k-pascal --html compare.html[/]
    """
    # each kind of analysis takes the options of its own, by name
    given = dict(locals())
    typed = typed_options(context, {"labels": options.LABELS_FILE})
    kinds = _kinds(typed)
    _check_input({shown: given[name] for name, shown in typed.items()})
    _check_files(kinds, plot, page)
    _tell(_find_all(kinds, given), page, as_json=as_json)


def _kinds(typed: dict[str, str]) -> list[_Kind]:
    """Find the kinds of analysis that were asked for, and refuse options that none of them has."""
    asked = [kind for kind in _KINDS if any(name in typed for name in kind.asked_by)]
    for name, shown in typed.items():
        owners = [kind for kind in _KINDS if name in kind.options]
        if owners and not any(kind in asked for kind in owners):
            several = len(owners) > 1 or len(owners[0].asked_by) > 1
            add = "Add one of them" if several else "Add it"
            raise UsageError(f"{shown} belongs to {' or '.join(kind.name for kind in owners)}", do=add)
    if "parses" in typed and not any(name in typed for name in _READING):
        *names, last = ("`--" + name.replace("_", "-") + "`" for name in _READING)
        raise UsageError("trees were given, but not asked for", do=f"Add {', '.join(names)} or {last}")
    if not asked:
        names = [kind.name for kind in _KINDS]
        raise UsageError("no analysis was asked for", do=f"Ask for {', '.join(names[:-1])} or {names[-1]}")
    return asked


def _check_input(given: dict[str, Any]) -> None:
    """Refuse to read standard input twice; `given` is what was typed, by the option's name."""
    values = ((name, one) for name, value in given.items() for one in (value if name == "--compare" else [value]))
    piped = [name for name, value in values if str(value) == "-"]
    if len(piped) > 1:
        both = " and ".join(dict.fromkeys(piped))
        raise UsageError("standard input can be read only once", where=both, do="Give files for the others")


def _check_files(kinds: Sequence[_Kind], plot: Path | None, page: Path | None) -> None:
    if plot and sum("plot" in kind.options for kind in kinds) > 1:
        raise UsageError("several analyses would draw into one file", where=str(plot), do="Ask for one at a time")
    if page:
        from synmt.analysis.html import check_page

        check_page(page)
        if any(kind.figures for kind in kinds):
            from synmt.analysis.plots import check_matplotlib

            check_matplotlib()


def _find_all(kinds: Sequence[_Kind], given: dict[str, Any]) -> dict[str, AnalysisReport]:
    """Make the analyses; all that take the newest run take the same one, and it is said which."""
    # translations of files need no run
    taking = [
        kind for kind in kinds if "run" in kind.options and not ("hypotheses" in kind.options and given["hypotheses"])
    ]
    chosen = {"run": _newest_run() if taking and given["run"] is None else given["run"]}
    return {
        kind.asked_by[0]: kind.find(
            **{name: (chosen if kind in taking else {}).get(name, given[name]) for name in kind.options}
        )
        for kind in kinds
    }


def _newest_run() -> Path | None:
    """Find the run that is taken where none is named, and say which it is; None where there is none to take."""
    from synmt.run import find_run

    try:
        newest = find_run(None).folder
    except SynmtError:
        # whatever needs it says so, after it has looked at its own options
        return None
    console.remark(f"run: {newest}")
    return newest


def _tell(findings: dict[str, AnalysisReport], page: Path | None, *, as_json: bool) -> None:
    # what may still fail comes before anything is printed
    made = _make_page(list(findings.values())) if page else ""
    values = {name: finding.values() for name, finding in findings.items()} if as_json else {}
    # whoever reads only the first lines, as `head` does, gets the page all the same
    if page:
        from synmt.files import write_atomically

        with console.written("page", page), write_atomically(page) as out:
            out.write(made)
    if values:
        shown = values if len(values) > 1 else next(iter(values.values()))
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        _print(list(findings.values()))


def _print(findings: Sequence[AnalysisReport]) -> None:
    for number, finding in enumerate(findings):
        if number:
            print()
        finding.show()


def _make_page(findings: Sequence[AnalysisReport]) -> str:
    from synmt.analysis.html import code, make_page, paragraph, table
    from synmt.analysis.run_facts import facts_table
    from synmt.run import Run

    sections = [section for finding in findings for section in finding.sections()]
    systems = ", ".join(dict.fromkeys(finding.system for finding in findings))
    runs = {folder.resolve(): Run(folder) for finding in findings for folder in finding.runs}
    columns, rows = facts_table(list(runs.values()))
    made_by = paragraph(f"Made by synmt {__version__} on {date.today().isoformat()}:", faint=True)
    return make_page(
        systems,
        sections,
        about=table(columns, rows, caption="Runs" if len(runs) > 1 else "The run", words=True) if rows else "",
        made_by=made_by + code(shlex.join(["synmt", *sys.argv[1:]])),
    )
