"""What `synmt translate` is given, and which of it fits together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from synmt.cli.command import PARSERS, WEIGHTS, Cluster, Device
from synmt.cli.options import piped
from synmt.decode.options import Sampling
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files.writing import wrong_compression
from synmt.options import Option

_tree = partial(Option, panel="Trees")
_file = partial(Option, panel="Input and output")


@dataclass(frozen=True, kw_only=True)
class TranslateArguments:
    """What `synmt translate` is given.

    sample: whether to draw pieces.
    search: the options of SearchOptions and Sampling that have a value.
    """

    source: Annotated[
        str,
        Option(
            "Text, one sentence per line, .gz too; - is standard input.",
            metavar="INPUT",
            is_argument=True,
        ),
    ] = "-"
    run: Annotated[
        Sequence[Path],
        Option(
            "A run folder; default: the newest finished one. Several make an ensemble of runs with "
            "the same "
            "vocabularies: their probabilities are averaged, and the search settings come from the "
            "first run's recipe.",
            metavar="RUN …",
            show_default=False,
        ),
    ] = ()
    checkpoint: Annotated[
        str, Option("The weights; final: those that the recipe uses.", metavar=WEIGHTS)
    ] = "final"
    device: Device = "auto"
    precision: Annotated[
        Literal["float32", "bf16", "int8"],
        Option(
            "Precision of the linear layers. bf16 and int8 are faster for files, on processors "
            "that have instructions "
            "for them, and change a few translations.",
        ),
    ] = "float32"
    prefixes: Annotated[
        Path | None,
        Option(
            "File with one prefix per line (may be empty). The translation must begin with it; its "
            "log-probability "
            "counts in the score.",
            metavar="FILE",
            panel="Search",
        ),
    ] = None
    parser: Annotated[
        str | None, _tree("New location of the run's parser, if it has moved.", metavar=PARSERS)
    ] = None
    parses: Annotated[
        Path | None, _tree("A tree for each line, instead of parsing.", metavar="FILE.conllu")
    ] = None
    parse_override: Annotated[
        Path | None,
        _tree(
            "Translate each line a second time with the tree in this file. Output: three "
            "tab-separated columns, the "
            "translation, the translation with the other tree, and the change in the "
            "log-probability of the first.",
            metavar="FILE.conllu",
        ),
    ] = None
    no_parse_cache: Annotated[
        bool,
        _tree(
            "Neither read nor store trees in $SYNMT_CACHE/parses (at most 500 MB per parser, "
            "without the text).",
        ),
    ] = False
    output: Annotated[
        Path | None,
        _file(
            "The file to write, compressed if it ends in .gz; -: standard output. Default: "
            "standard output.",
            names="--output -o",
            metavar="FILE",
        ),
    ] = None
    jsonl: Annotated[
        bool,
        _file(
            "Read and write one JSON object per line. Input: `source` (or `text`), optionally "
            "`prefix` and `parse` "
            "(its tree as CoNLL-U, or null). Output: `translation`, `score`, `log_probability`, "
            "`dropped`, "
            "`degenerate`; the fields of the input are copied as they are, an own `score` as "
            "`input_score`.",
        ),
    ] = False
    scores: Annotated[bool, _file("Add the score to each line, after a tab.")] = False
    tokens: Annotated[
        bool,
        _file("Write tokenized output (no detokenization), for a run whose recipe tokenizes text."),
    ] = False
    alignments: Annotated[
        str | None,
        _file(
            "Write the word alignment of each line: `0-0 1-2 …`, source word first, counted from "
            "0; words are "
            "separated by whitespace, and those of --tokens if the run tokenizes text. With "
            "--jsonl, - puts it into "
            "the objects.",
            metavar="FILE",
        ),
    ] = None
    cluster: Cluster = None
    sample: bool = False
    search: Mapping[str, Any] = field(default_factory=dict)

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

    @property
    def is_list(self) -> bool:
        """Whether a line has a list of translations."""
        return self.search["n_best"] > 1

    def loading(self) -> dict[str, Any]:
        """Return the arguments of `Translator.load`; raises UsageError if an option that was typed
        has no effect."""
        search = self.search
        if self.sample and "beam_size" in search:
            raise UsageError(
                "with --sample, --beam-size has no effect",
                do="Leave it out; --n-best is the number of translations",
            )
        drawing = {one.name: search[one.name] for one in fields(Sampling) if one.name in search}
        if drawing and not self.sample:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in drawing)
            raise UsageError(f"{names}: only with --sample", do="Add --sample")
        if "diversity" in search and search["groups"] == 1:
            raise UsageError(
                "with one group, --diversity has no effect", do="Add --groups 2 or more"
            )
        return {
            "device": self.device,
            "checkpoint": self.checkpoint,
            "parser": self.parser,
            "alignment": self.alignments is not None,
            "parse_cache": not self.no_parse_cache,
            "precision": self.precision,
            **{name: value for name, value in search.items() if name not in drawing},
            "sampling": Sampling(**drawing) if self.sample else None,
        }

    def validate(self) -> None:
        """Refuse arguments that do not fit together; the error lists every problem."""
        from synmt.run_folder import wrong_checkpoint

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

    @property
    def _inputs(self) -> dict[str, Path | None]:
        paths = {
            "--parses": self.parses,
            "--parse-override": self.parse_override,
            "--prefixes": self.prefixes,
        }
        return {"INPUT": Path(self.source), **paths}

    def _input_problems(self) -> Iterator[SynmtError]:
        names = piped(self._inputs)
        if len(names) > 1:
            what = "standard input can be read only once"
            yield UsageError(what, where=" and ".join(names), do="Give files for the others")

    def _output_problems(self) -> Iterator[SynmtError]:
        inputs = [path for path in self._inputs.values() if path]
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
            yield UsageError(
                "the alignments would replace the translations", where=str(self.output)
            )

    def _conflicts(self) -> Iterator[SynmtError]:
        if self.jsonl and self.scores:
            yield UsageError("with --jsonl, every object has its scores anyway", where="--scores")
        if self.jsonl and self.prefixes is not None:
            yield UsageError(
                "with --jsonl, a prefix is the field `prefix` of its object", where="--prefixes"
            )
        if self.alignments == "-" and not self.jsonl:
            yield UsageError(
                "the translations go to standard output",
                where="--alignments",
                do="Name a file, or add --jsonl",
            )
        if self.parse_override is not None and not self.jsonl and (self.scores or self.is_list):
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
