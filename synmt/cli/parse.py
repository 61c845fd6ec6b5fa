"""`synmt parse`: raw text to dependency trees."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from synmt.cli import console
from synmt.cli.command import PARSERS, Cluster, Device
from synmt.cli.options import command
from synmt.errors import UsageError, counted
from synmt.files.writing import is_stream
from synmt.options import Option

if TYPE_CHECKING:
    from collections.abc import Generator

    from synmt.parsing.bulk import ParseProgress
    from synmt.parsing.parser import StanzaParser


@dataclass(frozen=True, kw_only=True)
class ParseArguments:
    """What `synmt parse` is given."""

    source: Annotated[
        str,
        Option(
            "Text with one sentence per line, may be .gz; - is standard input.",
            metavar="INPUT",
            is_argument=True,
        ),
    ] = "-"
    output: Annotated[
        Path | None,
        Option(
            "CoNLL-U file, gzipped if it ends in .gz; -: standard output. Default: standard "
            "output.",
            names="--output -o",
            metavar="FILE",
        ),
    ] = None
    language: Annotated[
        str, Option("Language code of the text, as Stanza uses it.", names="--lang")
    ] = "en"
    model: Annotated[
        str,
        Option(
            "compact: ships with synmt, English only. official: Stanza's, downloaded once. auto: "
            "compact where there "
            "is one, else official. Or a folder with resources.json.",
            names="--parser --model",
            metavar=PARSERS,
        ),
    ] = "auto"
    package: Annotated[str, Option("Package of models to use.")] = "default"
    download: Annotated[bool, Option("Of older scripts; models are downloaded anyway.")] = False
    arcs: Annotated[
        bool,
        Option(
            "Also write the probabilities of all arcs of each word, as Arcs= in MISC. The trees "
            "are the same."
        ),
    ] = False
    features: Annotated[
        bool,
        Option(
            "Also write lemmas, fine tags and morphology (LEMMA, XPOS, FEATS), as far as the model "
            "gives them."
        ),
    ] = False
    pretokenized: Annotated[
        bool, Option("The lines are words separated by spaces; each is one word of the tree.")
    ] = False
    device: Device = "auto"
    batch_words: Annotated[int, Option("Words in a batch.", minimum=1)] = 640
    workers: Annotated[
        int | None,
        Option("Processes; only with -o.", minimum=1, show_default="one per core, or one on a GPU"),
    ] = None
    shard_lines: Annotated[
        int | None, Option("Lines in a shard; only with -o.", minimum=1, show_default="2000")
    ] = None
    cluster: Cluster = None
    overwrite: Annotated[
        bool, Option("Replace a file made from another text or by another parser.")
    ] = False

    @property
    def file(self) -> Path | None:
        """The file that is written in shards; None for a stream."""
        return None if self.stream is None or is_stream(self.stream) else self.stream

    @property
    def stream(self) -> Path | None:
        """Where the trees go; None for standard output."""
        return None if str(self.output) == "-" else self.output


@command
def parse(options: ParseArguments) -> None:
    """Parse raw text: one dependency tree for each line, in CoNLL-U.

    With -o, the text is parsed in shards: after an interruption, the same command continues with
    the next shard.

    A model that is missing is downloaded; SYNMT_OFFLINE=1 forbids that.

    Example: [bold]synmt parse train.en -o train.en.conllu[/]
    """
    _check(options)
    from synmt.parallel.engine import using_cluster
    from synmt.parsing.bulk import parse_file
    from synmt.parsing.official import fetch
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.data import parser_model

    if parser_model(options.model, options.language) == "official":
        fetch(options.language, options.package)
    parser = StanzaParser(
        options.language,
        model=options.model,
        package=options.package,
        device=options.device,
        batch_words=options.batch_words,
        arcs=options.arcs,
        pretokenized=options.pretokenized,
    )
    parser = parser.with_features() if options.features else parser
    if options.file is None:
        _to_stream(options.source, options.stream, parser)
        return
    steps = parse_file(
        options.source,
        options.file,
        parser,
        workers=options.workers,
        shard_lines=options.shard_lines or 2000,
        overwrite=options.overwrite,
    )
    with using_cluster(options.cluster):
        _to_file(options.source, options.file, steps)


def _check(options: ParseArguments) -> None:
    """Raise UsageError for options that do not fit together and an unknown device; name a cluster
    that is not used."""
    if options.cluster and options.workers:
        raise UsageError(
            "--workers counts processes of this machine; a cluster has its own",
            do="Leave out one of them",
        )
    if options.device not in ("auto", "cpu") and not options.cluster:
        from synmt.model.device import choose_device

        choose_device(options.device)
    if options.file is not None:
        return
    if given := [
        name for name in ("workers", "shard_lines", "overwrite") if getattr(options, name)
    ]:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{names}: only with a file to write", do="Add `-o FILE`")
    if options.cluster:
        console.remark(
            "the cluster parses only if it writes a file; this process parses what goes to "
            "standard output or a pipe"
        )


def _to_stream(source: str, output: Path | None, parser: StanzaParser) -> None:
    from synmt.files.reading import open_binary
    from synmt.files.writing import write_output
    from synmt.parsing.bulk import parse_stream

    with open_binary(source) as stream, write_output(output) as out:
        for blocks in parse_stream(
            stream, parser, where="standard input" if source == "-" else source
        ):
            out.write(blocks)
            out.flush()


def _to_file(source: str, output: Path, steps: Generator[ParseProgress, None, None]) -> None:
    from synmt.files.reading import known_lines

    total = known_lines(source)
    parsed, step = 0, None
    with closing(steps), console.progress("parse", total, "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
            if step.state == "parsed":
                parsed += step.words
    assert step is not None
    done = f"{step.seconds:,.0f} s"
    if parsed:
        done += f", {parsed / step.seconds:,.0f} words/s"
    if step.state == "unchanged":
        done = "nothing to do, already parsed"
    console.remark(
        f"{output}: {counted(step.lines, 'line')}, {counted(step.words, 'word')} ({done})"
    )
    if step.failures:
        failed = counted(step.failures, "line")
        console.warn(f"{failed} could not be parsed in one piece; see {output}.failures.jsonl")
