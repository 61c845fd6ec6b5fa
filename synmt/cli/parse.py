"""`synmt parse`: raw text to dependency trees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from synmt.cli import console
from synmt.cli.command import PARSERS, Cluster, Device
from synmt.cli.options import TableOptions, Typed, command, refuse_typed
from synmt.files.writing import is_stream
from synmt.options import Option

if TYPE_CHECKING:
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
    gold: Annotated[
        Path | None,
        Option(
            "Parse the text of this treebank instead, and compare the trees with its own: UAS, LAS "
            "and words per second.",
            metavar="FILE.conllu",
        ),
    ] = None
    language: Annotated[
        str, Option("Language code of the text, as Stanza uses it.", names="--lang")
    ] = "en"
    model: Annotated[
        str,
        Option(
            "compact: ships with synmt, English only. official: Stanza's, downloaded once. auto: "
            "compact where there is one, else official. Or a folder with resources.json.",
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
    shard_lines: Annotated[int, Option("Lines in a shard; only with -o.", minimum=1)] = 2000
    cluster: Cluster = None
    overwrite: Annotated[
        bool, Option("Replace a file made from another text or by another parser.")
    ] = False


_FOR_FILES = ("workers", "shard_lines", "overwrite", "cluster")
_FOR_TEXT = (*_FOR_FILES, "source", "output", "arcs", "features", "pretokenized")


@command
def parse(options: ParseArguments, tables: TableOptions, typed: Typed) -> None:
    """Parse raw text: one dependency tree for each line, in CoNLL-U.

    With -o, the text is parsed in shards: after an interruption, the same command continues with
    the next shard.

    A model that is missing is downloaded; SYNMT_OFFLINE=1 forbids that.

    Example: [bold]synmt parse train.en -o train.en.conllu[/]

    Example: [bold]synmt parse --gold en_ewt-ud-test.conllu --parser official[/]
    """
    from synmt.files.language import warn_of_file
    from synmt.parsing.official import fetch
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.data import parser_model

    if options.gold:
        refuse_typed(typed, _FOR_TEXT, "does not apply to --gold", do="Leave one of them out")
    else:
        refuse_typed(typed, ("kind", "as_json"), "needs --gold", do="Trees are always CoNLL-U")
    output = None if str(options.output) == "-" else options.output
    in_shards = output is not None and not is_stream(output)
    if not in_shards:
        refuse_typed(typed, _FOR_FILES, "needs an output file", do="Add `-o FILE`")
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
    if options.gold:
        from synmt.parsing.gold import score_parser

        console.show_reports({"parser": score_parser(parser, options.gold)}, tables.format)
        return
    parser = parser.with_features() if options.features else parser
    if options.source != "-":
        warn_of_file(Path(options.source), options.language)
    if output is not None and in_shards:
        _to_file(options, output, parser)
    else:
        _to_stream(options.source, output, parser)


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


def _to_file(options: ParseArguments, output: Path, parser: StanzaParser) -> None:
    from synmt.files.reading import known_lines
    from synmt.parallel.engine import using_cluster
    from synmt.parsing.bulk import parse_file

    steps = parse_file(
        options.source,
        output,
        parser,
        workers=options.workers,
        shard_lines=options.shard_lines,
        overwrite=options.overwrite,
    )
    total, step = known_lines(options.source), None
    with using_cluster(options.cluster), console.progress("parse", total, "lines") as advance:
        for step in steps:
            if step.state in ("kept", "parsed"):
                advance(step.lines)
    assert step is not None
    console.remark(f"{output}: {step.state}, {step.lines:,} lines, {step.words:,} words")
    if step.failures:
        console.warn(
            f"{step.failures:,} line(s) could not be parsed in one piece; see "
            f"{output}.failures.jsonl"
        )
