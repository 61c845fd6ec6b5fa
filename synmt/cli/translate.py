"""`synmt translate`: raw text -> translations, one line for each line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.decode.translator import Translation, Translator
    from synmt.syntax.parse import Parse


def translate(
    source: Annotated[
        str,
        typer.Argument(metavar="[INPUT]", help="Text, one sentence a line, .gz too; - is standard input."),
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write, packed if it ends in .gz. Without it: standard output."),
    ] = None,
    run: Annotated[Path | None, typer.Option(help="A run folder; else the newest finished one.")] = None,
    checkpoint: Annotated[
        str, typer.Option(metavar="final|best|last|average", help="The weights; final: those the recipe uses.")
    ] = "final",
    beam_size: Annotated[
        int | None, typer.Option(min=1, show_default="the recipe's", help="Hypotheses kept; 1 is greedy.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(min=0, show_default="the recipe's", help="alpha of Wu et al. (2016).")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, show_default="the recipe's", help="Sentences side by side.")
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, help="Above 1: so many lines `number ||| translation ||| score` for each line.")
    ] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Put the score behind each line, after a tab.")] = False,
    parses: Annotated[
        Path | None, typer.Option(help="CoNLL-U with a tree for each line, instead of parsing here.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
) -> None:
    """Translate raw text: one line comes out for each line that goes in, as soon as it is ready.

    A score is the log-probability under the length penalty. With --n-best, lines are numbered from 0, as Moses
    does, and a line without text has one translation, which is empty, with the score 0.

    Example: [bold]synmt translate --run runs/multi30k-pascal < input.txt > output.txt[/]
    """
    from synmt.checkpoint import find_run
    from synmt.decode.translator import Translator

    _check(checkpoint, source, output, parses)
    given = {"beam_size": beam_size, "length_penalty": length_penalty, "batch_size": batch_size}
    chosen = {name: value for name, value in given.items() if value is not None}
    translator = Translator.load(
        find_run(run), device=device, which=checkpoint, n_best=n_best, remark=console.warn, **chosen
    )
    _compare_parser(translator, parses)
    with _open(output) as out, _progress(source) as advance:
        for translations in _windows(translator, source, parses):
            for translation in translations:
                out.write(_lines(translation, n_best, scores))
            out.flush()
            advance(len(translations))
            _report(translations, translator.max_pieces)


def _check(checkpoint: str, source: str, output: Path | None, parses: Path | None) -> None:
    from synmt.errors import UsageError, did_you_mean

    names = ("final", "best", "last", "average")
    if checkpoint not in names:
        raise UsageError(
            f"there are no weights '{checkpoint}'",
            where="--checkpoint",
            allowed=", ".join(names),
            do=did_you_mean(checkpoint, names),
        )
    if source == "-" == str(parses):
        raise UsageError("standard input cannot be both the text and its trees", where="--parses")
    if output is not None and source != "-" and output.exists() and output.samefile(source):
        raise UsageError("the output would replace the input", where=str(output))


def _compare_parser(translator: Translator, parses: Path | None) -> None:
    """Warn where the file that `synmt parse` leaves beside its trees names another parser than the run does."""
    import json

    from synmt.decode.source import parser_difference

    if parses is None:
        return
    if not translator.reads_trees:
        console.remark("the model reads no trees: --parses makes no difference")
    beside = parses.with_name(f"{parses.name}.json")
    if not translator.reads_trees or translator.parser_identity is None or not beside.is_file():
        return
    made_by = json.loads(beside.read_text(encoding="utf-8")).get("parser") or {}
    if difference := parser_difference(translator.parser_identity, made_by):
        console.warn(f"{parses} was not made by the parser that the model was trained with: {difference}")


@contextmanager
def _open(output: Path | None) -> Iterator[IO[str]]:
    from synmt.files import write_atomically

    if output is None:
        yield sys.stdout
        return
    with write_atomically(output) as stream:
        yield stream


@contextmanager
def _progress(source: str) -> Iterator[console.Advance]:
    from synmt.files import count_lines

    # counting the lines of a pipe would use them up
    if sys.stdout.isatty() or not Path(source).is_file():
        yield lambda amount: None
        return
    with console.progress("translating", count_lines(source), "lines") as advance:
        yield advance


def _windows(translator: Translator, source: str, parses: Path | None) -> Iterator[list[Translation]]:
    from itertools import chain, tee

    from synmt.files import arriving, open_binary
    from synmt.syntax.conllu import read_parses

    where = "standard input" if source == "-" else source
    with open_binary(source) as stream:
        taken, again = tee(arriving(stream, translator.window, where=where))
        trees: Iterator[Parse] | None = None
        if parses is not None and translator.reads_trees:
            trees = read_parses(parses, chain.from_iterable(again))
        else:
            # what nobody reads must not be kept
            del again
        yield from translator.translate_windows(taken, trees)


def _lines(translation: Translation, n_best: int, scores: bool) -> str:
    candidates: list[Any] = [(one.text, one.score) for one in translation.candidates] or [("", 0.0)]
    if n_best > 1:
        return "".join(f"{translation.line - 1} ||| {text} ||| {score:.4f}\n" for text, score in candidates)
    text, score = candidates[0]
    return f"{text}\t{score:.4f}\n" if scores else f"{text}\n"


def _report(translations: list[Translation], longest: int) -> None:
    for translation in translations:
        if translation.dropped:
            console.warn(
                f"line {translation.line} has {longest + translation.dropped} pieces; the model takes {longest} "
                f"(filters.max_pieces), so the last {translation.dropped} are not translated"
            )
