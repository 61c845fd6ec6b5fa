"""`synmt translate`: raw text -> translations, one output line per input line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.cli import console
from synmt.cli.command import is_run, loading, newest_run
from synmt.cli.options import Declared, command, declared
from synmt.cli.translate_arguments import TranslateArguments
from synmt.decode.options import Sampling, SearchOptions
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.decode.finished_windows import FinishedWindows
    from synmt.decode.records import Record, Result, Windows
    from synmt.decode.remote import RemoteTranslator
    from synmt.decode.translator import Translator


_SAMPLE = Option(
    "Draw pieces at random instead of searching with a beam; --n-best is the number of samples.",
    panel="Sampling",
)
_SEARCH = (
    *declared(SearchOptions),
    Declared("sample", bool, _SAMPLE, default=False),
    *declared(Sampling),
)


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
    options = replace(options, sample=values.pop("sample"))
    options = replace(
        options, search={name: value for name, value in values.items() if value is not None}
    )
    if is_run(options.source):
        options = replace(options, run=[*options.run, Path(options.source)], source="-")
    options.validate()
    _translate(options.run or [newest_run()], options.loading(), options)


def _translate(runs: Sequence[Path], how: dict[str, Any], arguments: TranslateArguments) -> None:
    with loading():
        from synmt.decode.finished_windows import finished_windows
        from synmt.decode.override import check_override
        from synmt.decode.remote import remote_translator
        from synmt.decode.summary import TranslationSummary
        from synmt.decode.translator import Translator
        from synmt.files.reading import known_lines
        from synmt.files.writing import write_output
        from synmt.parallel.engine import using_cluster

        translator = Translator.load(*runs, **how)
    if arguments.parse_override is not None:
        check_override(translator)
    _check_trees(translator, arguments)
    summary = TranslationSummary(translator.max_pieces)
    with ExitStack() as stack:
        cluster = arguments.cluster
        if cluster and arguments.source == "-":
            console.remark(
                "standard input may come line by line, so this machine translates it, not the "
                "cluster"
            )
            cluster = None
        stack.enter_context(using_cluster(cluster))
        lines = known_lines(arguments.source)
        given = arguments.parses is not None
        other = stack.enter_context(
            remote_translator(translator, runs, how, lines=lines, has_trees=given)
        )
        # what is finished is forgotten last, when the output is complete
        kept = None if arguments.prints or lines is None else arguments.output
        finished = stack.enter_context(finished_windows(kept, runs, how))
        out = stack.enter_context(
            write_output(None if arguments.prints else arguments.output, keep=True)
        )
        alignments = None
        if arguments.alignment_file:
            alignments = stack.enter_context(write_output(arguments.alignment_file, keep=True))
        advance = stack.enter_context(_progress(arguments, lines))
        for window in _results(translator, arguments, other, finished, known=lines is not None):
            for record, result in window:
                out.write(_format(record, result, arguments))
                if alignments is not None:
                    alignments.write(_format_alignment(result))
                summary.add(result)
            # a reader of the output gets each window as soon as it is ready
            out.flush()
            advance(len(window))
    summary.log()


def _results(
    translator: Translator,
    arguments: TranslateArguments,
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

    with open_binary(arguments.source, allowed=["JSON"] if arguments.jsonl else ()) as stream:
        if other and known:
            lines = windows_of(decode_lines(raw_lines(stream), where=arguments.where), other.window)
        else:
            lines = read_available_lines(
                stream, (other or translator).window, where=arguments.where
            )
        windows, again = tee(_records(lines, arguments, translator))
        requests = ([record.request for record in window] for window in again)
        both = arguments.parse_override is not None
        translated = translate_windows(
            translator, requests, counterfactually=both, other=other, finished=finished
        )
        # what is translated is read first, so that a window is not waited for before it is needed
        for results, window in zip(translated, windows, strict=True):
            if not arguments.tokens:
                results = [joined_result(one, translator.tokenizers["target"]) for one in results]
            yield list(zip(window, results, strict=True))


def _records(
    lines: Iterator[list[str]], arguments: TranslateArguments, translator: Translator
) -> Windows:
    from synmt.decode.records import add_trees, checked_language, read_json, read_text

    trees, tokenizers = translator.reads_trees, translator.tokenizers
    if arguments.jsonl:
        records = read_json(lines, where=arguments.where, trees=trees, tokenizers=tokenizers)
    else:
        records = read_text(lines, arguments.prefixes, tokenizers=tokenizers)
    records = checked_language(records, translator.models[0].recipe.source, where=arguments.where)
    if arguments.parses is not None and trees:
        records = add_trees(records, arguments.parses, "tree")
    if arguments.parse_override is not None:
        records = add_trees(records, arguments.parse_override, "other_tree")
    return records


def _format(record: Record, result: Result, arguments: TranslateArguments) -> str:
    from synmt.decode.records import format_json, format_text

    if arguments.jsonl:
        return format_json(record, result, n_best=arguments.is_list)
    return format_text(result, n_best=arguments.is_list, scores=arguments.scores)


def _format_alignment(result: Result) -> str:
    """Format the alignment of the translation with the own tree; a line without text has an empty
    one."""
    from synmt.decode.alignment import pharaoh
    from synmt.decode.records import own_translation

    alignment = own_translation(result).alignment
    return f"{pharaoh(alignment.pairs) if alignment else ''}\n"


def _check_trees(translator: Translator, arguments: TranslateArguments) -> None:
    """Warn if the options for trees have no effect, or if given trees are not like those of the
    training data."""
    from synmt.decode.override import describe_control
    from synmt.decode.tree_provider import parser_difference, parser_of_trees

    parses = arguments.parses
    if not translator.reads_trees:
        for name, value in {"--parses": parses, "--parser": arguments.parser}.items():
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
        console.warn(
            f"{parses} was not made by the parser that the model was trained with: {difference}"
        )


@contextmanager
def _progress(arguments: TranslateArguments, lines: int | None) -> Iterator[console.Advance]:
    """Show the progress, unless the translations appear on the terminal, or the input is a pipe."""
    if lines is None or (arguments.prints and sys.stdout.isatty()):
        yield lambda amount: None
        return
    with console.progress("translating", lines, "lines") as advance:
        yield advance
