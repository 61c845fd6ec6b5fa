"""The options of `synmt analyze`, as its help page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SCORES, _TREES, _WEIGHTS = "Scores by group", "Trees", "Attention and gates"
_COMPARED, _CHANGED = "Two systems, sentence by sentence", "Robustness"
"""The panels of the help page; what all kinds of analysis take has no panel of its own."""

LABELS_FILE = "LABELS.tsv"

Labels = Annotated[
    Path | None,
    typer.Argument(metavar=LABELS_FILE, help="For --by-label and --where: tab-separated, a row of names first."),
]
ByLength = Annotated[bool, typer.Option("--by-length", rich_help_panel=_SCORES, help="Group by length.")]
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
Hypotheses = Annotated[Path | None, typer.Option(help="Translations, instead of a run.")]
References = Annotated[Path | None, typer.Option(help="References of translations.")]
Source = Annotated[Path | None, typer.Option(help="Their source.")]
MetricName = Annotated[str, typer.Option(help="One of those of `synmt score`: bleu, chrf, ter, ribes …")]
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
    str | None,
    typer.Option(
        rich_help_panel=_SCORES,
        help="The papers': pascal, deps-san, ldd; or the last value of each bucket, such as 10,20,30. "
        "By default pascal for lengths, quarters of the data for depths and distances.",
    ),
]
Unit = Annotated[str, typer.Option(rich_help_panel=_SCORES, help="What a length counts: words, pieces or characters.")]
ByDepth = Annotated[bool, typer.Option("--by-depth", rich_help_panel=_SCORES, help="Group by the depth of the tree.")]
ByDistance = Annotated[
    bool,
    typer.Option(
        "--by-distance", rich_help_panel=_SCORES, help="Group by the mean, and by the longest, distance to a parent."
    ),
]
ByRelation = Annotated[
    bool, typer.Option("--by-relation", rich_help_panel=_SCORES, help="Group by the relations that a sentence has.")
]
Parses = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu",
        help="Trees of the test set, for --by-depth, --by-distance, --by-relation and --robustness; else it is parsed.",
    ),
]
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
        help="An attention head, counted from 1, or `all`. With --trees else what has learnt trees; with --attention "
        "else all.",
    ),
]
Side = Annotated[str, typer.Option(help="Whose lengths, trees, heads: source or target.")]
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
        rich_help_panel=_WEIGHTS,
        help="Show how far an LSTM's gate to syntax opens at each target word, by part of speech.",
    ),
]
Attention = Annotated[
    bool,
    typer.Option(
        "--attention",
        rich_help_panel=_WEIGHTS,
        help="Show what each head looks at: entropy, how often its top choice is the parent, heat maps.",
    ),
]
Sentence = Annotated[
    int, typer.Option(metavar="N", min=1, rich_help_panel=_WEIGHTS, help="The sentence of the heat maps.")
]
Show = Annotated[
    str,
    typer.Option(
        metavar="weights|factor|bias|cross",
        rich_help_panel=_WEIGHTS,
        help="What heat maps show: weights, a variant's factor or bias, or attention to the source.",
    ),
]
Compare = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        metavar="A B",
        rich_help_panel=_COMPARED,
        help="Two runs, or two files of translations: the sentences that differ most, with trees and alignments.",
    ),
]
Top = Annotated[int, typer.Option(metavar="N", min=1, rich_help_panel=_COMPARED, help="Sentences to show.")]
Robustness = Annotated[
    bool,
    typer.Option(
        "--robustness",
        rich_help_panel=_CHANGED,
        help="Translate the test set again under damaged trees, other parsers', and none.",
    ),
]
Shares = Annotated[
    str,
    typer.Option(rich_help_panel=_CHANGED, help="Shares of words that get another parent, with commas, from 0 to 1."),
]
Seed = Annotated[int, typer.Option(min=0, rich_help_panel=_CHANGED, help="Seed of the other parents.")]
Page = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE.html", help="Write all that was asked for as one self-contained page."),
]
Run = Annotated[Path | None, typer.Option(help="A run folder; else the newest finished one.")]
Test = Annotated[str | None, typer.Option(help="The run's test set; else `test`, or the first by name.")]
Parser = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|official|compact",
        help="The Stanza model that parses or tags; else the run's, or its recipe's. With --robustness: another one.",
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(help="Draw it into this .png, .svg or .pdf; with --trees, the sentences of --draw (.svg)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
