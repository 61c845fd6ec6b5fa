"""Parse a text for training, and keep what it took: the trees of a text are made once, for all
runs."""

from __future__ import annotations

import logging
import math
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from synmt.arrays import Side
from synmt.corpora.corpus import Corpus
from synmt.errors import counted
from synmt.files.json_files import read_cached_json
from synmt.files.reading import count_lines, read_lines
from synmt.files.schemas import ParseCost
from synmt.files.writing import write_json
from synmt.parsing.bulk import (
    REFERENCE,
    measured_rate,
    parse_file,
    remember_rate,
    usual_processes,
)
from synmt.parsing.parser import StanzaParser
from synmt.parsing.pipeline import default_processes, on_gpu
from synmt.recipe.data import ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.training.stages import Estimate
from synmt.training.tree_sources.requirements import parser_section, trees_path

_logger = logging.getLogger(__name__)

_NEWS_WORDS = 25
"""Words in a line of news: the estimate for a text that is not on this machine yet."""
_SAMPLE = 2000
"""Lines whose words are counted to estimate those of a text."""


def parse_text(
    recipe: Recipe, corpus: Corpus, text: Path, parser: StanzaParser, data: Path, side: Side
) -> Path:
    """Parse a text of one side if its trees are missing; returns the file of the trees."""
    target, lines = trees_path(data, corpus, text, parser), count_lines(text)
    parsed, words, spent = 0, 0, 0.0
    workers = recipe.parser_of(side).workers or None
    fewer = f"{parser_section(side)}.workers=1"
    with (
        progress(f"parse {text.name}", lines, "lines") as advance,
        closing(parse_file(text, target, parser, workers=workers, fewer=fewer)) as steps,
    ):
        for step in steps:
            if step.state in ("kept", "parsed"):
                words += step.words
                parsed += step.words * (step.state == "parsed")
                # shards of an interrupted run may be those of an old version, which kept no times
                spent += math.nan if step.processor_seconds is None else step.processor_seconds
                advance(step.lines)
            elif step.state == "unchanged":
                _logger.info("parse: %s exists already", target)
            else:
                if parsed and step.processes:
                    remember_rate(parser, parsed, step.seconds, step.processes)
                if words and not math.isnan(spent):
                    write_json(
                        _cost(target), {"lines": lines, "words": words, "processor_seconds": spent}
                    )
                count = counted(step.failures, "failure")
                failures = f", {count} (see {target}.failures.jsonl)" if step.failures else ""
                _logger.info(
                    "parse: %s %s lines in %.0f s%s",
                    target,
                    f"{step.lines:,}",
                    step.seconds,
                    failures,
                )
    return target


def read_parse_cost(trees: Path) -> ParseCost | None:
    """Read what it took to parse a text into a file of trees, if that is known."""
    return read_cached_json(_cost(trees), ParseCost)


def _cost(trees: Path) -> Path:
    return trees.with_name(f"{trees.name}.cost.json")


@dataclass(frozen=True)
class TextSize:
    """How long a text is.

    lines: number of lines; None if it is not known yet.
    words: mean number of words per line.
    measured: whether the words were counted, in the first lines of the text; otherwise they are an
        estimate.
    """

    lines: int | None
    words: float = _NEWS_WORDS
    measured: bool = False

    @classmethod
    def of(cls, path: Path) -> TextSize:
        """Count the lines of a text, and the words in the first of them."""
        sample = [len(line.split()) for line in islice(read_lines(path), _SAMPLE)]
        return cls(count_lines(path), sum(sample) / max(len(sample), 1), measured=True)

    def __str__(self) -> str:
        return f"{self.lines:,} lines" if self.lines is not None else "number of lines unknown"


def parsing_step(
    what: str, text: TextSize, parser: StanzaParser | None, settings: ParserRecipe
) -> Estimate:
    """Estimate how long a text is parsed.

    parser: None if its model is not on this machine yet.
    """
    rate = measured_rate(parser) if parser else None
    if text.lines is None or (rate is None and on_gpu(settings.device) and not settings.workers):
        remark = (
            ""
            if text.lines is None
            else "parsing time unknown: no parsing speed measured on this GPU yet"
        )
        return Estimate(what, "to do", str(text), remark)
    processes = settings.workers or usual_processes(text.lines, default_processes(settings.device))
    hours = text.lines * text.words / ((rate or REFERENCE) * processes) / 3600
    about = "about" if rate else "at least"
    return Estimate(
        what, "to do", f"{text}, {about} {_duration(hours)}", _basis(text, rate, processes)
    )


def _basis(text: TextSize, rate: float | None, processes: int) -> str:
    words = "" if text.measured else f", {text.words:.0f} words a line"
    each = f"in each of {processes} processes" if processes > 1 else "in one process"
    if rate:
        return (
            f"parsing: {rate:,.0f} words a second {each}, as measured last on this machine{words}"
        )
    return (
        f"parsing: {REFERENCE:,} words a second {each}{words}. This is the rate of the compact "
        "English parser on one "
        "core of an AMD Zen 5; official models, long sentences and older machines take longer"
    )


def _duration(hours: float) -> str:
    minutes = 60 * hours
    if minutes < 1:
        return f"{max(60 * minutes, 1):.0f} s"
    return f"{hours:,.1f} hours" if hours >= 1 else f"{minutes:.0f} min"
