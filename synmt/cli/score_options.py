"""The options of `synmt score`, as its help page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_TEXTS, _TESTS, _MODEL = "Translations", "Significance", "Probabilities given by a model"
"""The panels of the help page."""

TRANSLATIONS = "TRANSLATIONS"

Systems = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar=TRANSLATIONS,
        show_default=False,
        help="One for each system: a file, `-` for standard input, a run folder, or a quoted pattern such as "
        "'pascal.*' that matches several seeds of one system.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        "-r",
        rich_help_panel=_TEXTS,
        help="The references, a line for each translation; by default those of the first run.",
    ),
]
Source = Annotated[
    Path | None,
    typer.Option(
        "--source", "-s", help="Source sentences for COMET, by default those of the first run; or for --model."
    ),
]
Test = Annotated[
    str | None,
    typer.Option(rich_help_panel=_TEXTS, help="The test set of the runs; by default `test`, else the first by name."),
]
Metrics = Annotated[
    str,
    typer.Option(
        "--metrics",
        "--metric",
        "-m",
        rich_help_panel=_TEXTS,
        help="Any of bleu, bleu1, bleu2, bleu3, chrf, chrf++, ter, ribes, comet, beer, separated by commas.",
    ),
]
Tokenize = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_TEXTS,
        help="Tokenisation of BLEU: 13a, intl, zh, ja-mecab, char, none …; by default that of the first run, else 13a.",
    ),
]
Lowercase = Annotated[
    bool | None,
    typer.Option(
        "--lowercase/--cased",
        rich_help_panel=_TEXTS,
        help="Ignore case in BLEU and chrF, or not; by default as in the first run's recipe, else not.",
    ),
]
CometModel = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", rich_help_panel=_TEXTS, help="The model of COMET.")
]
Beer = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", rich_help_panel=_TEXTS, help="Folder of BEER; by default $BEER_HOME."),
]
Sentences = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.tsv|FILE.jsonl",
        rich_help_panel=_TEXTS,
        help="Write the scores of every segment, a row for each; .jsonl has the texts too.",
    ),
]
GroupSeeds = Annotated[
    bool,
    typer.Option(
        "--seeds",
        rich_help_panel=_TESTS,
        help="Take files or runs that differ only in `-seed1`, `.seed1`, or after their last dot, for one system.",
    ),
]
Tests = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_TESTS,
        show_default="bootstrap, randomization, and seeds if a system has several",
        help="Any of bootstrap, randomization, t, ks, seeds, separated by commas.",
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=_TESTS,
        show_default="1,000 resamples, 10,000 permutations",
        help="Number of resamples or permutations.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, rich_help_panel=_TESTS, help="Seed of the resamples and permutations.")]
Models = Annotated[
    list[Path] | None,
    typer.Option("--model", metavar="RUN", rich_help_panel=_MODEL, help="A run folder; repeat it for more models."),
]
Target = Annotated[Path | None, typer.Option(rich_help_panel=_MODEL, help="Translations of --source to score.")]
Contrast = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH|controlled",
        rich_help_panel=_MODEL,
        help="Pairs of a right and a wrong translation: a folder with src.XX, correct.YY, incorrect.YY, or a folder of "
        "such folders; .tsv; .json of LingEval97 or ContraPro; or `controlled` for those of the controlled corpus. "
        "Repeat it for more. Log-probabilities favour the shorter text of a pair, means over the pieces do not: --json "
        "has the accuracy of each group by both.",
    ),
]
Checkpoint = Annotated[
    str,
    typer.Option(metavar="final|best|last|average", rich_help_panel=_MODEL, help="The weights of the run."),
]
Parses = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu",
        rich_help_panel=_MODEL,
        help="Trees of --source; by default the model's parser makes them.",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=_MODEL, show_default="the recipe's", help="Sentences in a batch."),
]
Device = Annotated[str, typer.Option(rich_help_panel=_MODEL, help="auto, cpu, cuda, cuda:1 …")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
