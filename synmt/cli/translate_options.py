"""The options of `synmt translate`, as its help page shows them, and which of them fit together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from synmt.cli.command import PARSERS, option
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files.writing import wrong_compression

# one panel of the help page for each subject; options without a panel come first
_search, _sampling = partial(option, "Search"), partial(option, "Sampling")
_trees, _output = partial(option, "Trees"), partial(option, "Input and output")

Input = Annotated[
    str, typer.Argument(metavar="INPUT", help="Text, one sentence per line, .gz too; - is standard input.")
]
RunFolders = Annotated[
    list[Path] | None,
    option(
        None,
        "A run folder; default: the newest finished one. Several make an ensemble of runs with the same "
        "vocabularies: their probabilities are averaged, and the search settings come from the first run's recipe.",
        metavar="RUN …",
        show_default=False,
    ),
]
Checkpoint = Annotated[
    str, option(None, "The weights; final: those that the recipe uses.", metavar="final|best|last|average")
]
Device = Annotated[str, option(None, "Device: auto, cpu, cuda, cuda:1 …, mps")]
Precision = Annotated[
    Literal["float32", "bf16", "int8"],
    option(
        None,
        "Precision of the linear layers. bf16 and int8 are faster for files, on processors that have instructions for "
        "them, and change a few translations.",
    ),
]

BeamSize = Annotated[int | None, _search("Beam size; 1 is greedy search.", min=1, show_default="the recipe's")]
LengthPenalty = Annotated[
    float | None,
    _search("α of the length penalty of Wu et al. (2016); 0: none.", min=0, show_default="the recipe's"),
]
NoRepeat = Annotated[
    int,
    _search(
        "Forbid repeated n-grams of N pieces in a translation, to prevent loops; 0 allows them.", metavar="N", min=0
    ),
]
NBest = Annotated[int, _search("Number of translations for each line.", metavar="N", min=1)]
Groups = Annotated[
    int,
    _search(
        "Groups of diverse beam search (Vijayakumar et al., 2018), which share the beam, for more variety in an n-best "
        "list. Duplicates are removed, so a list may be shorter than --n-best.",
        min=1,
    ),
]
Diversity = Annotated[
    float | None,
    _search(
        "Penalty of a piece, in nats, for each hypothesis of an earlier group that has just chosen it; needs --groups.",
        show_default="0.5",
    ),
]
Prefixes = Annotated[
    Path | None,
    _search(
        "File with one prefix per line (may be empty). The translation must begin with it; its log-probability counts "
        "in the score.",
        metavar="FILE",
    ),
]
BatchSize = Annotated[int | None, _search("Sentences translated in parallel.", min=1, show_default="the recipe's")]

Sample = Annotated[
    bool,
    _sampling("Draw pieces at random instead of searching with a beam; --n-best is the number of samples.", "--sample"),
]
TopK = Annotated[int | None, _sampling("Draw from the K most probable pieces.", min=1, show_default="all")]
TopP = Annotated[
    float | None, _sampling("Draw from the smallest set of pieces with this total probability.", show_default="1")
]
Temperature = Annotated[
    float | None,
    _sampling("Below 1 sharpens, above 1 flattens the distribution; applied before top-k and top-p.", show_default="1"),
]
Seed = Annotated[
    int | None,
    _sampling(
        "Random seed. A line's sample depends only on the seed, the line and its number, not on the other lines.",
        show_default="1",
    ),
]

Parser = Annotated[
    str | None,
    _trees(
        "New location of the run's parser, if it has moved.",
        metavar=PARSERS,
    ),
]
Parses = Annotated[Path | None, _trees("A tree for each line, instead of parsing.", metavar="FILE.conllu")]
ParseOverride = Annotated[
    Path | None,
    _trees(
        "Translate each line a second time with the tree in this file. Output: three tab-separated columns, the "
        "translation, the translation with the other tree, and the change in the log-probability of the first.",
        metavar="FILE.conllu",
    ),
]
NoParseCache = Annotated[
    bool,
    _trees(
        "Neither read nor store trees in $SYNMT_CACHE/parses (at most 500 MB per parser, without the text).",
        "--no-parse-cache",
    ),
]

Output = Annotated[
    Path | None,
    _output(
        "The file to write, compressed if it ends in .gz; -: standard output. Default: standard output.",
        "--output",
        "-o",
        metavar="FILE",
    ),
]
Scores = Annotated[bool, _output("Add the score to each line, after a tab.", "--scores")]
Tokens = Annotated[
    bool,
    _output("Write tokenized output (no detokenization), for a run whose recipe tokenizes text.", "--tokens"),
]
Alignments = Annotated[
    str | None,
    _output(
        "Write the word alignment of each line: `0-0 1-2 …`, source word first, counted from 0; words are separated by "
        "whitespace, and those of --tokens if the run tokenizes text. With --jsonl, - puts it into the objects.",
        metavar="FILE",
    ),
]
JsonLines = Annotated[
    bool,
    _output(
        "Read and write one JSON object per line. Input: `source` (or `text`), optionally `prefix` and `parse` (its "
        "tree as CoNLL-U, or null). Output: `translation`, `score`, `log_probability`, `dropped`, `degenerate`; "
        "the fields of the input are copied as they are, an own `score` as `input_score`.",
        "--jsonl",
    ),
]


def missing_names(runs: list[Path]) -> Iterator[SynmtError]:
    """Make an error for each name after the first run that does not exist: it may be that of a run or of the text."""
    for path in runs[1:]:
        if not path.exists():
            what = "there is neither a run folder nor a text of this name"
            near = (other.parent.name for other in path.parent.glob("*/run.json"))
            yield UsageError(what, where=str(path), do=did_you_mean(path.name, near))


@dataclass(frozen=True)
class TranslateArguments:
    """Files and formats of `synmt translate`, by the names of the options."""

    source: str
    output: Path | None
    prefixes: Path | None
    parser: str | None
    parses: Path | None
    parse_override: Path | None
    alignments: str | None
    jsonl: bool
    scores: bool
    n_best: int
    tokens: bool = False

    @property
    def where(self) -> str:
        """The name of the input in messages."""
        return "standard input" if self.source == "-" else self.source

    @property
    def prints(self) -> bool:
        """Whether the translations go to standard output."""
        return self.output is None or str(self.output) == "-"

    @property
    def alignment_file(self) -> Path | None:
        """Where alignments are written; None for nowhere, or into the JSON objects."""
        return None if self.alignments in (None, "-") else Path(self.alignments)

    def validate(self, checkpoint: str, runs: list[Path]) -> None:
        """Refuse arguments that do not fit together; the error lists every problem."""
        from synmt.run import wrong_checkpoint

        wrong = wrong_checkpoint(checkpoint, "--checkpoint")
        problems = [
            *([wrong] if wrong else []),
            *missing_names(runs),
            *self._input_problems(),
            *self._output_problems(),
            *self._conflicts(),
        ]
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
            if wrong := wrong_compression(path):
                yield wrong
        if len(outputs) > len({os.path.realpath(path) for path in outputs.values()}):
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
