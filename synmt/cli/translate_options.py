"""The options of `synmt translate`, as its help page shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_SEARCH, _SAMPLING, _TREES, _OUTPUT = "Search", "Sampling", "Trees", "Input and output"
"""The panels of the help page; what stands in none comes first."""

Input = Annotated[
    str, typer.Argument(metavar="[INPUT]", help="Text, one sentence a line, .gz too; - is standard input.")
]
RunFolders = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="RUN",
        help="A run folder; else the newest finished one. Again for an ensemble: runs with the same vocabularies, of "
        "any models. They vote with their probabilities; the first one's recipe says how to search.",
    ),
]
Checkpoint = Annotated[
    str, typer.Option(metavar="final|best|last|average", help="The weights; final: those the recipe uses.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")]

BeamSize = Annotated[
    int | None,
    typer.Option(min=1, show_default="the recipe's", rich_help_panel=_SEARCH, help="Hypotheses kept; 1 is greedy."),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option(min=0, show_default="the recipe's", rich_help_panel=_SEARCH, help="alpha of Wu et al. (2016)."),
]
NoRepeat = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=0,
        rich_help_panel=_SEARCH,
        help="No N pieces in a row come twice in a translation, against loops; 0 allows all.",
    ),
]
NBest = Annotated[int, typer.Option(metavar="N", min=1, rich_help_panel=_SEARCH, help="Translations of each line.")]
Groups = Annotated[
    int,
    typer.Option(
        min=1,
        rich_help_panel=_SEARCH,
        help="Parts of the beam that are kept apart, for an n-best list with more variety (Vijayakumar et al., 2018). "
        "What two of them find is listed once, so a list may be shorter than --n-best.",
    ),
]
Diversity = Annotated[
    float | None,
    typer.Option(
        show_default="0.5",
        rich_help_panel=_SEARCH,
        help="What a piece loses for each earlier group that has just taken it, in nats; needs --groups.",
    ),
]
Prefixes = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_SEARCH,
        help="What the translation of each line has to begin with: a line each, which may be empty. Its probability "
        "counts in the score.",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(min=1, show_default="the recipe's", rich_help_panel=_SEARCH, help="Sentences side by side."),
]

Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        rich_help_panel=_SAMPLING,
        help="Draw pieces at random instead of searching for the best: there is no beam, and --n-best says how many "
        "translations are drawn.",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(min=1, show_default="all", rich_help_panel=_SAMPLING, help="Only from the K most probable pieces."),
]
TopP = Annotated[
    float | None,
    typer.Option(
        show_default="1",
        rich_help_panel=_SAMPLING,
        help="Only from the most probable pieces that have this probability together.",
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        show_default="1", rich_help_panel=_SAMPLING, help="Below 1 sharpens, above 1 flattens, before the rest."
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        show_default="1",
        rich_help_panel=_SAMPLING,
        help="The same seed gives a line of the same number the same translation, whatever stands beside it.",
    ),
]

Parser = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|official|compact",
        rich_help_panel=_TREES,
        help="Where the parser that the run was trained with lies now; else where it lay then.",
    ),
]
Parses = Annotated[
    Path | None,
    typer.Option(metavar="FILE.conllu", rich_help_panel=_TREES, help="A tree for each line, instead of parsing here."),
]
ParseOverride = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.conllu",
        rich_help_panel=_TREES,
        help="Translate each line once more, under this tree of it. A line then has the translation, the one under "
        "this tree, and what this tree adds to the log-probability of the former, with tabs between.",
    ),
]
NoParseCache = Annotated[
    bool,
    typer.Option(
        "--no-parse-cache",
        rich_help_panel=_TREES,
        help="Neither use nor keep trees of earlier runs, in $SYNMT_CACHE/parses (500 MB a parser at most; no text).",
    ),
]

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        rich_help_panel=_OUTPUT,
        help="File to write, packed if it ends in .gz. Without it, or with -: standard output.",
    ),
]
Scores = Annotated[
    bool, typer.Option("--scores", rich_help_panel=_OUTPUT, help="Put the score behind each line, after a tab.")
]
Alignments = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=_OUTPUT,
        help="Write which source word each word of the translation comes from: `0-0 1-2 …`, a line each (source word "
        "first, from 0; words stand between blanks). With --jsonl, - puts it into the objects.",
    ),
]
JsonLines = Annotated[
    bool,
    typer.Option(
        "--jsonl",
        rich_help_panel=_OUTPUT,
        help="A JSON object on each line, in and out: in with `source` (or `text`), and perhaps `prefix` and `parse` "
        "(its tree as CoNLL-U, or null); out with `translation`, `score`, `log_probability`, `dropped`, `degenerate`. "
        "Other fields stay as they are.",
    ),
]
