"""`synmt parse`: raw text to dependency trees."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synmt.cli import console

if TYPE_CHECKING:
    from collections.abc import Generator

    from synmt.parsing.bulk import ParseProgress
    from synmt.parsing.parser import StanzaParser


def parse(
    source: Annotated[
        str,
        typer.Argument(metavar="[INPUT]", help="Text, one sentence a line, .gz too; - is standard input."),
    ] = "-",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CoNLL-U file, packed if it ends in .gz. Without it: standard output."),
    ] = None,
    language: Annotated[str, typer.Option("--lang", help="Language of the text, as Stanza names it.")] = "en",
    model: Annotated[
        str,
        typer.Option(
            metavar="compact|official|FOLDER",
            help="compact: ships with synmt (en). official: Stanza's own. Or a folder with resources.json.",
        ),
    ] = "compact",
    package: Annotated[str, typer.Option(help="Package of models in that folder.")] = "default",
    download: Annotated[bool, typer.Option("--download", help="Fetch official models that are missing.")] = False,
    arcs: Annotated[
        bool,
        typer.Option(
            "--arcs",
            help="Write the probabilities of all arcs of each word, too, as Arcs= in MISC. The trees stay the same.",
        ),
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")] = "auto",
    batch_words: Annotated[int, typer.Option(min=1, help="Words parsed at once.")] = 640,
    workers: Annotated[
        int | None,
        typer.Option(min=1, show_default="one a core, or one on a GPU", help="Processes, with -o."),
    ] = None,
    shard_lines: Annotated[int, typer.Option(min=1, help="Lines that are parsed and kept together, with -o.")] = 2000,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file made from another text or by another parser.")
    ] = False,
) -> None:
    """Parse raw text: one dependency tree for each line, as CoNLL-U.

    With -o the work is done in shards: after an interruption the same command goes on where it stopped.

    Example: [bold]synmt parse train.en -o train.en.conllu[/]
    """
    from synmt.parsing.bulk import parse_file
    from synmt.parsing.parser import StanzaParser

    parser = StanzaParser(
        language, model=model, package=package, device=device, batch_words=batch_words, download=download, arcs=arcs
    )
    if output is None:
        _to_stdout(source, parser)
    else:
        steps = parse_file(source, output, parser, workers=workers, shard_lines=shard_lines, overwrite=overwrite)
        _to_file(source, output, steps)


def _to_stdout(source: str, parser: StanzaParser) -> None:
    import sys

    from synmt.files import open_binary
    from synmt.parsing.bulk import parse_stream

    where = "standard input" if source == "-" else source
    with open_binary(source) as stream:
        for blocks in parse_stream(stream, parser, where=where, on_failure=_warn):
            sys.stdout.write(blocks)
            sys.stdout.flush()


def _warn(number: int, reason: str) -> None:
    console.warn(f"line {number}: {reason}; its tree is flat or pieced together")


def _to_file(source: str, output: Path, steps: Generator[ParseProgress, None, None]) -> None:
    from synmt.files import count_lines

    # counting the lines of a pipe would use them up
    total = count_lines(source) if Path(source).is_file() else None
    parsed, step = 0, None
    with closing(steps), console.progress("parse", total, "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            if step.state == "parsed":
                parsed += step.words
    assert step is not None
    rate = f", {parsed / step.seconds:,.0f} words/s" if parsed else ""
    done = "nothing to do, parsed already" if step.state == "unchanged" else f"{step.seconds:,.0f} s{rate}"
    console.remark(f"{output}: {step.lines:,} lines, {step.words:,} words ({done})")
    if step.failures:
        lines = "1 line" if step.failures == 1 else f"{step.failures:,} lines"
        console.warn(f"{lines} failed: {output}.failures.jsonl says which and why")
