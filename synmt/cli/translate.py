"""`synmt translate`: raw text -> translations, one output line per input line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from synmt.cli import console
from synmt.cli.command import PARSERS, WEIGHTS, Cluster, Device, is_run, loading, newest_run
from synmt.cli.options import Declared, Typed, Values, command, declared, piped
from synmt.decode.options import Sampling, SearchOptions
from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.options import Option
from synmt.serve.options import ServerOptions

if TYPE_CHECKING:
    from synmt.decode.records import Windows
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
            "A run folder; default: the newest finished one. Several make an ensemble of runs with "
            "the same vocabularies: their probabilities are averaged, and the search settings come "
            "from the first run's recipe.",
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
    target_language: Annotated[
        str | None,
        Option(
            "The language to translate into, for a pretrained model of several, such as deu.",
            metavar="CODE",
        ),
    ] = None
    prefixes: Annotated[
        Path | None,
        Option(
            "File with one prefix per line (may be empty). The translation must begin with it; its "
            "log-probability counts in the score.",
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
            "tab-separated columns, the translation, the translation with the other tree, and the "
            "change in the log-probability of the first.",
            metavar="FILE.conllu",
        ),
    ] = None
    parse_cache: Annotated[
        bool | None,
        _tree(
            "Read and store trees in $SYNMT_CACHE/parses (at most a million per parser, without "
            "the text).",
            names="--parse-cache/--no-parse-cache",
            show_default="yes, but a server stores nothing",
        ),
    ] = None
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
            "`prefix` and `parse` (its tree as CoNLL-U, or null). Output: `translation`, `score`, "
            "`log_probability`, `dropped`, `degenerate`; the fields of the input are copied as "
            "they are, an own `score` as `input_score`.",
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
    export: Annotated[
        Path | None,
        Option(
            "Write the model into a folder for another program, instead of translating.",
            metavar="FOLDER",
            panel="Export",
        ),
    ] = None
    to: Annotated[
        Literal["ctranslate2", "transformers"],
        Option("The program; transformers: a MarianMTModel.", panel="Export"),
    ] = "ctranslate2"
    cluster: Cluster = None

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
_DRAWING = [field.name for field in fields(Sampling)]


@partial(command, own=[declaration.parameter() for declaration in _SEARCH])
def translate(
    values: Values, typed: Typed, options: TranslateArguments, server: ServerOptions
) -> None:
    """Translate raw text: each input line gives one output line, as soon as it is ready.

    A run whose recipe tokenizes text (`text:`) tokenizes the input in the same way and joins the
    words of its translations. Trees in --parses must have one node for each of these words.

    A score is the log-probability after the length penalty. With --n-best above 1, lines are
    `number ||| translation ||| score`, numbered from 0. A line without text has one translation: an
    empty one, with the score 0.

    Characters that the vocabulary does not have are read and written byte by byte. Without
    `vocabulary.byte_fallback`, or with words as pieces, the model reads <unk> instead; a warning at
    the end says how often. Degenerate output (empty, looping, truncated, copied) is counted there
    too.

    Example: [bold]synmt translate --run runs/multi30k-pascal < text > translations[/]

    Example: [bold]synmt translate --jsonl --sample --top-p 0.9 < text.jsonl[/]
    """
    sample = values.pop("sample")
    search = {name: value for name, value in values.items() if value is not None}
    drawing = {name: search.pop(name) for name in _DRAWING if name in search}
    if is_run(options.source):
        options = replace(options, run=[*options.run, Path(options.source)], source="-")
        typed = {name: spelled for name, spelled in typed.items() if name != "source"}
    _check_served(typed, server)
    if problems := list(_problems(options)):
        raise all_in_one(problems)
    if options.export is not None:
        _export(options)
        return
    if search["word_scores"] and not options.jsonl:
        raise UsageError("--word-scores: only in objects", do="Add --jsonl")
    if drawing and not sample:
        flags = ", ".join(typed[name] for name in drawing)
        raise UsageError(f"{flags}: only with --sample", do="Add --sample")
    names = ("device", "checkpoint", "parser", "precision", "target_language")
    arguments = {name: getattr(options, name) for name in names} | search
    arguments["alignment"] = options.alignments is not None
    cached = options.parse_cache
    arguments["parse_cache"] = server.serve is None if cached is None else cached
    arguments["sampling"] = Sampling(**drawing) if sample else None
    runs = options.run or [newest_run()]
    if server.serve is None:
        _translate(runs, arguments, options)
    else:
        _serve(runs, arguments, server)


def _export(options: TranslateArguments) -> None:
    """Write a model for another program."""
    with loading():
        from synmt.decode.loaded_model import load_model
        from synmt.exchange.export import export
        from synmt.run_folder import find_run

        if len(options.run) > 1:
            raise UsageError("--export writes one model", do="Name one run")
        run = find_run(options.run[0] if options.run else newest_run())
        model = load_model(run, run.recipe(), device="cpu", checkpoint=options.checkpoint)
    assert options.export is not None
    export(
        *(model.model, model.recipe, model.source, model.target, options.export, options.to),
        card=run.folder / "README.md",
    )
    console.remark(f"model: {options.export}")


def _serve(runs: Sequence[Path], arguments: Values, server: ServerOptions) -> None:
    """Serve runs, each by itself or all as an ensemble, until the process is told to end."""
    host, _ = server.address
    if server.is_open:
        console.warn("other machines reach this server; what they ask is not encrypted")
    with loading():
        try:
            from synmt.serve.run import listen, serve
        except ImportError as error:
            raise SynmtError(
                f"--serve needs {error.name}, which is not installed",
                do="Install it with `pip install 'synmt[serve]'`",
            ) from error
        from synmt.decode.translator import Translator
        from synmt.serve.desk import Served

        listening, served = listen(server), dict[str, Served]()
        for group in [runs] if server.ensemble else [[run] for run in runs]:
            name = " + ".join(run.name for run in group)
            if name in served:
                name = str(group[0])
            served[name] = Served(name, Translator.load(*group, **arguments))
            served[name].warm_up()
    shown = f"[{host}]" if ":" in host else host
    console.remark(f"serving on http://{shown}:{listening.getsockname()[1]} (Ctrl-C ends)")
    serve(list(served.values()), server, listening)


_NOT_SERVED = {
    *("source", "prefixes", "parses", "parse_override", "output", "jsonl", "scores", "tokens"),
    *("word_scores", "alignments", "export", "to", "cluster", "n_best"),
}
"""Parameters that say what is read and written, which requests say to a server."""


def _check_served(typed: Typed, server: ServerOptions) -> None:
    """Refuse options of a server without one, and options that one does not have."""
    if server.serve is None:
        wrong = {name for name in typed if hasattr(server, name)}
        what, do = "only with --serve", "Add --serve PORT, or leave it out"
    else:
        wrong = _NOT_SERVED & typed.keys()
        what, do = "not with --serve", "Leave it out: requests say what to translate"
    if wrong:
        raise UsageError(f"{', '.join(typed[name] for name in sorted(wrong))}: {what}", do=do)


def _problems(options: TranslateArguments) -> Iterator[SynmtError]:
    """Find options that do not fit together."""
    if options.jsonl and options.prefixes is not None:
        yield UsageError("--prefixes: with --jsonl, use the field `prefix`")
    if options.alignments == "-" and not options.jsonl:
        yield UsageError(
            "the translations go to standard output",
            where="--alignments",
            do="Name a file, or add --jsonl",
        )
    read = {
        "INPUT": Path(options.source),
        "--parses": options.parses,
        "--parse-override": options.parse_override,
        "--prefixes": options.prefixes,
    }
    piped(read)
    used = {path.resolve() for path in read.values() if path}
    for path in filter(None, (options.output_file, options.alignment_file)):
        if path.resolve() in used:
            yield UsageError("the output would replace the input or another output", where=path)
        if path.is_dir():
            yield UsageError("the output is a folder, not a file", where=path)
        used.add(path.resolve())


def _translate(runs: Sequence[Path], arguments: Values, options: TranslateArguments) -> None:
    with loading():
        from synmt.decode.alignment import pharaoh
        from synmt.decode.records import format_json, format_text, summarized
        from synmt.decode.remote import finished_windows, shared_translator, translate_windows
        from synmt.decode.translation import joined
        from synmt.decode.translator import Translator
        from synmt.files.reading import known_lines
        from synmt.files.writing import write_output
        from synmt.parallel.engine import using_cluster

        translator = Translator.load(*runs, **arguments)
    if options.parse_override is not None:
        translator.check_other_trees()
    if options.parses is not None and translator.control:
        console.warn(f"the model reads {translator.control} trees instead of --parses")
    output, file, cluster = options.output_file, options.alignment_file, options.cluster
    if cluster and options.source == "-":
        console.remark("standard input may come line by line, so this machine translates it")
        cluster = None
    lines, has_trees = known_lines(options.source), options.parses is not None
    # not where the translations appear on the terminal, or where the input is a pipe
    shown = lines is not None and not (output is None and sys.stdout.isatty())
    bar = console.progress("translating", lines or 0, "lines") if shown else nullcontext(int)
    is_list = arguments["n_best"] > 1
    with (
        using_cluster(cluster),
        shared_translator(translator, runs, arguments, lines=lines, has_trees=has_trees) as shared,
        # what is finished is forgotten last, when the output is complete
        finished_windows(None if lines is None else output, runs, arguments) as finished,
        write_output(output) as out,
        write_output(file) if file else nullcontext() as alignments,
        bar as advance,
    ):
        records = _records(options, translator, shared.window, in_full=lines is not None)
        for window, translations in summarized(translate_windows(shared, records, finished)):
            for request, translation in zip(window, translations, strict=True):
                if not options.tokens:
                    translation = joined(translation, translator.tokenizers["target"])
                if options.jsonl:
                    out.write(format_json(request, translation, n_best=is_list))
                else:
                    out.write(format_text(translation, n_best=is_list, scores=options.scores))
                if alignments is not None:
                    # a line without text has none
                    pairs = translation.alignment.pairs if translation.alignment else ()
                    alignments.write(f"{pharaoh(pairs)}\n")
            # a reader of the output gets each window as soon as it is ready
            out.flush()
            advance(len(window))


def _records(
    options: TranslateArguments, translator: Translator, size: int, *, in_full: bool
) -> Windows:
    """Read the input, window by window.

    in_full: whether each window has `size` lines; otherwise lines are not waited for.
    """
    from synmt.decode.inputs import windows
    from synmt.decode.records import add_trees, read_json, read_text, texts_of
    from synmt.files.language import watched
    from synmt.files.reading import decode_lines, open_binary, raw_lines, read_available_lines

    where = "standard input" if options.source == "-" else options.source
    tokenizers, parses = translator.tokenizers, options.parses
    with open_binary(options.source, allowed=["JSON"] if options.jsonl else ()) as stream:
        if in_full:
            lines = windows(decode_lines(raw_lines(stream), where=where), size)
        else:
            lines = read_available_lines(stream, size, where=where)
        if options.jsonl:
            in_objects = translator.reads_trees and parses is None
            records = read_json(lines, tokenizers, where=where, trees=in_objects)
        else:
            records = read_text(lines, options.prefixes, tokenizers)
        records = watched(records, texts_of, translator.models[0].recipe.source, where=where)
        if parses is not None and translator.reads_trees:
            records = add_trees(records, parses, "tree")
        if options.parse_override is not None:
            records = add_trees(records, options.parse_override, "other_tree")
        yield from records
