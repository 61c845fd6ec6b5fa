"""Steps that several analyses share: read a test set, parse its lines, score it, write a figure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synmt.errors import SynmtError, UsageError, unknown_name
from synmt.reporting.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from synmt.analysis.forward_passes import ParsedText
    from synmt.arrays import Side
    from synmt.decode.translator import Translator
    from synmt.evaluation.metrics import MetricOptions
    from synmt.evaluation.outputs import Outputs
    from synmt.parsing.parser import StanzaParser
    from synmt.recipe.schema import Recipe
    from synmt.run_folder import Run
    from synmt.syntax.parse import Parse

_logger = logging.getLogger(__name__)

_LINES_AT_ONCE = 256
"""How many lines are parsed between two updates of the progress."""


def check_name(name: str, names: Sequence[str], what: str) -> None:
    """Raise UsageError if a value of the option `--what` is not one of its names."""
    if name not in names:
        raise unknown_name(what, name, names, where=f"--{what}")


def as_paths(given: Path | Sequence[Path] | None) -> list[Path]:
    """List the paths of an option that takes one or several."""
    return [] if given is None else [given] if isinstance(given, Path) else list(given)


def read_test(run: Path | None, test: str | None) -> Outputs:
    """Read a run's translations of a test set."""
    from synmt.evaluation.outputs import from_run

    return from_run(run, test)


def find_parser(
    recipe: Recipe, side: Side, model: str | None, *, to: Literal["parse", "tag"]
) -> StanzaParser:
    """Find the parser or tagger of one side: the model that the user named, else the recipe's or
    Stanza's default."""
    from synmt.training.tree_sources.requirements import make_analysis_parser, parser_section

    try:
        return make_analysis_parser(recipe, side, model=model)
    except SynmtError as error:
        language = recipe.language_of(side)
        why = f"{error.where}: {error.what}" if error.where else error.what
        raise error.with_(
            what=f"no Stanza model for '{language}' to {to} the {side} ({why})",
            where="",
            do=f"Name one with `--parser FOLDER` (or `{parser_section(side)}.model` in the recipe)",
        ) from None


def file_language(path: Path | None, side: Side) -> str:
    """Read the language of a file from its name, `test.de` or `test.de.gz`; a source without one is
    English."""
    ending = Path(str(path).removesuffix(".gz")).suffix.removeprefix(".")
    if len(ending) == 2 and ending.isalpha() and ending.islower():
        return ending
    if side == "target":
        do = "End the name of the references in it, such as `test.de`"
        raise UsageError("the language of the target is unknown", do=do)
    return "en"


def parse_text(
    translator: Translator,
    run: Run,
    side: Side,
    source: Sequence[str],
    target: Sequence[str] | None,
    named: str | None,
) -> tuple[ParsedText, str]:
    """Parse one side with the parser that the user named, else the one that the run records for the
    side, else the recipe's; returns the name of the parser, too.

    A model that reads trees of the recorded parser reads these trees.
    """
    from synmt.analysis.forward_passes import ParsedText

    recorded = named is None and side == "source" and translator.parser_identity is not None
    parser = translator.parser if recorded else find_parser(run.recipe(), side, named, to="parse")
    parses = parse_lines(parser, source if target is None else target)
    read = parses if recorded and translator.reads_trees else None
    return ParsedText(side, source, target, parses, read), name_parser(parser)


def check_recorded(translator: Translator, run: Path, option: str = "") -> None:
    """Raise UsageError for a model that reads trees if its run does not record their parser.

    option: takes a file of trees instead.
    """
    if translator.reads_trees and translator.parser_identity is None:
        from synmt.decode.tree_provider import unknown_parser

        give = f", or give the trees of the text with `{option} FILE.conllu`" if option else ""
        raise unknown_parser(where=str(run), do=f"Use a run that records its parser{give}")


def parse_lines(parser: StanzaParser, lines: Sequence[str]) -> list[Parse]:
    """Parse lines, with progress, and warn of each line that could not be parsed into one tree;
    trees are cached between runs."""
    from synmt.parsing.cache import CachedParser
    from synmt.parsing.lines import warn_of_failure

    cached, parses = CachedParser(parser), list[Parse]()

    def warn(index: int, reason: str) -> None:
        warn_of_failure(len(parses) + index + 1, reason)

    with progress("parsing", len(lines), "lines") as advance:
        for first in range(0, len(lines), _LINES_AT_ONCE):
            window = lines[first : first + _LINES_AT_ONCE]
            parses += cached.parse(window, on_failure=warn)
            advance(len(window))
    return parses


def name_parser(parser: StanzaParser) -> str:
    """Name a parser for users; a model in a folder has the name of the folder."""
    named = parser.model in ("compact", "official")
    model = parser.model if named else parser.folder.resolve().name
    return f"Stanza ({model}, {parser.language})"


def as_read(translator: Translator, text: ParsedText) -> str:
    """Describe how a model changes the trees of a text that it reads, as an addition to the name of
    their parser; empty if it does not read them."""
    if text.model_trees is None or not translator.reads_trees:
        return ""
    control = translator.reading.control
    changed = f"; the model reads {control.name} trees instead"
    return ", as the model reads it" if control.idle else changed


def save_plot(path: Path, draw: Callable[[], Figure], *, grid: str = "y") -> None:
    """Draw a figure into a file as `save_figure` does, log its path, and warn of characters
    without a font."""
    from synmt.reporting.figures import save_figure

    missing = save_figure(draw, path, grid=grid)
    _logger.info("plot: %s", path)
    if missing:
        _logger.warning(
            "%s: no installed font has %s; an .svg file keeps text as text", path, missing[:12]
        )


def scoring_options(
    outputs: Outputs, tokenize: str | None, lowercase: bool | None, metric: str = "bleu"
) -> MetricOptions:
    """Choose how to score: as the user says, else as the run's recipe does; warns if the metric
    finds no words."""
    from synmt.evaluation.spaces import warn_of_unspaced

    options = outputs.scoring.updated(tokenize=tokenize, lowercase=lowercase)
    warn_of_unspaced(outputs.system, outputs.reference, [metric], options.tokenize)
    return options
