"""`synmt analyze`: runs or translations -> where one system beats another, its trees, and how it uses syntax."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import typer

from synmt.analysis.inputs import log_once
from synmt.analysis.options import (
    AttentionOptions,
    CompareOptions,
    GateOptions,
    GroupOptions,
    RobustnessOptions,
    TreeOptions,
    WordOptions,
)
from synmt.analysis.report import AnalysisReport
from synmt.analysis.shared_options import USERS, check_use
from synmt.cli import analyze_options as options
from synmt.cli import console
from synmt.cli.command import AsJson, Format, chosen_format, is_run, newest_run, typed_options
from synmt.errors import SynmtError, UsageError, listed
from synmt.reporting.values import Report

if TYPE_CHECKING:
    from synmt.reporting.formats import Format as FormatName


AnyReport = Report | AnalysisReport


@dataclass(frozen=True)
class _Question:
    """One question that the command answers, by `synmt.analysis.NAME.report.analyze_NAME`.

    options: the record of its options, whose fields have the names of the command's parameters.
    flags: the parameters that ask it.
    figures: whether its sections of a page have figures made by matplotlib.
    several: whether it is about several runs.
    """

    name: str
    options: type
    flags: tuple[str, ...]
    figures: bool = False
    several: bool = False

    @property
    def names(self) -> set[str]:
        """The parameters that belong to the question."""
        return {*self.flags, *(field.name for field in fields(self.options))}

    def __str__(self) -> str:
        """Name the options that ask the question, for messages."""
        return " or ".join(map(_flag, self.flags))

    def read(self, values: Mapping[str, Any]) -> Any:
        """Make the record of options from the values of parameters; those that were not typed have its defaults."""
        chosen = {name: value for name, value in values.items() if name in {x.name for x in fields(self.options)}}
        if "run" in chosen and not self.several:
            [chosen["run"], *others] = chosen["run"]
            if others:
                what = f"{self} is about one run, not {1 + len(others)}"
                raise UsageError(what, where="--run", do="Run it once for each")
        return self.options(**chosen)

    def answer(self, options: Any) -> AnyReport:
        """Analyse with a record of options."""
        return resolve_name(f"synmt.analysis.{self.name}.report:analyze_{self.name}")(options)


_QUESTIONS = (
    _Question(
        "groups",
        GroupOptions,
        tuple(field.name for field in fields(GroupOptions) if field.name.startswith("by_")),
        figures=True,
        several=True,
    ),
    _Question("trees", TreeOptions, ("trees",)),
    _Question("gates", GateOptions, ("gates",)),
    _Question("attention", AttentionOptions, ("attention",), figures=True),
    _Question("compare", CompareOptions, ("compare",)),
    _Question("words", WordOptions, ("words", "ngrams"), figures=True, several=True),
    _Question("robustness", RobustnessOptions, ("robustness",), figures=True),
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
    words: options.Words = None,
    ngrams: options.Ngrams = False,
    robustness: options.Robustness = False,
    label: options.Label = None,
    where: options.Where = None,
    run: options.Run = None,
    test: options.Test = None,
    baseline: options.Baseline = None,
    group_seeds: options.GroupSeeds = False,
    hypotheses: options.Hypotheses = None,
    references: options.References = None,
    source: options.Source = None,
    metric: options.MetricName = GroupOptions.metric,
    tokenize: options.Tokenize = None,
    lowercase: options.Lowercase = None,
    buckets: options.Buckets = None,
    unit: options.Unit = GroupOptions.unit,
    parses: options.Parses = None,
    gold: options.Gold = None,
    head: options.Head = None,
    side: options.Side = None,
    draw: options.Draw = TreeOptions.draw,
    sentence: options.Sentence = AttentionOptions.sentence,
    what: options.Show = AttentionOptions.what,
    top: options.Top = CompareOptions.top,
    alignments: options.Alignments = None,
    training_text: options.TrainingText = None,
    shares: options.Shares = RobustnessOptions.shares,
    seed: options.Seed = RobustnessOptions.seed,
    parser: options.Parser = None,
    plot: options.Plot = None,
    page: options.Page = None,
    kind: Format = "text",
    as_json: AsJson = False,
) -> None:
    """Show where a system gains, which trees it has learned, what its heads attend to, which words use syntax.

    One command can make several analyses; --html writes all of them to one page.

    Example: [bold]synmt analyze --by-length --baseline runs/multi30k-tiny --plot length.png[/]

    Example: [bold]synmt analyze --by-length --run runs/plain runs/pascal runs/lisa --format latex[/]

    Example: [bold]synmt analyze --by-depth --attention --robustness --html report.html[/]

    Example: [bold]synmt analyze --compare runs/multi30k-tiny runs/multi30k-pascal --html compare.html[/]
    """
    typed = typed_options(context, {"labels": options.LABELS_FILE})
    _show(chosen_format(kind, as_json=as_json), _answer(*_with_run(typed, context.params)), page)


def _with_run(typed: dict[str, str], params: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Read a run folder in the place of labels as a value of --run."""
    labels = params["labels"]
    if labels is None or not is_run(labels):
        return typed, params
    typed = {**typed, "run": typed.get("run", "--run")}
    del typed["labels"]
    return typed, {**params, "labels": None, "run": [*(params["run"] or []), labels]}


_FEW = 3
"""Questions that the error for an option names; an option of more of them says little about what was meant."""


def _choose_questions(typed: Mapping[str, str]) -> list[_Question]:
    """Find the questions that were asked, and refuse options that have no effect in them."""
    chosen = [one for one in _QUESTIONS if any(name in typed for name in one.flags)]
    for name, spelling in typed.items():
        owners = [one for one in _QUESTIONS if name in one.names]
        if owners and not any(one in chosen for one in owners) and (chosen or len(owners) <= _FEW):
            add = "Add one of them" if len(owners) > 1 or len(owners[0].flags) > 1 else "Add it"
            raise UsageError(f"{spelling} needs {' or '.join(map(str, owners))}", do=add)
    if not chosen:
        flags = ", ".join(_flag(name) for one in _QUESTIONS for name in one.flags)
        raise UsageError("no analysis is chosen", do=f"Choose one or more of {flags}")
    return chosen


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _check_options(questions: Sequence[_Question], values: Mapping[str, Any], typed: Mapping[str, str]) -> None:
    """Refuse options that no chosen analysis uses, and standard input that is read twice."""
    if USERS.keys() & values.keys():
        check_use(values)
    lists = {name: value if isinstance(value, (list, tuple)) else [value] for name, value in values.items()}
    piped = [name for name, some in lists.items() for one in some if str(one) == "-"]
    if len(piped) > 1:
        both = " and ".join(dict.fromkeys(typed[name] for name in piped))
        raise UsageError("standard input can be read only once", where=both, do="Give files for the others")
    readers = [one for one in questions if piped and piped[0] in one.names]
    if len(readers) > 1:
        flags = listed(next(_flag(name) for name in one.flags if name in typed) for one in readers)
        what = f"standard input can be read only once, but {flags} need it"
        raise UsageError(what, where=typed[piped[0]], do="Give a file")


def _check_files(questions: Sequence[_Question], plot: Path | None, page: Path | None) -> None:
    if plot and len(_drawing(questions)) > 1:
        raise UsageError("several analyses would draw into one file", where=str(plot), do="Make one at a time")
    if page:
        from synmt.reporting.figures import has_matplotlib
        from synmt.reporting.page import check_page

        check_page(page)
        if any(one.figures for one in questions) and not has_matplotlib():
            console.warn("the page has no figures: `pip install 'synmt[plot]'` installs matplotlib, which draws them")


def _drawing(questions: Sequence[_Question]) -> list[_Question]:
    """List the questions whose figures --plot writes; that of --compare only if no other has one."""
    drawing = [one for one in questions if "plot" in one.names]
    return [one for one in drawing if one.name != "compare"] or drawing


def _answer(typed: Mapping[str, str], params: Mapping[str, Any]) -> dict[str, AnyReport]:
    """Answer all questions about the same run: the one that the user named, or the newest."""
    questions, values = _choose_questions(typed), {name: params[name] for name in typed}
    _check_options(questions, values, typed)
    _check_files(questions, params["plot"], params["page"])
    # groups may be about translations in files
    need_run = [one for one in questions if "run" in one.names and "hypotheses" not in one.names & values.keys()]
    default: dict[str, Any] = {}
    # without runs, the analysis reports that after it has checked its own options
    with suppress(SynmtError):
        default = {"run": [newest_run()]} if need_run and "run" not in values else {}
    drawing, undrawn = _drawing(questions), {name: value for name, value in values.items() if name != "plot"}
    # the first analysis begins when the options of all have been read
    chosen = [
        (one, one.read((default if one in need_run else {}) | dict(values if one in drawing else undrawn)))
        for one in questions
    ]
    with log_once():
        return {next(filter(typed.__contains__, one.flags)): one.answer(options) for one, options in chosen}


def _show(kind: FormatName, reports: Mapping[str, AnyReport], page: Path | None) -> None:
    # everything that may still fail comes before anything is printed
    html = ""
    if page:
        from synmt.analysis.page import page_of

        html = page_of(list(reports.values()), ["synmt", *sys.argv[1:]])
    values = {name: _as_json(report) for name, report in reports.items()} if kind == "json" else {}
    # the page is written first, because a reader such as `head` may close standard output
    if page:
        from synmt.files.writing import write_output

        with console.written("page", page), write_output(page) as out:
            out.write(html)
    if kind == "json":
        console.print_json(values if len(values) > 1 else next(iter(values.values())))
    else:
        _print_parts(reports, kind)


def _as_json(report: AnyReport) -> dict[str, Any]:
    return report.as_json() if isinstance(report, Report) else report.to_json()


def _print_parts(reports: Mapping[str, AnyReport], kind: FormatName) -> None:
    for number, (name, report) in enumerate(reports.items()):
        if number:
            print()
        if isinstance(report, Report):
            console.show_reports({name: report}, kind)
        else:
            make = report.to_text if kind == "text" else report.to_tables or report.to_text
            console.print_parts(make(), kind)
