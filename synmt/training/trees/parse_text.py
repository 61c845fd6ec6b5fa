"""Parse a text for training, and keep what it took: the trees of a text are made once, for all runs."""

from __future__ import annotations

import logging
import math
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from synmt.arrays import Side
from synmt.corpora.progress import Progress
from synmt.corpora.resolve import Corpus
from synmt.errors import counted
from synmt.files.json_files import read_cached_json
from synmt.files.reading import count_lines
from synmt.files.schemas import ParseCost
from synmt.files.writing import write_json
from synmt.parsing.bulk import parse_file
from synmt.parsing.parser import StanzaParser
from synmt.parsing.rates import remember_rate
from synmt.recipe.schema import Recipe
from synmt.training.trees.requirements import parser_section, trees_path

_logger = logging.getLogger(__name__)


def parse_text(
    recipe: Recipe, corpus: Corpus, text: Path, parser: StanzaParser, data: Path, side: Side
) -> Generator[Progress, None, Path]:
    """Parse a text of one side if its trees are missing; returns the file of the trees."""
    target = trees_path(data, corpus, text, parser)
    stage, lines, done, parsed, words = f"parse {text.name}", count_lines(text), 0, 0, 0
    spent = 0.0
    workers = recipe.parser_of(side).workers or None
    yield Progress(stage, done, lines)
    fewer = f"{parser_section(side)}.workers=1"
    with closing(parse_file(text, target, parser, workers=workers, fewer=fewer)) as steps:
        for step in steps:
            if step.state in ("kept", "parsed"):
                done, words = done + step.lines, words + step.words
                parsed += step.words * (step.state == "parsed")
                # shards of an interrupted run may be those of an old version, which kept no times
                spent += math.nan if step.processor_seconds is None else step.processor_seconds
                yield Progress(stage, done, lines)
            elif step.state == "unchanged":
                _logger.info("parse: %s exists already", target)
            else:
                if parsed and step.processes:
                    remember_rate(parser, parsed, step.seconds, step.processes)
                if words and not math.isnan(spent):
                    write_json(_cost(target), {"lines": lines, "words": words, "processor_seconds": spent})
                count = counted(step.failures, "failure")
                failures = f", {count} (see {target}.failures.jsonl)" if step.failures else ""
                _logger.info("parse: %s %s lines in %.0f s%s", target, f"{step.lines:,}", step.seconds, failures)
    return target


def read_parse_cost(trees: Path) -> ParseCost | None:
    """Read what it took to parse a text into a file of trees, if that is known."""
    return read_cached_json(_cost(trees), ParseCost)


def _cost(trees: Path) -> Path:
    return trees.with_name(f"{trees.name}.cost.json")
