"""The options of `synmt translate`, as its help page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from synmt.cli.arguments import wrong_checkpoint
from synmt.errors import SynmtError, UsageError, all_in_one

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


@dataclass(frozen=True, kw_only=True)
class TranslateArguments:
    """Files and formats of `synmt translate`, by the names of the options."""

    source: str
    output: Path | None
    prefixes: Path | None
    parses: Path | None
    parse_override: Path | None
    alignments: str | None
    jsonl: bool
    scores: bool
    n_best: int

    @property
    def where(self) -> str:
        """The name of the input in messages."""
        return "standard input" if self.source == "-" else self.source

    @property
    def alignment_file(self) -> Path | None:
        """Where alignments are written; None for nowhere, or into the JSON objects."""
        return None if self.alignments in (None, "-") else Path(self.alignments)

    def validate(self, checkpoint: str) -> None:
        """Refuse arguments that do not fit together; the error lists every problem."""
        wrong = wrong_checkpoint(checkpoint)
        problems = [*([wrong] if wrong else []), *self._input_problems(), *self._output_problems(), *self._conflicts()]
        if problems:
            raise all_in_one(problems)

    def _input_problems(self) -> Iterator[SynmtError]:
        others = {"--parses": self.parses, "--parse-override": self.parse_override, "--prefixes": self.prefixes}
        piped = [name for name, path in others.items() if str(path) == "-"]
        if self.source == "-" and piped:
            what = "prefixes" if piped[0] == "--prefixes" else "trees"
            yield UsageError(f"standard input cannot be both the text and its {what}", where=piped[0])
        elif len(piped) > 1:
            yield UsageError(f"standard input cannot be both {' and '.join(piped)}")

    def _output_problems(self) -> Iterator[SynmtError]:
        inputs = [Path(self.source)] if self.source != "-" else []
        inputs += [path for path in (self.parses, self.parse_override, self.prefixes) if path is not None]
        named = {"--output": self.output, "--alignments": self.alignment_file}
        outputs = {name: path for name, path in named.items() if path is not None}
        for name, path in outputs.items():
            if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
                yield UsageError("the output would replace the input", where=str(path))
            if path.is_dir():
                yield UsageError(f"'{path}' is a folder, not a file", where=name)
        if len(outputs) > len({path.resolve() for path in outputs.values()}):
            yield UsageError("the alignments would replace the translations", where=str(self.output))

    def _conflicts(self) -> Iterator[SynmtError]:
        if self.jsonl and self.scores:
            yield UsageError("with --jsonl, every object has its scores anyway", where="--scores")
        if self.jsonl and self.prefixes is not None:
            yield UsageError("with --jsonl, a prefix is the field `prefix` of its object", where="--prefixes")
        if self.alignments == "-" and not self.jsonl:
            yield UsageError(
                "the translations go to standard output", where="--alignments", do="Name a file, or add --jsonl"
            )
        if self.parse_override is not None and not self.jsonl and (self.scores or self.n_best > 1):
            yield UsageError(
                "a line already has three columns, without room for scores or an n-best list",
                where="--parse-override",
                do="Add --jsonl, which has room for all of them",
            )


def search_values(
    beam: dict[str, Any], sampling: dict[str, Any], *, sample: bool, groups: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leave out the search options that were not typed (None); raises UsageError if one of them has no effect.

    beam, sampling: the options of the beam and of sampling, by field name.
    """
    beam, sampling = ({name: value for name, value in one.items() if value is not None} for one in (beam, sampling))
    if sample and "beam_size" in beam:
        raise UsageError(
            "with --sample, --beam-size has no effect", do="Leave it out; --n-best is the number of translations"
        )
    if sampling and not sample:
        names = ", ".join("--" + name.replace("_", "-") for name in sampling)
        raise UsageError(f"without --sample, {names} has no effect", do="Add --sample")
    if "diversity" in beam and groups == 1:
        raise UsageError("with one group, --diversity has no effect", do="Add --groups 2 or more")
    return beam, sampling
