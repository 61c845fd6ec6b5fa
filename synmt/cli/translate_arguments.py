"""What `synmt translate` is given, and which of it fits together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from synmt.cli.command import PARSERS, WEIGHTS, Cluster, Device
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files.writing import wrong_compression
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.decode.options import Sampling

_SEARCH = "Search"
_SAMPLING = "Sampling"
_TREES = "Trees"
_FILES = "Input and output"


@dataclass(frozen=True, kw_only=True)
class TranslateArguments:
    """What `synmt translate` is given, in the order of its help page; None of the search is the recipe's."""

    source: Annotated[
        str, Option("Text, one sentence per line, .gz too; - is standard input.", metavar="INPUT", is_argument=True)
    ] = "-"
    run: Annotated[
        Sequence[Path],
        Option(
            "A run folder; default: the newest finished one. Several make an ensemble of runs with the same "
            "vocabularies: their probabilities are averaged, and the search settings come from the first run's recipe.",
            metavar="RUN …",
            show_default=False,
        ),
    ] = ()
    checkpoint: Annotated[str, Option("The weights; final: those that the recipe uses.", metavar=WEIGHTS)] = "final"
    device: Device = "auto"
    precision: Annotated[
        Literal["float32", "bf16", "int8"],
        Option(
            "Precision of the linear layers. bf16 and int8 are faster for files, on processors that have instructions "
            "for them, and change a few translations.",
        ),
    ] = "float32"
    beam_size: Annotated[
        int | None,
        Option("Beam size; 1 is greedy search.", panel=_SEARCH, minimum=1, show_default="the recipe's"),
    ] = None
    length_penalty: Annotated[
        float | None,
        Option(
            "α of the length penalty of Wu et al. (2016); 0: none.",
            panel=_SEARCH,
            minimum=0,
            show_default="the recipe's",
        ),
    ] = None
    no_repeat: Annotated[
        int,
        Option(
            "Forbid repeated n-grams of N pieces in a translation, to prevent loops; 0 allows them.",
            metavar="N",
            panel=_SEARCH,
            minimum=0,
        ),
    ] = 0
    n_best: Annotated[int, Option("Number of translations for each line.", metavar="N", panel=_SEARCH, minimum=1)] = 1
    groups: Annotated[
        int,
        Option(
            "Groups of diverse beam search (Vijayakumar et al., 2018), which share the beam, for more variety in an "
            "n-best list. Duplicates are removed, so a list may be shorter than --n-best.",
            panel=_SEARCH,
            minimum=1,
        ),
    ] = 1
    diversity: Annotated[
        float | None,
        Option(
            "Penalty of a piece, in nats, for each hypothesis of an earlier group that has just chosen it; needs "
            "--groups.",
            panel=_SEARCH,
            show_default="0.5",
        ),
    ] = None
    prefixes: Annotated[
        Path | None,
        Option(
            "File with one prefix per line (may be empty). The translation must begin with it; its log-probability "
            "counts in the score.",
            metavar="FILE",
            panel=_SEARCH,
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        Option("Sentences translated in parallel.", panel=_SEARCH, minimum=1, show_default="the recipe's"),
    ] = None
    sample: Annotated[
        bool,
        Option(
            "Draw pieces at random instead of searching with a beam; --n-best is the number of samples.",
            panel=_SAMPLING,
        ),
    ] = False
    top_k: Annotated[
        int | None,
        Option("Draw from the K most probable pieces.", panel=_SAMPLING, minimum=1, show_default="all"),
    ] = None
    top_p: Annotated[
        float | None,
        Option("Draw from the smallest set of pieces with this total probability.", panel=_SAMPLING, show_default="1"),
    ] = None
    temperature: Annotated[
        float | None,
        Option(
            "Below 1 sharpens, above 1 flattens the distribution; applied before top-k and top-p.",
            panel=_SAMPLING,
            show_default="1",
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option(
            "Random seed. A line's sample depends only on the seed, the line and its number, not on the other lines.",
            panel=_SAMPLING,
            show_default="1",
        ),
    ] = None
    parser: Annotated[
        str | None, Option("New location of the run's parser, if it has moved.", metavar=PARSERS, panel=_TREES)
    ] = None
    parses: Annotated[
        Path | None, Option("A tree for each line, instead of parsing.", metavar="FILE.conllu", panel=_TREES)
    ] = None
    parse_override: Annotated[
        Path | None,
        Option(
            "Translate each line a second time with the tree in this file. Output: three tab-separated columns, the "
            "translation, the translation with the other tree, and the change in the log-probability of the first.",
            metavar="FILE.conllu",
            panel=_TREES,
        ),
    ] = None
    no_parse_cache: Annotated[
        bool,
        Option(
            "Neither read nor store trees in $SYNMT_CACHE/parses (at most 500 MB per parser, without the text).",
            panel=_TREES,
        ),
    ] = False
    output: Annotated[
        Path | None,
        Option(
            "The file to write, compressed if it ends in .gz; -: standard output. Default: standard output.",
            names="--output -o",
            metavar="FILE",
            panel=_FILES,
        ),
    ] = None
    jsonl: Annotated[
        bool,
        Option(
            "Read and write one JSON object per line. Input: `source` (or `text`), optionally `prefix` and `parse` "
            "(its tree as CoNLL-U, or null). Output: `translation`, `score`, `log_probability`, `dropped`, "
            "`degenerate`; the fields of the input are copied as they are, an own `score` as `input_score`.",
            panel=_FILES,
        ),
    ] = False
    scores: Annotated[bool, Option("Add the score to each line, after a tab.", panel=_FILES)] = False
    tokens: Annotated[
        bool,
        Option("Write tokenized output (no detokenization), for a run whose recipe tokenizes text.", panel=_FILES),
    ] = False
    alignments: Annotated[
        str | None,
        Option(
            "Write the word alignment of each line: `0-0 1-2 …`, source word first, counted from 0; words are "
            "separated by whitespace, and those of --tokens if the run tokenizes text. With --jsonl, - puts it into "
            "the objects.",
            metavar="FILE",
            panel=_FILES,
        ),
    ] = None
    cluster: Cluster = None

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

    def loading(self) -> dict[str, Any]:
        """Return the arguments of `Translator.load`; raises UsageError if an option that was typed has no effect."""
        if self.sample and self.beam_size is not None:
            raise UsageError(
                "with --sample, --beam-size has no effect", do="Leave it out; --n-best is the number of translations"
            )
        if self.diversity is not None and self.groups == 1:
            raise UsageError("with one group, --diversity has no effect", do="Add --groups 2 or more")
        search = self._chosen("beam_size", "length_penalty", "batch_size", "diversity", "n_best", "groups", "no_repeat")
        return {
            "device": self.device,
            "checkpoint": self.checkpoint,
            "parser": self.parser,
            "alignment": self.alignments is not None,
            "parse_cache": not self.no_parse_cache,
            "precision": self.precision,
            "sampling": self._sampling(),
            **search,
        }

    def _sampling(self) -> Sampling | None:
        from synmt.decode.options import Sampling

        chosen = self._chosen("top_k", "top_p", "temperature", "seed")
        if self.sample:
            return Sampling(**chosen)
        if chosen:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise UsageError(f"{names}: only with --sample", do="Add --sample")
        return None

    def _chosen(self, *names: str) -> dict[str, Any]:
        """Return the values of options that were typed."""
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def validate(self) -> None:
        """Refuse arguments that do not fit together; the error lists every problem."""
        from synmt.run import wrong_checkpoint

        wrong = wrong_checkpoint(self.checkpoint, "--checkpoint")
        problems = [
            *([wrong] if wrong else []),
            *self._missing_names(),
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

    def _missing_names(self) -> Iterator[SynmtError]:
        # a name after the first run may be that of a run or of the text
        for path in self.run[1:]:
            if not path.exists():
                what = "there is neither a run folder nor a text of this name"
                near = (other.parent.name for other in path.parent.glob("*/run.json"))
                yield UsageError(what, where=str(path), do=did_you_mean(path.name, near))
