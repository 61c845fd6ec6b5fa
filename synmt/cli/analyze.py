"""`synmt analyze`: runs or translations -> where one system beats another, its trees, and how it
uses syntax."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from inspect import Parameter
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

from synmt.analysis.options import (
    AttentionOptions,
    CompareOptions,
    GateOptions,
    GroupOptions,
    RobustnessOptions,
    TreeOptions,
    WordOptions,
)
from synmt.cli import console
from synmt.cli.command import is_run
from synmt.cli.options import Declared, TableOptions, Typed, Values, command, declared, piped
from synmt.errors import UsageError
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.reporting.values import Report


@dataclass(frozen=True)
class _Question:
    """One question that the command answers, by `synmt.analysis.NAME.report.analyze_NAME`.

    record: of its options, whose fields have the names of the command's parameters.
    panel: of the help page, for the options that no other question has.
    ask: text of the flag that asks it, if no option of the record does.
    """

    name: str
    record: type
    panel: str
    ask: str = ""

    @cached_property
    def options(self) -> dict[str, Declared]:
        """The options that belong to the question, by their parameters."""
        flags = (
            [Declared(self.name, bool, Option(self.ask, asks=True), default=False)]
            if self.ask
            else []
        )
        return {declaration.name: declaration for declaration in [*flags, *declared(self.record)]}

    @property
    def flags(self) -> list[str]:
        """The parameters that ask it."""
        return [name for name, declaration in self.options.items() if declaration.option.asks]

    def read(self, values: Values) -> Any:
        """Make the record of options from the values of parameters; those that were not typed have
        its defaults."""
        names = {field.name for field in fields(self.record)}
        chosen = {name: value for name, value in values.items() if name in names}
        if "run" in chosen and "hypotheses" not in names:
            if len(chosen["run"]) > 1:
                raise UsageError(
                    f"{_flags([self])} is about one run", where="--run", do="Run it once for each"
                )
            [chosen["run"]] = chosen["run"]
        return self.record(**chosen)

    def answer(self, options: Any) -> Report:
        """Analyse with a record of options."""
        return resolve_name(f"synmt.analysis.{self.name}.report:analyze_{self.name}")(options)


_WEIGHTS = "Attention and gates"
_QUESTIONS = (
    _Question("groups", GroupOptions, "Scores by group"),
    _Question(
        "trees",
        TreeOptions,
        "Trees",
        "Compare the trees in the model's weights with gold trees or a parser's.",
    ),
    _Question(
        "gates",
        GateOptions,
        _WEIGHTS,
        "Show how far an LSTM's syntax gate opens at each target word, by part of speech.",
    ),
    _Question(
        "attention",
        AttentionOptions,
        _WEIGHTS,
        "Show what each head attends to: entropy, how often the strongest weight is on the parent, "
        "heat maps.",
    ),
    _Question("compare", CompareOptions, "Systems, sentence by sentence"),
    _Question("words", WordOptions, "Words"),
    _Question(
        "robustness",
        RobustnessOptions,
        "Robustness",
        "Translate the test set again with rewired, random, flat and other trees (--parser: "
        "another parser's).",
    ),
)


def _parameters() -> list[Parameter]:
    """Make the parameters of all options; one that several questions have is in no panel."""
    parameters: dict[str, Parameter] = {}
    for question in _QUESTIONS:
        for name, declaration in question.options.items():
            several = sum(name in other.options for other in _QUESTIONS) > 1
            parameters.setdefault(name, declaration.parameter(None if several else question.panel))
    return list(parameters.values())


@dataclass(frozen=True, kw_only=True)
class _PageOptions:
    page: Annotated[
        Path | None,
        Option(
            "Write all analyses to one self-contained page.", names="--html", metavar="FILE.html"
        ),
    ] = None


@partial(command, own=_parameters())
def analyze(values: Values, page: _PageOptions, tables: TableOptions, typed: Typed) -> None:
    """Show where a system gains, which trees it has learned, what its heads attend to, which words
    use syntax.

    One command can make several analyses; --html writes all of them to one page.

    Example: [bold]synmt analyze --by-length --baseline runs/multi30k-tiny --plot length.png[/]

    Example: [bold]synmt analyze --by-length --run runs/plain runs/pascal runs/lisa --format
        latex[/]

    Example: [bold]synmt analyze --by-depth --attention --robustness --html report.html[/]

    Example: [bold]synmt analyze --compare runs/multi30k-tiny runs/multi30k-pascal --html
        compare.html[/]
    """
    spellings = {"run": "--run", **typed}
    typed_values = {name: value for name, value in values.items() if name in typed}
    # a run folder may stand in the place of labels
    if "labels" in typed_values and is_run(typed_values["labels"]):
        typed_values["run"] = [*typed_values.get("run", []), typed_values.pop("labels")]
    reports = _answer(typed_values, spellings, page.page)
    if page.page:
        from synmt.analysis.run_facts import page_with_recipes
        from synmt.files.writing import write_output

        html = page_with_recipes(list(reports.values()), ["synmt", *sys.argv[1:]])
        # the page is written first, because a reader such as `head` may close standard output
        with console.written("page", page.page), write_output(page.page) as out:
            out.write(html)
    console.show_reports(reports, tables.format)


def _choose_questions(values: Values, spellings: Typed) -> list[_Question]:
    """Find the questions that were asked, and refuse options that none of them has."""
    chosen = [question for question in _QUESTIONS if any(name in values for name in question.flags)]
    for name in values:
        owners = [question for question in _QUESTIONS if name in question.options]
        if not any(owner in chosen for owner in owners):
            raise UsageError(f"{spellings[name]} needs {_flags(owners)}", do="Add one of them")
    if not chosen:
        raise UsageError("no analysis is chosen", do=f"Choose one or more of {_flags(_QUESTIONS)}")
    return chosen


def _flags(questions: Sequence[_Question]) -> str:
    return " or ".join(
        f"--{name.replace('_', '-')}" for question in questions for name in question.flags
    )


def _answer(values: Values, spellings: Typed, page: Path | None) -> dict[str, Report]:
    """Answer all questions; the first analysis begins when the options of all have been read."""
    questions = _choose_questions(values, spellings)
    if len(questions) > 1 and (piped(values) or "plot" in values):
        raise UsageError(
            "one analysis at a time can read standard input, or draw with --plot",
            do="Make one at a time",
        )
    if page:
        from synmt.reporting.page import check_page

        check_page(page)
    chosen = [question.read(values) for question in questions]
    return {
        question.name: question.answer(options)
        for question, options in zip(questions, chosen, strict=True)
    }
