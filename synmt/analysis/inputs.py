"""What several kinds of `synmt analyze` share: the test set of a run, trees of its lines, how a figure is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synmt.evaluation.progress import progress
from synmt.errors import SynmtError, UsageError, did_you_mean

if TYPE_CHECKING:
    from synmt.analysis.forward_passes import ParsedText
    from synmt.arrays import Side
    from synmt.decode.translator import Translator
    from synmt.evaluation.metrics import Metric, MetricOptions, Score
    from synmt.evaluation.outputs import Outputs
    from synmt.parsing.cache import CachedParser
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.schema import Recipe
    from synmt.syntax.controls import Control
    from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)

_LINES = 256
"""So many lines are parsed between two steps of the progress."""

_FILES_ARE = "en"
"""What a source file is in, unless its name ends in a language."""

_LETTERS = 12
"""So many of the letters that cannot be drawn are named."""


def check_name(name: str, names: Sequence[str], what: str) -> None:
    """Refuse a value of the option `--what` that is none of its names."""
    if name not in names:
        raise UsageError(
            f"there is no {what} '{name}'",
            where=f"--{what}",
            allowed=f"{what.capitalize()}s: {', '.join(names)}",
            do=did_you_mean(name, names),
        )


def read_test(run: Path | None, test: str | None) -> Outputs:
    """Read a run's translations of a test set, and say which others it could have been where none was chosen."""
    from synmt.evaluation.outputs import from_run

    outputs = from_run(run, test)
    if outputs.other_tests and test is None:
        _logger.info(f"test set {outputs.test}; choose with --test: {', '.join(outputs.other_tests)}")
    return outputs


def find_parser(recipe: Recipe, side: Side, model: str | None, *, to: Literal["parse", "tag"]) -> StanzaParser:
    """Find what parses or tags one side: the model that was named, else the recipe's or Stanza's own."""
    from synmt.training.tree_requirements import make_analysis_parser, parser_section

    try:
        return make_analysis_parser(recipe, side, model=model)
    except SynmtError as error:
        language = recipe.source if side == "source" else recipe.target
        why = f"{error.where}: {error.what}" if error.where else error.what
        raise type(error)(
            f"no Stanza model for '{language}' to {to} the {side} ({why})",
            allowed=error.allowed,
            do=f"Name one with `--parser FOLDER` (or `{parser_section(side)}.model` in the recipe)",
        ) from None


def file_language(source: Path | None) -> str:
    """Read the language of a file off its name, `test.de` or `test.de.gz`; without one, say what it is taken for."""
    ending = Path(str(source).removesuffix(".gz")).suffix.removeprefix(".")
    if len(ending) == 2 and ending.isalpha() and ending.islower():
        return ending
    _logger.info(f"the name of the source has no language, as that of test.de has: it is parsed as '{_FILES_ARE}'")
    return _FILES_ARE


def parser_of(translator: Translator, recipe: Recipe, side: Side, named: str | None) -> StanzaParser:
    """Find the parser that was named, else the run's own where it records one for the side, else its recipe's."""
    own = named is None and side == "source" and translator.parser_identity is not None
    return translator.parser if own else find_parser(recipe, side, named, to="parse")


def parse_texts(
    translator: Translator,
    parser: StanzaParser,
    side: Side,
    source: Sequence[str],
    target: Sequence[str] | None,
    *,
    named: bool,
) -> ParsedText:
    """Parse one side; the model reads these trees too where it reads any, unless another parser was named."""
    from synmt.analysis.forward_passes import ParsedText

    parses = parse_lines(parser, source if target is None else target)
    own = not named and side == "source" and translator.parser_identity is not None
    return ParsedText(side, source, target, parses, parses if own and translator.reads_trees else None)


def check_recorded(translator: Translator, run: Path, *, do: str = "Take a run that says so") -> None:
    """Refuse a model that reads trees of nobody knows which parser."""
    if translator.reads_trees and translator.parser_identity is None:
        raise UsageError(
            "the model reads dependency trees, and its run does not say which parser makes them",
            where=str(run),
            do=do,
        )


def parse_lines(parser: StanzaParser, lines: Sequence[str]) -> list[Parse]:
    """Parse lines with a progress, and warn of each that has no proper tree; those of earlier runs are kept."""
    from synmt.parsing.cache import CachedParser

    return parse_in_parts(CachedParser(parser), lines)


def parse_in_parts(parser: StanzaParser | CachedParser, lines: Sequence[str]) -> list[Parse]:
    """Parse lines with a progress, and warn of each that has no proper tree."""
    parses: list[Parse] = []

    def warn(index: int, why: str) -> None:
        _logger.warning(f"line {len(parses) + index + 1}: its tree is flat or pieced: {why}")

    with progress("parsing", len(lines), "lines") as advance:
        for first in range(0, len(lines), _LINES):
            some = lines[first : first + _LINES]
            parses += parser.parse(some, on_failure=warn)
            advance(len(some))
    return parses


def name_parser(parser: StanzaParser) -> str:
    """Name a parser for people; a model in a folder is called as the folder."""
    model = parser.model if parser.model in ("compact", "official") else parser.folder.resolve().name
    return f"Stanza ({model}, {parser.language})"


def as_read(control: Control) -> str:
    """Say how a model reads the trees of its own parser, to stand behind the parser's name."""
    return ", as the model reads it" if control.idle else f"; the model reads {control.name} trees in their place"


def save_plot(path: Path, save: Callable[[], str]) -> None:
    """Write a figure, say where it is, and warn of letters that no font has, which `save` gives."""
    replaced = path.exists()
    missing = save()
    _logger.info("plot: %s%s", path, " (replaced)" * replaced)
    if missing:
        shown = "".join(letter if letter.isprintable() else f" U+{ord(letter):04X}" for letter in missing[:_LETTERS])
        more = " …" if len(missing) > _LETTERS else ""
        _logger.warning(
            f"{path}: no font that is installed has {shown}{more}; install one, such as Noto Sans CJK, or draw an "
            ".svg, which keeps its text"
        )


def say_left_out(*, too_long: int, empty: int) -> None:
    """Say how many sentences were left out, and why."""
    reasons = [(too_long, "with more pieces than the model takes"), (empty, "without words")]
    said = [f"{count:,} {why}" for count, why in reasons if count]
    if said:
        _logger.info(f"sentences left out: {', '.join(said)}")


def scoring_options(outputs: Outputs, tokenize: str | None, lowercase: bool | None) -> MetricOptions:
    """Choose how to score: as the user says, else as the run's recipe does."""
    own = outputs.scoring
    return replace(
        own,
        tokenize=own.tokenize if tokenize is None else tokenize,
        lowercase=own.lowercase if lowercase is None else lowercase,
    )


def score_outputs(metric: Metric, outputs: Outputs, run: Path | None) -> Score:
    """Score translations; the statistics of each sentence are cached in the folder of their run."""
    from synmt.evaluation.cache import cached_score

    folder = run / "tests" / outputs.test / "segments" if run else None
    return cached_score(metric, outputs.hypothesis, outputs.reference, sources=outputs.source or None, folder=folder)
