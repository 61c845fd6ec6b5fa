"""`synmt translate`: raw text -> translations, one output line per input line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from synmt.cli import console
from synmt.cli.command import PARSERS, WEIGHTS, Cluster, Device, is_run, loading, newest_run
from synmt.cli.options import Declared, command, declared, piped
from synmt.decode.options import Sampling, SearchOptions
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.decode.records import Record, Result, Windows
    from synmt.decode.remote import FinishedWindows, RemoteTranslator
    from synmt.decode.translator import Translator

_tree = partial(Option, panel="Trees")
_file = partial(Option, panel="Input and output")


@dataclass(frozen=True, kw_only=True)
class TranslateArguments:
    """What `synmt translate` is given, beside the options of the search."""

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
            "A run folder; default: the newest finished one. Several make an ensemble of runs "
            "with the same vocabularies: their probabilities are averaged, and the search "
            "settings come from the first run's recipe.",
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
            "that have instructions for them, and change a few translations.",
        ),
    ] = "float32"
    prefixes: Annotated[
        Path | None,
        Option(
            "File with one prefix per line (may be empty). The translation must begin with it; "
            "its log-probability counts in the score.",
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
            "tab-separated columns, the translation, the translation with the other tree, and "
            "the change in the log-probability of the first.",
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
            "`prefix` and `parse` (its tree as CoNLL-U, or null). Output: `translation`, "
            "`score`, `log_probability`, `dropped`, `degenerate`; the fields of the input are "
            "copied as they are, an own `score` as `input_score`.",
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
            "0; words are separated by whitespace, and those of --tokens if the run tokenizes "
            "text. With --jsonl, - puts it into the objects.",
            metavar="FILE",
        ),
    ] = None
    cluster: Cluster = None

    @property
    def where(self) -> str:
        """The name of the input in messages."""
        return "standard input" if self.source == "-" else self.source

    @property
    def output_file(self) -> Path | None:
        """The file that is written; None for standard output."""
        return None if str(self.output) == "-" else self.output

    @property
    def alignment_file(self) -> Path | None:
        """The file for alignments; None for nowhere, or into the JSON objects."""
        return None if self.alignments in (None, "-") else Path(self.alignments)


_SAMPLE = Option(
    "Draw pieces at random instead of searching with a beam; --n-best is the number of samples.",
    panel="Sampling",
)
_SEARCH = (
    *declared(SearchOptions),
    Declared("sample", bool, _SAMPLE, default=False),
    *declared(Sampling),
)
_DRAWING = [one.name for one in fields(Sampling)]


@partial(command, own=[one.parameter() for one in _SEARCH])
def translate(values: dict[str, Any], options: TranslateArguments) -> None:
    """Translate raw text: each input line gives one output line, as soon as it is ready.

    A run whose recipe tokenizes text (`text:`) tokenizes the input in the
    same way and joins the words of its translations. Trees in --parses must
    have one node for each of these words.

    A score is the log-probability after the length penalty. With --n-best
    above 1, lines are `number ||| translation ||| score`, numbered from 0.
    A line without text has one translation: an empty one, with the score 0.

    Characters that the vocabulary does not have are read and written byte by
    byte. Without `vocabulary.byte_fallback`, or with words as pieces, the model
    reads <unk> instead; a warning at the end says how often. Degenerate output
    (empty, looping, truncated, copied) is counted there too.

    Example: [bold]synmt translate --run runs/multi30k-pascal < text > translations[/]

    Example: [bold]synmt translate --jsonl --sample --top-p 0.9 < text.jsonl[/]
    """
    sample, is_list = values.pop("sample"), values["n_best"] > 1
    search = {name: value for name, value in values.items() if value is not None}
    if is_run(options.source):
        options = replace(options, run=[*options.run, Path(options.source)], source="-")
    if problems := [*_problems(options, is_list=is_list), *_idle_options(search, sample=sample)]:
        raise all_in_one(problems)
    drawing = {name: search.pop(name) for name in _DRAWING if name in search}
    arguments = {
        "device": options.device,
        "checkpoint": options.checkpoint,
        "parser": options.parser,
        "alignment": options.alignments is not None,
        "parse_cache": not options.no_parse_cache,
        "precision": options.precision,
        **search,
        "sampling": Sampling(**drawing) if sample else None,
    }
    _translate(options.run or [newest_run()], arguments, options, is_list=is_list)


def _problems(options: TranslateArguments, *, is_list: bool) -> Iterator[SynmtError]:
    """Find arguments that are wrong or do not fit together."""
    from synmt.run_folder import wrong_checkpoint

    if wrong := wrong_checkpoint(options.checkpoint, "--checkpoint"):
        yield wrong
    # a name after the first run may be that of a run or of the text
    for path in options.run[1:]:
        if not path.exists():
            what = "there is neither a run folder nor a text of this name"
            near = (other.parent.name for other in path.parent.glob("*/run.json"))
            yield UsageError(what, where=str(path), do=did_you_mean(path.name, near))
    yield from _file_problems(options)
    if options.jsonl and options.scores:
        yield UsageError("with --jsonl, every object has its scores anyway", where="--scores")
    if options.jsonl and options.prefixes is not None:
        yield UsageError(
            "with --jsonl, a prefix is the field `prefix` of its object", where="--prefixes"
        )
    if options.alignments == "-" and not options.jsonl:
        yield UsageError(
            "the translations go to standard output",
            where="--alignments",
            do="Name a file, or add --jsonl",
        )
    if options.parse_override is not None and not options.jsonl and (options.scores or is_list):
        yield UsageError(
            "a line already has three columns, without room for scores or an n-best list",
            where="--parse-override",
            do="Add --jsonl, which has room for all of them",
        )


def _file_problems(options: TranslateArguments) -> Iterator[SynmtError]:
    read = {
        "INPUT": Path(options.source),
        "--parses": options.parses,
        "--parse-override": options.parse_override,
        "--prefixes": options.prefixes,
    }
    names = piped(read)
    if len(names) > 1:
        what = "standard input can be read only once"
        yield UsageError(what, where=" and ".join(names), do="Give files for the others")
    inputs = [path for path in read.values() if path and path.exists()]
    written = {"--output": options.output, "--alignments": options.alignment_file}
    outputs = {name: path for name, path in written.items() if path is not None}
    for name, path in outputs.items():
        if path.exists() and any(map(path.samefile, inputs)):
            yield UsageError("the output would replace the input", where=str(path))
        if path.is_dir():
            yield UsageError(f"'{path}' is a folder, not a file", where=name)
    if len(outputs) > len({os.path.realpath(path) for path in outputs.values()}):
        yield UsageError("the alignments would replace the translations", where=str(options.output))


def _idle_options(search: dict[str, Any], *, sample: bool) -> Iterator[SynmtError]:
    """Find options of the search that have no effect."""
    if sample and "beam_size" in search:
        yield UsageError(
            "with --sample, --beam-size has no effect",
            do="Leave it out; --n-best is the number of translations",
        )
    names = ", ".join(f"--{name.replace('_', '-')}" for name in _DRAWING if name in search)
    if names and not sample:
        yield UsageError(f"{names}: only with --sample", do="Add --sample")
    if "diversity" in search and search["groups"] == 1:
        yield UsageError("with one group, --diversity has no effect", do="Add --groups 2 or more")


def _translate(
    runs: Sequence[Path], arguments: dict[str, Any], options: TranslateArguments, *, is_list: bool
) -> None:
    with loading():
        from synmt.decode.alignment import pharaoh
        from synmt.decode.override import check_override
        from synmt.decode.records import TranslationSummary, format_json, format_text
        from synmt.decode.remote import finished_windows, remote_translator
        from synmt.decode.translator import Translator
        from synmt.files.reading import known_lines
        from synmt.files.writing import write_output
        from synmt.parallel.engine import using_cluster

        translator = Translator.load(*runs, **arguments)
    if options.parse_override is not None:
        check_override(translator)
    _check_trees(translator, options)
    summary, output = TranslationSummary(translator.max_pieces), options.output_file
    lines, has_trees, cluster = known_lines(options.source), bool(options.parses), options.cluster
    if cluster and options.source == "-":
        console.remark(
            "standard input may come line by line, so this machine translates it, not the cluster"
        )
        cluster = None
    with ExitStack() as stack:
        stack.enter_context(using_cluster(cluster))
        remote = remote_translator(translator, runs, arguments, lines=lines, has_trees=has_trees)
        other = stack.enter_context(remote)
        # what is finished is forgotten last, when the output is complete
        kept = finished_windows(None if lines is None else output, runs, arguments)
        finished = stack.enter_context(kept)
        out = stack.enter_context(write_output(output))
        file = options.alignment_file
        alignments = stack.enter_context(write_output(file)) if file else None
        # not where the translations appear on the terminal, or where the input is a pipe
        shown = lines is not None and not (output is None and sys.stdout.isatty())
        bar = console.progress("translating", lines or 0, "lines") if shown else nullcontext(int)
        advance = stack.enter_context(bar)
        for window in _results(translator, options, other, finished, known=lines is not None):
            for record, result in window:
                if options.jsonl:
                    out.write(format_json(record, result, n_best=is_list))
                else:
                    out.write(format_text(result, n_best=is_list, scores=options.scores))
                if alignments is not None:
                    # a line without text has an empty one
                    found = result.own.alignment
                    alignments.write(f"{pharaoh(found.pairs) if found else ''}\n")
                summary.add(result)
            # a reader of the output gets each window as soon as it is ready
            out.flush()
            advance(len(window))
    summary.log()


def _results(
    translator: Translator,
    options: TranslateArguments,
    other: RemoteTranslator | None,
    finished: FinishedWindows | None,
    *,
    known: bool,
) -> Iterator[list[tuple[Record, Result]]]:
    """Translate the input, window by window.

    known: whether all lines are there; those of a pipe are not waited for.
    """
    from synmt.decode.inputs import windows as windows_of
    from synmt.decode.records import joined_result
    from synmt.decode.remote import translate_windows
    from synmt.files.reading import decode_lines, open_binary, raw_lines, read_available_lines

    size = (other or translator).window
    with open_binary(options.source, allowed=["JSON"] if options.jsonl else ()) as stream:
        if other and known:
            lines = windows_of(decode_lines(raw_lines(stream), where=options.where), size)
        else:
            lines = read_available_lines(stream, size, where=options.where)
        windows, again = tee(_records(lines, options, translator))
        requests = ([record.request for record in window] for window in again)
        translated = translate_windows(translator, requests, other=other, finished=finished)
        # what is translated is read first, so that a window is not waited for before it is needed
        for results, window in zip(translated, windows, strict=True):
            if not options.tokens:
                results = [joined_result(one, translator.tokenizers["target"]) for one in results]
            yield list(zip(window, results, strict=True))


def _records(
    lines: Iterator[list[str]], options: TranslateArguments, translator: Translator
) -> Windows:
    from synmt.decode.records import add_trees, read_json, read_text

    trees, tokenizers, where = translator.reads_trees, translator.tokenizers, options.where
    if options.jsonl:
        records = read_json(lines, where=where, trees=trees, tokenizers=tokenizers)
    else:
        records = read_text(lines, options.prefixes, tokenizers=tokenizers)
    if options.parses is not None and trees:
        records = add_trees(records, options.parses, "tree")
    if options.parse_override is None:
        return records
    return add_trees(records, options.parse_override, "other_tree")


def _check_trees(translator: Translator, options: TranslateArguments) -> None:
    """Warn if options for trees have no effect, or if given trees differ from the training's."""
    from synmt.decode.override import describe_control
    from synmt.decode.tree_provider import parser_difference, parser_of_trees

    parses = options.parses
    if not translator.reads_trees:
        for name, value in {"--parses": parses, "--parser": options.parser}.items():
            if value is not None:
                console.remark(f"the model reads no trees, so {name} has no effect")
    if parses is None or not translator.reads_trees:
        return
    if control := describe_control(translator):
        console.warn(f"the run {control}, including those of --parses")
    # `synmt parse` writes this file with the trees
    facts = parses.with_name(f"{parses.name}.json")
    if translator.parser_identity is None or not facts.is_file():
        return
    identity = parser_of_trees(facts)
    if identity is None:
        console.warn(f"{facts} does not say which parser made the trees")
    elif difference := parser_difference(translator.parser_identity, identity):
        what = "was not made by the parser that the model was trained with"
        console.warn(f"{parses} {what}: {difference}")
