"""The first stages of the data: find the text, find the trees or their parsers, tokenize, parse."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import estimates, find_corpus, resolve, stated_counts
from synmt.data.prepare import check_lengths
from synmt.errors import counted
from synmt.files.json_files import read_cached_json
from synmt.files.reading import count_lines, offline, read_lines
from synmt.files.schemas import ParseCost
from synmt.files.writing import write_json
from synmt.parsing.bulk import parse_file
from synmt.parsing.models import folder_of, missing
from synmt.parsing.official import check_language, fetch
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.data import ParserRecipe
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.tokenization.corpus import Words, find_words, make_tokenizers, tokenize_corpus
from synmt.tokenization.word_tokenizer import Truecaser, WordTokenizer
from synmt.training.stages import Estimate, Stage
from synmt.training.tree_sources.parse_source import ParseSource, find_parse_source
from synmt.training.tree_sources.requirements import (
    TreeRequirements,
    all_given_trees,
    given_trees,
    lacks_parser,
    make_parser,
    parser_section,
    trees_path,
)


class TextStage(Stage[Corpus]):
    """Finds the text; what is public and missing is downloaded and built."""

    name = "find the text"

    def __init__(self, recipe: Recipe) -> None:
        self.where = recipe.corpus, recipe.source, recipe.target

    def find(self) -> Corpus | None:
        return find_corpus(*self.where)

    def make(self) -> Corpus:
        return resolve(*self.where)

    def estimate(self) -> Iterator[Estimate]:
        if self.known:
            yield Estimate(f"{self.name}: {self.known.train.source.parent}", "done")
            return
        for step in estimates(*self.where):
            amount = _bytes(step.size) if step.what.startswith("download") else ""
            pairs = f"about {step.pairs:,} pairs to train on" if step.pairs else ""
            yield Estimate(step.what, step.state, amount or pairs, problem=step.problem)

    def lines(self, split: str) -> int | None:
        """Count the lines of a split; None if they are not known yet."""
        if self.known:
            return count_lines(self.known.splits()[split].source)
        return stated_counts(self.where[0]).get(split)


def _bytes(size: int | None) -> str:
    if size is None:
        return "size unknown"
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


class ParserStage(Stage[dict[Side, ParseSource]]):
    """Finds the trees or the parser of each side, before any long work; Stanza's missing models are
    downloaded."""

    name = "find the trees"

    def __init__(
        self,
        recipe: Recipe,
        requirements: Mapping[Side, TreeRequirements],
        sides: Sequence[Side],
        text: TextStage,
    ) -> None:
        self.recipe, self.requirements, self.text = recipe, requirements, text
        self.sides: list[Side] = [
            side for side in SIDES if side in sides or requirements[side].as_text
        ]

    def find(self) -> dict[Side, ParseSource] | None:
        if self.text.known is None or any(self._lacking()):
            return None
        return self.make()

    def make(self) -> dict[Side, ParseSource]:
        for side in self._lacking():
            fetch(self.recipe.language_of(side), self.recipe.parser_of(side).package)
        return {
            side: find_parse_source(self.recipe, self.text.result, side, self.requirements[side])
            for side in self.sides
        }

    def estimate(self) -> Iterator[Estimate]:
        # one parser may parse both sides
        models = {
            self.recipe.language_of(side): self.recipe.parser_of(side).package
            for side in self._lacking()
        }
        for language, package in models.items():
            check_language(language)
            what = (
                f"download the parser: Stanza's official model for '{language}', package {package}"
            )
            if offline():
                yield Estimate(
                    what, "missing", problem=missing("official", folder_of("official"), language)
                )
            else:
                yield Estimate(
                    what, "to do", "size unknown", "the list of Stanza's models has no sizes"
                )

    def _lacking(self) -> list[Side]:
        """List the sides whose parser has to be downloaded; raises SynmtError for a parser that
        cannot be had."""
        return [side for side in SIDES if self._parses(side) and lacks_parser(self.recipe, side)]

    def given(self, side: Side) -> bool:
        """Return whether all trees of a side come with its text; before the text is there, the
        recipe has to say so."""
        settings, text = self.recipe.parser_of(side), self.text.known
        if text is None:
            return settings.control == "gold" or settings.constituents == "given"
        return bool(all_given_trees(self.recipe, text, side, self.requirements[side]))

    def _parses(self, side: Side) -> bool:
        """Return whether the recipe's parser of a side is used."""
        recipe, text = self.recipe, self.text.known
        if self.recipe.text_of(side).tokenizer == "stanza":
            return True
        if side in self.sides:
            return not self.given(side)
        if (
            side == "target"
            or recipe.tasks.trees != "dependencies"
            or recipe.parser.control == "gold"
        ):
            return False
        return text is None or given_trees(recipe, text.train, side) is None

    def parser_of(self, side: Side) -> StanzaParser | None:
        """Return the parser of a side, if it is used; the text is there."""
        if side in self.sides and self.recipe.text_of(side).tokenizer != "stanza":
            return self.result[side].parser
        return make_parser(self.recipe, side) if self._parses(side) else None


class WordStage(Stage[Corpus]):
    """Tokenizes the text of the sides that a recipe changes.

    tokenizers: what tokenizes each side, once that is known.
    """

    name = "tokenize the text"
    tokenizers: Mapping[Side, WordTokenizer]

    def __init__(
        self, data: Path, parsers: ParserStage, truecasers: Mapping[Side, Truecaser] | None
    ) -> None:
        self.recipe, self.data, self.text, self.parsers = (
            parsers.recipe,
            data,
            parsers.text,
            parsers,
        )
        self._truecasers = truecasers

    def find(self) -> Corpus | None:
        if self.text.known is None or self.parsers.known is None:
            return None
        self.tokenizers = make_tokenizers(self.recipe, self._truecasers)
        found = find_words(self.text.known, self.tokenizers, self.data / "words")
        return self._keep(found) if found else None

    def make(self) -> Corpus:
        text = self.text.result
        check_lengths(text.splits())
        return self._keep(tokenize_corpus(text, self.tokenizers, self.data / "words"))

    def _keep(self, words: Words) -> Corpus:
        corpus, self.tokenizers = words
        return corpus

    def estimate(self) -> Iterator[Estimate]:
        if not any(self.recipe.text_of(side).changes for side in SIDES):
            return
        if self.known:
            yield Estimate(f"{self.name}: {self.known.train.source.parent}", "done")
        else:
            yield Estimate(self.name, "to do", str(TextSize(self.text.lines("train"))))

    def parser_with_trees(
        self, parser: StanzaParser, side: Side, splits: Iterable[str]
    ) -> StanzaParser:
        """Choose the parser with probabilities if its trees of these splits exist: they are the
        same trees."""
        other = parser.with_arcs()
        found = all(read_summary(path) for path in self.trees(side, splits, other))
        return other if found else parser

    def trees(self, side: Side, splits: Iterable[str], parser: StanzaParser) -> list[Path]:
        """Name the files for the trees of some splits, whose words are known."""
        texts = self.result.splits()
        return [
            trees_path(self.data, self.result, getattr(texts[split], side), parser)
            for split in splits
        ]

    def parse(self, side: Side, split: str, parser: StanzaParser) -> Path:
        """Parse a split if its trees are missing."""
        text = getattr(self.result.splits()[split], side)
        return parse_text(self.recipe, self.result, text, parser, self.data, side)

    def parse_steps(
        self, side: Side, splits: Iterable[str], parser: StanzaParser | None
    ) -> Iterator[Estimate]:
        """Estimate how long some splits are parsed.

        parser: None if its model is not here yet.
        """
        for split in splits:
            name, path = f"{split}.{self.recipe.language_of(side)}", None
            size, trees = TextSize(self.text.lines(split)), None
            if self.known:
                path = getattr(self.known.splits()[split], side)
                name, size = path.name, TextSize.of(path)
                [trees] = self.trees(side, [split], parser) if parser else [None]
            if trees and read_summary(trees):
                yield Estimate(f"parse {name}: {trees}", "done")
            else:
                yield parsing_step(f"parse {name}", size, parser, self.recipe.parser_of(side))


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
    words, spent = 0, 0.0
    settings = recipe.parser_of(side)
    fewer = f"{parser_section(side)}.workers=1"
    with (
        progress(f"parse {text.name}", lines, "lines") as advance,
        closing(
            parse_file(text, target, parser, workers=settings.workers or None, fewer=fewer)
        ) as steps,
    ):
        for step in steps:
            if step.state in ("kept", "parsed"):
                words += step.words
                # shards of an interrupted run may be those of an old version, which kept no times
                spent += math.nan if step.processor_seconds is None else step.processor_seconds
                advance(step.lines)
            elif step.state == "unchanged":
                _logger.info("parse: %s exists already", target)
            else:
                if words and not math.isnan(spent):
                    cost = {"lines": lines, "words": words, "processor_seconds": spent}
                    write_json(_cost(target), cost)
                count = counted(step.failures, "failure")
                failures = f", {count} (see {target}.failures.jsonl)" if step.failures else ""
                numbers = f"{step.lines:,} lines{failures}"
                _logger.info("parse: %s %s", target, numbers)
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
    words: mean number of words per line, an estimate.
    """

    lines: int | None
    words: float = _NEWS_WORDS

    @classmethod
    def of(cls, path: Path) -> TextSize:
        """Count the lines of a text, and the words in the first of them."""
        sample = [len(line.split()) for line in islice(read_lines(path), _SAMPLE)]
        return cls(count_lines(path), sum(sample) / max(len(sample), 1))

    def __str__(self) -> str:
        return f"{self.lines:,} lines" if self.lines is not None else "number of lines unknown"


def parsing_step(
    what: str, text: TextSize, parser: StanzaParser | None, settings: ParserRecipe
) -> Estimate:
    """Describe the size of a text that is parsed."""
    return Estimate(what, "to do", str(text))
