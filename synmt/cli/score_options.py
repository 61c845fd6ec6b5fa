"""The options of `synmt score`, as its help page shows them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from synmt.cli.command import PARSERS, option

# one panel of the help page for each kind of options
_texts = partial(option, "Translations")
_tests = partial(option, "Significance")
_model = partial(option, "Probabilities given by a model")

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
    _texts(
        "The references, a line for each translation; default: those of the first run.",
        "--reference",
        "-r",
        metavar="FILE",
    ),
]
Source = Annotated[
    Path | None,
    option(
        None,
        "Source sentences, for COMET (default: those of the first run) or for --target.",
        "--source",
        "-s",
        metavar="FILE",
    ),
]
Test = Annotated[str | None, _texts("The test set of the runs; default: `test`, else the first by name.")]
Metrics = Annotated[
    str,
    _texts(
        "Any of bleu, bleu1, bleu2, bleu3, chrf, chrf++, ter, ribes, comet, beer, separated by commas.",
        "--metrics",
        "--metric",
        "-m",
    ),
]
On = Annotated[
    str | None,
    _texts(
        "Score the text of runs, or the words that their models wrote; default: as in the first run's "
        "recipe. Token-level scores are marked `on tokens`.",
        metavar="text|tokens",
    ),
]
Tokenize = Annotated[
    str | None,
    _texts("Tokenization of BLEU: 13a, intl, zh, ja-mecab, char, none …; default: that of the first run, else 13a."),
]
Lowercase = Annotated[
    bool | None,
    _texts(
        "Ignore case in BLEU and chrF, or not; default: as in the first run's recipe, else not.",
        "--lowercase/--cased",
    ),
]
CometModel = Annotated[str | None, _texts("The model of COMET.", metavar="NAME|FILE")]
Beer = Annotated[Path | None, _texts("Folder of BEER; default: $BEER_HOME.", metavar="FOLDER")]
Sentences = Annotated[
    Path | None,
    _texts(
        "Write the scores of every segment, a row for each; .jsonl has the texts too.", metavar="FILE.tsv|FILE.jsonl"
    ),
]
Cost = Annotated[
    bool,
    _texts(
        "Also show what each run costs: weights, time and memory of training, time and speed of parsing, speed of "
        "translation, and steps to the lowest loss of the first run.",
        "--cost",
    ),
]
GroupSeeds = Annotated[
    bool,
    _tests(
        "Treat files or runs as seeds of one system if their names differ only in `-seed1`, `.seed1`, or after the "
        "last dot.",
        "--seeds",
    ),
]
Tests = Annotated[
    str | None,
    _tests(
        "Any of bootstrap, randomization, t (paired t-test), ks (Kolmogorov-Smirnov), seeds (Welch's t-test), "
        "separated by commas.",
        show_default="bootstrap, randomization, and seeds if a system has several",
    ),
]
Samples = Annotated[
    int | None,
    _tests("Number of resamples or permutations.", min=1, show_default="1,000 resamples, 10,000 permutations"),
]
Seed = Annotated[int, _tests("Seed of the resamples and permutations.", min=0)]
Runs = Annotated[
    list[Path] | None,
    option(
        None,
        "Runs whose translations are scored; with --target or --contrast, their models score those texts.",
        "--run",
        "--model",
        metavar="RUN …",
        show_default=False,
    ),
]
Target = Annotated[Path | None, _model("Translations of --source to score.", metavar="FILE")]
Contrast = Annotated[
    list[str] | None,
    _model(
        "Pairs of a right and a wrong translation: a folder with src.XX, correct.YY, incorrect.YY, or a folder of "
        "such folders; .tsv; .json of LingEval97 or ContraPro; or `controlled` for those of the controlled corpus. "
        "Repeat the option for more. Log-probabilities favour the shorter text of a pair; means over the pieces do "
        "not. --json has each group's accuracy by both.",
        metavar="PATH|controlled",
    ),
]
Checkpoint = Annotated[str, _model("The weights of the run.", metavar="final|best|last|average")]
Parses = Annotated[
    Path | None, _model("Trees of --source; default: the model's parser makes them.", metavar="FILE.conllu")
]
Parser = Annotated[str | None, _model("New location of the runs' parser, if it has moved.", metavar=PARSERS)]
BatchSize = Annotated[int | None, _model("Sentences in a batch.", min=1, show_default="the recipe's")]
Device = Annotated[str, _model("Device: auto, cpu, cuda, cuda:1 …, mps")]
