"""`synmt parse`: raw text to dependency trees."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synmt.cli import console
from synmt.cli.command import PARSERS, ClusterAddress
from synmt.errors import UsageError, counted

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from synmt.parsing.bulk import ParseProgress
    from synmt.parsing.parser import StanzaParser


Model = Annotated[
    str,
    typer.Option(
        "--parser",
        "--model",
        metavar=PARSERS,
        help="compact: ships with synmt, English only. official: Stanza's, downloaded once. auto: compact where there "
        "is one, else official. Or a folder with resources.json.",
    ),
]
Arcs = Annotated[
    bool,
    typer.Option(
        "--arcs",
        help="Also write the probabilities of all arcs of each word, as Arcs= in MISC. The trees are the same.",
    ),
]
Features = Annotated[
    bool,
    typer.Option(
        "--features",
        help="Also write lemmas, fine tags and morphology (LEMMA, XPOS, FEATS), as far as the model gives them.",
    ),
]
Pretokenized = Annotated[
    bool,
    typer.Option("--pretokenized", help="The lines are words separated by spaces; each is one word of the tree."),
]

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="CoNLL-U file, gzipped if it ends in .gz; -: standard output. Default: standard output.",
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, show_default="one per core, or one on a GPU", help="Processes; only with -o.")
]
ShardLines = Annotated[int | None, typer.Option(min=1, show_default="2000", help="Lines in a shard; only with -o.")]


def parse(
    source: Annotated[
        str, typer.Argument(metavar="INPUT", help="Text with one sentence per line, may be .gz; - is standard input.")
    ] = "-",
    output: Output = None,
    language: Annotated[str, typer.Option("--lang", help="Language code of the text, as Stanza uses it.")] = "en",
    model: Model = "auto",
    package: Annotated[str, typer.Option(help="Package of models to use.")] = "default",
    # of older scripts: official models are downloaded without it
    _download: Annotated[bool, typer.Option("--download", hidden=True)] = False,
    arcs: Arcs = False,
    features: Features = False,
    pretokenized: Pretokenized = False,
    device: Annotated[str, typer.Option(help="Device: auto, cpu, cuda, cuda:1 …, mps")] = "auto",
    batch_words: Annotated[int, typer.Option(min=1, help="Words in a batch.")] = 640,
    workers: Workers = None,
    shard_lines: ShardLines = None,
    cluster: ClusterAddress = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file made from another text or by another parser.")
    ] = False,
) -> None:
    """Parse raw text: one dependency tree for each line, in CoNLL-U.

    With -o, the text is parsed in shards: after an interruption, the same command continues with the next shard.

    A model that is missing is downloaded; SYNMT_OFFLINE=1 forbids that.

    Example: [bold]synmt parse train.en -o train.en.conllu[/]
    """
    from synmt.files.writing import is_stream

    output = None if str(output) == "-" else output
    file = None if output is None or is_stream(output) else output
    _check(file, device, cluster, {"--workers": workers, "--shard-lines": shard_lines, "--overwrite": overwrite})
    from synmt.parallel.engine import using_cluster
    from synmt.parsing.bulk import parse_file
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.data import parser_model

    _fetch(language, parser_model(model, language), package)
    parser = StanzaParser(
        language,
        model=model,
        package=package,
        device=device,
        batch_words=batch_words,
        arcs=arcs,
        pretokenized=pretokenized,
    )
    parser = parser.with_features() if features else parser
    if file is None:
        _to_stream(source, output, parser)
    else:
        steps = parse_file(source, file, parser, workers=workers, shard_lines=shard_lines or 2000, overwrite=overwrite)
        with using_cluster(cluster):
            _to_file(source, file, steps, language)


def _check(output: Path | None, device: str, cluster: str | None, values: Mapping[str, object]) -> None:
    """Raise UsageError for options that do not fit together and an unknown device; name a cluster that is not used.

    values: of the options that need a file; False or None for those that were not given.
    """
    if cluster and values["--workers"]:
        raise UsageError(
            "--workers counts processes of this machine; a cluster has its own", do="Leave out one of them"
        )
    if device not in ("auto", "cpu") and not cluster:
        from synmt.model.device import choose_device

        choose_device(device)
    if output is not None:
        return
    if given := [name for name, value in values.items() if value]:
        raise UsageError(f"{' and '.join(given)}: only with a file to write", do="Add `-o FILE`")
    if cluster:
        console.remark(
            "the cluster parses only if it writes a file; this process parses what goes to standard output or a pipe"
        )


def _fetch(language: str, model: str, package: str) -> None:
    """Download an official model that is missing."""
    from synmt.parsing.official import fetch

    if model == "official":
        fetch(language, package)


def _to_stream(source: str, output: Path | None, parser: StanzaParser) -> None:
    from synmt.files.reading import open_binary
    from synmt.files.writing import write_output
    from synmt.parsing.bulk import parse_stream

    with open_binary(source) as stream, write_output(output) as out:
        for blocks in parse_stream(stream, parser, where="standard input" if source == "-" else source):
            out.write(blocks)
            out.flush()


def _to_file(source: str, output: Path, steps: Generator[ParseProgress, None, None], language: str) -> None:
    from synmt.files.language import warn_of_file
    from synmt.files.reading import known_lines

    if source != "-":
        warn_of_file(Path(source), language)
    total = known_lines(source)
    parsed, step = 0, None
    with closing(steps), console.progress("parse", total, "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            if step.state == "parsed":
                parsed += step.words
    assert step is not None
    rate = f", {parsed / step.seconds:,.0f} words/s" if parsed else ""
    done = "nothing to do, already parsed" if step.state == "unchanged" else f"{step.seconds:,.0f} s{rate}"
    console.remark(f"{output}: {counted(step.lines, 'line')}, {counted(step.words, 'word')} ({done})")
    if step.failures:
        failed = counted(step.failures, "line")
        console.warn(f"{failed} could not be parsed in one piece; see {output}.failures.jsonl")
