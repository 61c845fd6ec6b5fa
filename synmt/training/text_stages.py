"""The first stages of the data: find the text, find the trees or their parsers, tokenize, parse."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from synmt.arrays import SIDES, Pair, Side
from synmt.corpora.corpus import Corpus
from synmt.corpora.resolve import Estimate, estimates, find_corpus, resolve
from synmt.data.prepare import check_lengths
from synmt.exchange.hub import HUB, NotDownloaded, without_downloads
from synmt.files.json_files import read_cached_json
from synmt.files.reading import count_lines, fingerprint, offline, stored_sha256
from synmt.files.schemas import ParseCost
from synmt.files.writing import write_json
from synmt.parsing.bulk import ParseProgress, parse_file
from synmt.parsing.official import check_download, fetch, is_complete
from synmt.parsing.parser import StanzaParser
from synmt.parsing.target import read_summary
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.run_folder import named_run
from synmt.tokenization.corpus import Words, find_words, make_tokenizers, tokenize_corpus
from synmt.tokenization.word_tokenizer import Truecaser
from synmt.training.stages import Stage
from synmt.training.tree_sources import (
    Requirements,
    TreeSource,
    all_given_trees,
    find_source,
    make_parser,
)

_logger = logging.getLogger(__name__)


class PretrainedStage(Stage[Path]):
    """The run of `model.init`, if it is a model of the hub."""

    name = "download the pretrained model"

    def __init__(self, init: Path | None) -> None:
        self.init = init or Path()
        self.is_idle = not str(self.init).startswith(HUB)

    def find(self) -> Path | None:
        """Find the run in the cache."""
        if self.is_idle:
            return self.init
        with without_downloads(), suppress(NotDownloaded):
            return named_run(self.init).folder
        return None

    def make(self) -> Path:
        """Download the model, and make a run of it."""
        return named_run(self.init).folder

    def estimates(self) -> Iterable[Estimate]:
        """Describe the stage; what cannot be downloaded is a problem."""
        if self.known is None and offline():
            self.make()
        return super().estimates()


class TextStage(Stage[Corpus]):
    """Finds the text; what is public and missing is downloaded and built."""

    name = "find the text"

    def __init__(self, recipe: Recipe) -> None:
        self.where = recipe.corpus, recipe.source, recipe.target

    def find(self) -> Corpus | None:
        return find_corpus(*self.where)

    def make(self) -> Corpus:
        return resolve(*self.where)

    def estimates(self) -> Iterable[Estimate]:
        return super().estimates() if self.known else estimates(*self.where)


class SourceStage(Stage[dict[Side, TreeSource]]):
    """Finds the trees or the parser of each side, before any long work; Stanza's missing models are
    downloaded.

    sides: those whose trees are needed.
    """

    name = "find the trees"

    def __init__(
        self,
        recipe: Recipe,
        requirements: Requirements,
        sides: Collection[Side],
        text: TextStage,
    ) -> None:
        self.recipe, self.requirements, self.sides = recipe, requirements, sides
        self.text = text

    def find(self) -> dict[Side, TreeSource] | None:
        return None if self.text.known is None or self._lacking() else self.make()

    def make(self) -> dict[Side, TreeSource]:
        for language, package in self._lacking():
            fetch(language, package)
        return {
            side: find_source(self.recipe, self.text.result, side, self.requirements[side])
            for side in self.sides
        }

    def estimates(self) -> Iterator[Estimate]:
        for language, package in self._lacking():
            check_download(language)
            yield Estimate(f"download the parser of Stanza for '{language}', package {package}")

    def _lacking(self) -> list[Pair]:
        """List language and package of each parser that has to be downloaded; raises SynmtError for
        one that cannot be had."""
        models = list[Pair]()
        for side in filter(self.parses, SIDES):
            settings, language = self.recipe.parser_of(side), self.recipe.language_of(side)
            if settings.model == "official" and not is_complete(language, settings.package):
                models.append((language, settings.package))
            else:
                make_parser(self.recipe, side)
        return models

    def parses(self, side: Side) -> bool:
        """Return whether the recipe's parser of a side is used."""
        return self.recipe.text_of(side).tokenizer == "stanza" or (
            side in self.sides and not self.are_given(side)
        )

    def are_given(self, side: Side) -> bool:
        """Return whether all trees of a side come with its text; before the text is there, the
        recipe has to say so."""
        recipe, text = self.recipe, self.text.known
        if text is None:
            settings = recipe.parser_of(side)
            return (
                settings.constituents == "given"
                or recipe.tasks.trees == "bracketings"
                or settings.control == "gold"
            )
        return bool(all_given_trees(recipe, text, side, self.requirements[side]))


class WordStage(Stage[Words]):
    """Tokenizes the text of the sides that a recipe changes; the result is the corpus of words, and
    what tokenizes each side."""

    name = "tokenize the text"

    def __init__(
        self, data: Path, sources: SourceStage, truecasers: Mapping[Side, Truecaser] | None
    ) -> None:
        self.recipe, self.data, self.sources = sources.recipe, data, sources
        self.text, self._truecasers = sources.text, truecasers
        self.is_idle = not any(self.recipe.text_of(side).changes for side in SIDES)

    def find(self) -> Words | None:
        if self.text.known is None or self.sources.known is None:
            return None
        return find_words(
            self.text.known, make_tokenizers(self.recipe, self._truecasers), self.data / "words"
        )

    def make(self) -> Words:
        check_lengths(self.text.result.splits())
        return tokenize_corpus(
            self.text.result, make_tokenizers(self.recipe, self._truecasers), self.data / "words"
        )


class ParseStage(Stage[dict[str, Path]]):
    """Parses one side of some splits; the result is the file of trees of each split: those that
    come with the text, or those of the parser."""

    def __init__(self, side: Side, words: WordStage) -> None:
        self.side: Side = side
        self.words, self.sources = words, words.sources
        self.splits = words.sources.requirements[side].splits
        self.name = f"parse the {side}"

    def find(self) -> dict[str, Path] | None:
        if self.sources.known is None or self.words.known is None:
            return None
        source = self.sources.known[self.side]
        if source.parser is None:
            return dict(source.given)
        # trees with probabilities are the same trees
        for parser in (source.parser, source.parser.with_arcs()):
            paths = {split: self._trees(split, parser) for split in self.splits}
            if all(map(read_summary, paths.values())):
                return paths
        return None

    def make(self) -> dict[str, Path]:
        parser = self.sources.result[self.side].parser
        assert parser is not None
        return {split: self._parse(split, parser) for split in self.splits}

    def _parse(self, split: str, parser: StanzaParser) -> Path:
        """Parse a split if its trees are missing, and store what that took."""
        text, trees, steps = self._text(split), self._trees(split, parser), list[ParseProgress]()
        lines, settings = count_lines(text), self.words.recipe.parser_of(self.side)
        with progress(f"parse {text.name}", lines, "lines") as advance:
            for step in parse_file(text, trees, parser, workers=settings.workers or None):
                if step.state in ("kept", "parsed"):
                    steps.append(step)
                    advance(step.lines)
        # shards of an interrupted run may be those of an old version, which stored no times
        seconds = [step.processor_seconds for step in steps if step.processor_seconds is not None]
        words, failures = sum(step.words for step in steps), sum(step.failures for step in steps)
        if words and len(seconds) == len(steps):
            write_json(
                _cost(trees), {"lines": lines, "words": words, "processor_seconds": sum(seconds)}
            )
        if failures:
            _logger.warning("%d lines could not be parsed: %s.failures.jsonl", failures, trees)
        return trees

    def cost(self) -> ParseCost | None:
        """Read what it took to parse the training text, if that is known."""
        return read_parse_cost(self.result["train"]) if self.is_done() else None

    def size(self) -> str:
        text = self.words.text.known
        return f"{count_lines(text.train.source):,} lines" if text else ""

    def estimates(self) -> Iterable[Estimate]:
        return [] if self.sources.are_given(self.side) else super().estimates()

    def _text(self, split: str) -> Path:
        return getattr(self.words.result[0].splits()[split], self.side)

    def _trees(self, split: str, parser: StanzaParser) -> Path:
        """Name the file for the trees of a split, the same for the same text and parser."""
        text = self._text(split)
        name = f"{self.words.result[0].name}-{text.name.removesuffix('.gz')}"
        key = fingerprint(stored_sha256(text), parser.fingerprint)
        return self.words.data / "parses" / f"{name}-{key}.conllu.gz"


def read_parse_cost(trees: Path) -> ParseCost | None:
    """Read what it took to parse a text into a file of trees, if that is known."""
    return read_cached_json(_cost(trees), ParseCost)


def _cost(trees: Path) -> Path:
    return trees.with_name(f"{trees.name}.cost.json")
