"""`synmt translate`: raw text -> translations, one line for each line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from synmt.cli import console
from synmt.cli import translate_options as options
from synmt.cli.translate_asked import Asked, check_asked, diversity_of, sampling_of

if TYPE_CHECKING:
    from synmt.decode.translator import Translator


def translate(
    source: options.Input = "-",
    run: options.RunFolders = None,
    checkpoint: options.Checkpoint = "final",
    device: options.Device = "auto",
    beam_size: options.BeamSize = None,
    length_penalty: options.LengthPenalty = None,
    no_repeat: options.NoRepeat = 0,
    n_best: options.NBest = 1,
    groups: options.Groups = 1,
    diversity: options.Diversity = None,
    prefixes: options.Prefixes = None,
    batch_size: options.BatchSize = None,
    sample: options.Sample = False,
    top_k: options.TopK = None,
    top_p: options.TopP = None,
    temperature: options.Temperature = None,
    seed: options.Seed = None,
    parser: options.Parser = None,
    parses: options.Parses = None,
    parse_override: options.ParseOverride = None,
    no_parse_cache: options.NoParseCache = False,
    output: options.Output = None,
    jsonl: options.JsonLines = False,
    scores: options.Scores = False,
    alignments: options.Alignments = None,
) -> None:
    """Translate raw text: one line comes out for each line that goes in, as soon as it is ready.

    A score is the log-probability under the length penalty. With --n-best
    above 1, lines are `number ||| translation ||| score`, numbered from 0.
    A line without text has one translation: an empty one, with the score 0.

    Characters that the vocabulary does not have are read and written byte by
    byte. Without `vocabulary.byte_fallback`, or with words as pieces, the model
    sees an unknown piece instead, and the end of the run says how often.
    Translations that are none (empty, loops, copies) are counted there too.

    Example: [bold]synmt translate --run runs/multi30k-pascal < text > translations[/]

    Example: [bold]synmt translate --jsonl --sample --top-p 0.9 < text.jsonl[/]
    """
    asked = Asked(source, output, prefixes, parses, parse_override, alignments, jsonl, scores, n_best)
    check_asked(asked, checkpoint)
    wanted = {"n_best": n_best, "groups": groups, "no_repeat": no_repeat, "alignment": alignments is not None}
    wanted |= diversity_of(groups, diversity) | {"parse_cache": not no_parse_cache, "parser": parser}
    wanted |= {"sampling": sampling_of(sample, top_k, top_p, temperature, seed, beam_size=beam_size)}
    decoding = {"beam_size": beam_size, "length_penalty": length_penalty, "batch_size": batch_size}
    _translate(_load(run, checkpoint, device, wanted, decoding), asked)


def _load(
    runs: list[Path] | None, checkpoint: str, device: str, wanted: dict[str, object], decoding: dict[str, object]
) -> Translator:
    from synmt.decode.options import Wanted
    from synmt.decode.translator import Translator
    from synmt.run import find_run

    first, *others = [find_run(path) for path in runs or [None]]
    if not runs:
        console.remark(f"run: {first.folder}")
    given = {name: value for name, value in decoding.items() if value is not None}
    return Translator.load(
        first,
        others=others,
        device=device,
        which=checkpoint,
        wanted=Wanted(**wanted),  # type: ignore[arg-type]
        remark=console.warn,
        **given,
    )


def _translate(translator: Translator, asked: Asked) -> None:
    from synmt.cli.translate_lines import translated, write
    from synmt.cli.translate_tally import Tally
    from synmt.decode.override import check_override

    if asked.parse_override is not None:
        check_override(translator)
    _check_trees(translator, asked.parses, named=translator.wanted.parser is not None)
    tally = Tally(translator.max_pieces)
    with _open(asked.output) as out, _open_alignments(asked) as aligned, _progress(asked.source) as advance:
        for window in translated(translator, asked):
            write(window, asked, out, aligned)
            advance(len(window))
            for _, result in window:
                tally.take(result)
    tally.say()


def _check_trees(translator: Translator, parses: Path | None, *, named: bool) -> None:
    """Say where trees, or a parser that was named, change nothing, or not what they seem to."""
    from synmt.decode.override import control_of

    if not translator.reads_trees:
        for option in [*["--parses"] * (parses is not None), *["--parser"] * named]:
            console.remark(f"the model reads no trees: {option} makes no difference")
    elif parses is not None:
        if what := control_of(translator):
            console.warn(f"the run {what}, those of --parses too")
        _compare_parser(translator, parses)


def _compare_parser(translator: Translator, parses: Path) -> None:
    """Warn where the file that `synmt parse` leaves beside its trees names another parser than the run does."""
    from synmt.decode.source import parser_difference

    beside = parses.with_name(f"{parses.name}.json")
    if translator.parser_identity is None or not beside.is_file():
        return
    made_by = _made_by(beside)
    if made_by is None:
        console.warn(f"{beside} does not say which parser made the trees")
    elif difference := parser_difference(translator.parser_identity, made_by):
        console.warn(f"{parses} was not made by the parser that the model was trained with: {difference}")


def _made_by(path: Path) -> dict[str, Any] | None:
    """Read which parser made trees; None where a file of that name is about something else."""
    import json

    try:
        parser = json.loads(path.read_bytes())["parser"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return parser if isinstance(parser, dict) else None


@contextmanager
def _open(output: Path | None) -> Iterator[IO[str]]:
    from synmt.files import write_atomically

    if output is None or str(output) == "-":
        yield sys.stdout
        return
    with write_atomically(output) as stream:
        yield stream


@contextmanager
def _open_alignments(asked: Asked) -> Iterator[IO[str] | None]:
    if asked.alignment_file is None:
        yield None
        return
    with _open(asked.alignment_file) as stream:
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
