"""The options of `synmt score`, as its help page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TEXTS, _TESTS, _MODEL = "Translations", "Significance", "A model's own probabilities"
"""The panels of the help page."""

TRANSLATIONS = "TRANSLATIONS"

Systems = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar=TRANSLATIONS,
        show_default=False,
        help="One for each system: a file, `-` for standard input, a run folder, or a quoted pattern such as "
        "'pascal.*' that stands for several seeds of one system.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        "-r",
        rich_help_panel=_TEXTS,
        help="The references, a line for each translation; else those of the first run.",
    ),
]
Source = Annotated[
    Path | None,
    typer.Option("--source", "-s", help="What was translated, for COMET, else that of the first run; or for --model."),
]
Test = Annotated[
    str | None,
    typer.Option(rich_help_panel=_TEXTS, help="The runs' test set; else `test`, or the first by name."),
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics",
        "--metric",
        "-m",
        rich_help_panel=_TEXTS,
        help="Any of bleu, bleu1, bleu2, bleu3, chrf, chrf++, ter, ribes, comet, beer, with commas.",
    ),
]
Tokenize = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_TEXTS,
        help="How BLEU cuts words: 13a, intl, zh, ja-mecab, char, none …; else as the first run's recipe, or 13a.",
    ),
]
Lowercase = Annotated[
    bool | None,
    typer.Option(
        "--lowercase/--cased",
        rich_help_panel=_TEXTS,
        help="Ignore case in BLEU and chrF, or not; else as the first run's recipe, or not.",
    ),
]
CometModel = Annotated[str | None, typer.Option(metavar="NAME|FILE", rich_help_panel=_TEXTS, help="COMET's model.")]
Beer = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", rich_help_panel=_TEXTS, help="Where BEER is unpacked; else $BEER_HOME."),
]
Sentences = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.tsv|FILE.jsonl",
        rich_help_panel=_TEXTS,
        help="Write every segment's scores, a row for each segment; .jsonl has the texts as well.",
    ),
]
GroupSeeds = Annotated[
    bool,
    typer.Option(
        "--seeds",
        rich_help_panel=_TESTS,
        help="Files or runs that differ only in `-seed1`, `.seed1`, or behind their last dot, are one system.",
    ),
]
Tests = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_TESTS,
        show_default="bootstrap,randomization, and seeds where there are",
        help="Any of bootstrap, randomization, t, ks, seeds, with commas.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=_TESTS,
        show_default="1,000 of the bootstrap, 10,000 of randomisation",
        help="How often is drawn.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, rich_help_panel=_TESTS, help="Seed of what is drawn.")]
Models = Annotated[
    list[Path] | None,
    typer.Option("--model", metavar="RUN", rich_help_panel=_MODEL, help="A run folder (again for more)."),
]
Target = Annotated[
    Path | None, typer.Option(rich_help_panel=_MODEL, help="Translations of --source, to be given probabilities.")
]
Contrast = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH|controlled",
        rich_help_panel=_MODEL,
        help="Pairs of a right and a wrong translation: a folder with src.XX, correct.YY, incorrect.YY, or a folder of "
        "such folders; .tsv; .json of LingEval97 or ContraPro; or those of the controlled corpus (again for more). "
        "The log-probability favours the shorter text of a pair, its mean over the pieces does not: --json has the "
        "accuracy of each group by both.",
    ),
]
Checkpoint = Annotated[
    str,
    typer.Option(metavar="final|best|last|average", rich_help_panel=_MODEL, help="The weights."),
]
Parses = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu", rich_help_panel=_MODEL, help="Trees of --source; else the model's parser makes them."
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=_MODEL, show_default="the recipe's", help="Sentences side by side."),
]
Device = Annotated[str, typer.Option(rich_help_panel=_MODEL, help="auto, cpu, cuda, cuda:1 …")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
