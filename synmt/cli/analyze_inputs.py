"""What several kinds of `synmt analyze` take in: the test set of a run, and trees of its lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synmt.cli import console
from synmt.errors import SynmtError

if TYPE_CHECKING:
    from synmt.corpus import Side
    from synmt.outputs import Outputs
    from synmt.recipe import Recipe
    from synmt.syntax.parse import Parse
    from synmt.syntax.parsers import StanzaParser

_LINES = 256
"""So many lines are parsed between two steps of the progress."""


def read_test(run: Path | None, test: str | None) -> Outputs:
    """Read a run's translations of a test set, and say which others it could have been where none was chosen."""
    from synmt.outputs import from_run

    outputs = from_run(run, test)
    if outputs.other_tests and test is None:
        console.remark(f"test set {outputs.test}; choose with --test: {', '.join(outputs.other_tests)}")
    return outputs


def find_parser(recipe: Recipe, side: Side, model: str | None, *, to: Literal["parse", "tag"]) -> StanzaParser:
    """Find what parses or tags one side: the model that was named, else the recipe's or Stanza's own."""
    from synmt.needs import make_analysis_parser, parser_section

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


def parse_lines(parser: StanzaParser, lines: Sequence[str]) -> list[Parse]:
    """Parse lines with a progress, and warn of each that has no proper tree; those of earlier runs are kept."""
    from synmt.syntax.parse_cache import CachedParser

    parses: list[Parse] = []
    # what only parses, as tests have it, has no name to keep trees under
    known = CachedParser(parser, remark=console.remark) if hasattr(parser, "fingerprint") else parser

    def warn(index: int, why: str) -> None:
        console.warn(f"line {len(parses) + index + 1}: its tree is flat or pieced: {why}")

    with console.progress("parsing", len(lines), "lines") as advance:
        for first in range(0, len(lines), _LINES):
            some = lines[first : first + _LINES]
            parses += known.parse(some, on_failure=warn)
            advance(len(some))
    return parses


def name_parser(parser: StanzaParser) -> str:
    """Name a parser for people; a model in a folder is called as the folder."""
    model = parser.model if parser.model in ("compact", "official") else parser.folder.resolve().name
    return f"Stanza ({model}, {parser.language})"


def say_left_out(*, too_long: int, empty: int) -> None:
    """Say how many sentences were left out, and why."""
    reasons = [(too_long, "with more pieces than the model takes"), (empty, "without words")]
    said = [f"{count:,} {why}" for count, why in reasons if count]
    if said:
        console.remark(f"sentences left out: {', '.join(said)}")
