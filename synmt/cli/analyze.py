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

Labels = Annotated[
    Path | None,
    typer.Argument(metavar="LABELS.tsv", help="For --by-label and --where: tab-separated, a row of names first."),
]
ByLength = Annotated[bool, typer.Option("--by-length", help="Group by the length of the source.")]
ByLabel = Annotated[bool, typer.Option("--by-label", help="Group by labels: of the file given, else of the run.")]
Label = Annotated[list[str] | None, typer.Option(help="A column of the labels (again for more); else all.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="Only sentences with COLUMN=VALUE, or COLUMN!=VALUE, in the labels (again for more: all must hold).",
    ),
]
Run = Annotated[Path | None, typer.Option(help="A run folder; else the newest finished one.")]
Test = Annotated[str | None, typer.Option(help="The run's test set; else `test`, or the first by name.")]
Baseline = Annotated[Path | None, typer.Option(metavar="RUN|FILE", help="What to compare with: a run or translations.")]
Hypotheses = Annotated[Path | None, typer.Option(help="Translations, instead of a run.")]
References = Annotated[Path | None, typer.Option(help="Their references.")]
Source = Annotated[Path | None, typer.Option(help="Their source, for --by-length.")]
MetricName = Annotated[str, typer.Option(help="bleu, chrf or ter.")]
Tokenize = Annotated[
    str | None,
    typer.Option(help="How BLEU cuts words: 13a, intl, zh, ja-mecab, char, none …; else as the run's recipe, or 13a."),
]
Lowercase = Annotated[
    bool | None, typer.Option("--lowercase/--cased", help="Ignore case, or not; else as the run's recipe, or not.")
]
Buckets = Annotated[str, typer.Option(help="Last length of each bucket; one for all longer ones follows.")]
Unit = Annotated[str, typer.Option(help="What a length counts: words or characters.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the table into this .png, .svg or .pdf.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Trees = Annotated[
    bool, typer.Option("--trees", help="Compare trees read off the model's weights with gold or parsed ones.")
]
Gold = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu",
        help="For --trees: text and trees to compare with; for the target, trees of the test set's references. "
        "Else the test set, parsed.",
    ),
]
Head = Annotated[
    str | None,
    typer.Option(
        metavar="LAYER.HEAD",
        help="For --trees: an attention head, counted from 1, or `all`; else what has learnt trees.",
    ),
]
Side = Annotated[str, typer.Option(help="For --trees: source or target.")]
Draw = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="For --trees: draw so many sentences, here and as .svg (--plot or the run)."),
]
Gates = Annotated[
    bool,
    typer.Option("--gates", help="Show how far an LSTM's gate to syntax opens at each target word, by part of speech."),
]
Page = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE.html", help="For --gates: a page with the first sentences, words coloured."),
]


@dataclass(frozen=True)
class _Kind:
    """One kind of analysis: the options that ask for it, the function that shows it, and that function's options."""

    asked_by: tuple[str, ...]
    show: Callable[..., None]
    options: tuple[str, ...]


_SHARED = ("run", "test", "plot", "as_json")
_GROUPS = _Kind(
    ("by_length", "by_label"),
    analyze_groups,
    (
        *("by_length", "by_label", "labels", "label", "where", "baseline", "hypotheses", "references", "source"),
        *("metric", "tokenize", "lowercase", "buckets", "unit"),
    ),
)
_TREES = _Kind(("trees",), analyze_trees, ("gold", "head", "side", "draw"))
_GATES = _Kind(("gates",), analyze_gates, ("page",))


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
    kind = _TREES if trees else _GATES if gates else _GROUPS
    _check_options(context, kind)
    kind.show(**{name: given[name] for name in (*_SHARED, *kind.options)})


def _check_options(context: typer.Context, kind: _Kind) -> None:
    """Refuse options that say something about another analysis than the one asked for."""
    known = {*_SHARED, *kind.asked_by, *kind.options}
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in known:
            asked = " and ".join("--" + name.replace("_", "-") for name in kind.asked_by)
            raise UsageError(
                f"{parameter.opts[-1]} does not go with {asked}", do="Leave it out, or ask for one analysis at a time"
            )
