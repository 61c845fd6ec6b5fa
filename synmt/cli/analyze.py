"""`synmt analyze`: runs or translations -> where one system beats another, its trees, and how it uses syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from synmt.cli.analyze_gates import analyze_gates
from synmt.cli.analyze_groups import analyze_groups
from synmt.cli.analyze_trees import analyze_trees
from synmt.errors import UsageError

_SCORES, _TREES, _GATES = "Scores by group", "Trees", "Gates"
"""The panels of the help page; what all kinds of analysis take has no panel of its own."""

_FILE = "LABELS.tsv"

Labels = Annotated[
    Path | None,
    typer.Argument(metavar=_FILE, help="For --by-label and --where: tab-separated, a row of names first."),
]
ByLength = Annotated[
    bool, typer.Option("--by-length", rich_help_panel=_SCORES, help="Group by the length of the source.")
]
ByLabel = Annotated[
    bool,
    typer.Option("--by-label", rich_help_panel=_SCORES, help="Group by labels: of the file given, else of the run."),
]
Label = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=_SCORES, help="A column of the labels (again for more); else all."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        rich_help_panel=_SCORES,
        help="Only sentences with COLUMN=VALUE, or COLUMN!=VALUE, in the labels (again for more: all must hold).",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(metavar="RUN|FILE", rich_help_panel=_SCORES, help="What to compare with: a run or translations."),
]
Hypotheses = Annotated[Path | None, typer.Option(rich_help_panel=_SCORES, help="Translations, instead of a run.")]
References = Annotated[Path | None, typer.Option(rich_help_panel=_SCORES, help="Their references.")]
Source = Annotated[Path | None, typer.Option(rich_help_panel=_SCORES, help="Their source, for --by-length.")]
MetricName = Annotated[str, typer.Option(rich_help_panel=_SCORES, help="bleu, chrf or ter.")]
Tokenize = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_SCORES,
        help="How BLEU cuts words: 13a, intl, zh, ja-mecab, char, none …; else as the run's recipe, or 13a.",
    ),
]
Lowercase = Annotated[
    bool | None,
    typer.Option(
        "--lowercase/--cased", rich_help_panel=_SCORES, help="Ignore case, or not; else as the run's recipe, or not."
    ),
]
Buckets = Annotated[
    str,
    typer.Option(rich_help_panel=_SCORES, help="Last length of each bucket; one for all longer ones follows."),
]
Unit = Annotated[str, typer.Option(rich_help_panel=_SCORES, help="What a length counts: words or characters.")]
Trees = Annotated[
    bool,
    typer.Option(
        "--trees",
        rich_help_panel=_TREES,
        help="Compare trees read off the model's weights with gold or parsed ones.",
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu",
        rich_help_panel=_TREES,
        help="Text and trees to compare with; for the target, trees of the test set's references. "
        "Else the test set, parsed.",
    ),
]
Head = Annotated[
    str | None,
    typer.Option(
        metavar="LAYER.HEAD",
        rich_help_panel=_TREES,
        help="An attention head, counted from 1, or `all`; else what has learnt trees.",
    ),
]
Side = Annotated[str, typer.Option(rich_help_panel=_TREES, help="Whose trees: source or target.")]
Draw = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        show_default=False,
        rich_help_panel=_TREES,
        help="Draw so many sentences: here, and into the run or --plot.",
    ),
]
Gates = Annotated[
    bool,
    typer.Option(
        "--gates",
        rich_help_panel=_GATES,
        help="Show how far an LSTM's gate to syntax opens at each target word, by part of speech.",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE.html",
        rich_help_panel=_GATES,
        help="Write a page with the first sentences, words coloured.",
    ),
]
Run = Annotated[Path | None, typer.Option(help="A run folder; else the newest finished one.")]
Test = Annotated[str | None, typer.Option(help="The run's test set; else `test`, or the first by name.")]
Parser = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|official|compact",
        help="With --trees and --gates: the Stanza model that parses or tags; else the run's, or its recipe's.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw the table into this .png, .svg or .pdf; with --trees, the sentences of --draw (.svg)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class _Kind:
    """One kind of analysis: the options that ask for it, the function that shows it, and that function's options."""

    asked_by: tuple[str, ...]
    show: Callable[..., None]
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """What is typed to ask for it."""
        return " or ".join("--" + name.replace("_", "-") for name in self.asked_by)


_SHARED = ("run", "test", "plot", "as_json")
_KINDS = (
    _Kind(
        ("by_length", "by_label"),
        analyze_groups,
        (
            *("by_length", "by_label", "labels", "label", "where", "baseline", "hypotheses", "references", "source"),
            *("metric", "tokenize", "lowercase", "buckets", "unit"),
        ),
    ),
    _Kind(("trees",), analyze_trees, ("parser", "gold", "head", "side", "draw")),
    _Kind(("gates",), analyze_gates, ("parser", "page")),
)


def analyze(
    context: typer.Context,
    labels: Labels = None,
    by_length: ByLength = False,
    by_label: ByLabel = False,
    trees: Trees = False,
    gates: Gates = False,
    label: Label = None,
    where: Where = None,
    run: Run = None,
    test: Test = None,
    baseline: Baseline = None,
    hypotheses: Hypotheses = None,
    references: References = None,
    source: Source = None,
    metric: MetricName = "bleu",
    tokenize: Tokenize = None,
    lowercase: Lowercase = None,
    buckets: Buckets = "10,20,30,40,50",
    unit: Unit = "words",
    gold: Gold = None,
    head: Head = None,
    side: Side = "source",
    draw: Draw = 0,
    page: Page = None,
    parser: Parser = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Find out where a system gains, which trees it has learnt, and which words use them.

    Example: [bold]synmt analyze --by-length --baseline runs/multi30k-tiny --plot length.png[/]

    Example: [bold]synmt analyze --by-label labels.tsv --label attractors --where split!=length --json[/]

    Example: [bold]synmt analyze --trees --gold en_ewt-ud-dev.conllu --draw 3[/]

    Example: [bold]synmt analyze --gates --html gates.html[/]
    """
    # each kind of analysis takes the options of its own, by name
    given = dict(locals())
    kind = _kind(_typed(context))
    kind.show(**{name: given[name] for name in (*_SHARED, *kind.options)})


def _typed(context: typer.Context) -> dict[str, str]:
    """Find the parameters that were typed, and how each is called there."""
    return {
        str(parameter.name): _FILE
        if parameter.name == "labels"
        else "/".join(parameter.opts + parameter.secondary_opts)
        for parameter in context.command.params
        if (source := context.get_parameter_source(str(parameter.name))) and source.name == "COMMANDLINE"
    }


def _kind(typed: dict[str, str]) -> _Kind:
    """Find the one kind of analysis that was asked for, and refuse options of the others."""
    asked = [kind for kind in _KINDS if any(name in typed for name in kind.asked_by)]
    if len(asked) > 1:
        names = " and ".join(typed[name] for kind in asked for name in kind.asked_by if name in typed)
        raise UsageError(f"{names} are different analyses", do="Ask for one at a time")
    for name, shown in typed.items():
        owners = [kind for kind in _KINDS if name in kind.options]
        if owners and not any(kind in asked for kind in owners):
            add = "Add it" if sum(len(kind.asked_by) for kind in owners) == 1 else "Add one of the two"
            do = "Leave it out, or ask for one analysis at a time" if asked else add
            raise UsageError(f"{shown} belongs to {' or '.join(kind.name for kind in owners)}", do=do)
    if not asked:
        raise UsageError("no analysis was asked for", do="Ask for `--by-length`, `--by-label`, `--trees` or `--gates`")
    return asked[0]
