"""From a raw line to its words and back, for one side of a recipe: a tokenizer and case."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.recipe.schema import Recipe
from synmt.tokenization.casing import Truecaser
from synmt.tokenization.tokenizers import (
    SPACE,
    TOKENIZERS,
    CharacterTokenizer,
    StanzaTokenizer,
    Tokenizer,
)

_logger = logging.getLogger(__name__)

_SPACE_OF_PIECES = "␣"
"""What `char` writes for a space if the vocabulary is SentencePiece's, which reads ▁ as the space
between two words."""


@dataclass(frozen=True)
class WordTokenizer:
    """Tokenizes the text of one side, and joins its words; without a tokenizer, lines stay as they
    are.

    parser: the section of the recipe whose Stanza model also tokenizes the text.
    truecaser: None if the recipe has none, or before it is learned.
    space: what `char` writes for a space.
    """

    recipe: TextRecipe
    language: str
    parser: ParserRecipe
    truecaser: Truecaser | None = None
    space: str = SPACE

    @cached_property
    def tokenizes(self) -> bool:
        """Whether lines become words, with a space between two."""
        return self.recipe.tokenizes

    @property
    def learns_case(self) -> bool:
        """Whether a truecase model is still to be learned."""
        return self.recipe.truecase and self.truecaser is None

    def tokenize(self, line: str) -> str:
        """Write the words of a line with a space between two."""
        return self.tokenize_lines([line])[0]

    def tokenize_lines(self, lines: Sequence[str]) -> list[str]:
        """Tokenize lines; faster than one by one."""
        if not self.tokenizes:
            return [line.lower() if self.recipe.lowercase else line for line in lines]
        return [" ".join(self._cased(words)) for words in self.splitter.tokenize_lines(lines)]

    def join(self, line: str) -> str:
        """Join the words of a line into text; only whitespace separates them."""
        if not self.tokenizes:
            return line
        words = line.split()
        return self.splitter.detokenize(
            self.truecaser.capitalize(words, self.language) if self.truecaser else words
        )

    def _cased(self, words: list[str]) -> list[str]:
        if self.truecaser is not None:
            return self.truecaser.truecase(words)
        return [word.lower() for word in words] if self.recipe.lowercase else words

    @cached_property
    def splitter(self) -> Tokenizer:
        """The tokenizer that the recipe names; it loads its data when it is first used."""
        assert self.tokenizes
        if self.recipe.tokenizer == "stanza":
            return StanzaTokenizer(self.recipe, self.language, self.parser)
        if self.recipe.tokenizer == "char":
            return CharacterTokenizer(self.recipe, self.language, self.space)
        return TOKENIZERS[self.recipe.tokenizer](self.recipe, self.language)

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the words, in values for JSON."""
        case = {"lowercase": True} if self.recipe.lowercase else {}
        case |= {"truecase": self.truecaser.identity} if self.truecaser else {}
        return {**(self.splitter.identity if self.tokenizes else {}), **case}


RAW = WordTokenizer(TextRecipe(), "", ParserRecipe())
"""Leaves every line as it is."""


def make_tokenizer(
    recipe: Recipe, side: Side, truecaser: Truecaser | None = None, *, space: str = ""
) -> WordTokenizer:
    """Make the tokenizer of one side; raises SynmtError if its tokenizer cannot be loaded.

    space: what `char` writes for a space; by default, what the vocabulary can keep.
    """
    space = space or (SPACE if recipe.vocabulary.kind == "word" else _SPACE_OF_PIECES)
    tokenizer = WordTokenizer(
        recipe.text_of(side), recipe.language_of(side), recipe.parser_of(side), truecaser, space
    )
    if tokenizer.tokenizes:
        tokenizer.splitter.check()
    return tokenizer


def identities(tokenizers: Mapping[Side, WordTokenizer]) -> dict[str, Any]:
    """Describe what tokenizes each side that a recipe changes."""
    return {
        side: tokenizer.identity
        for side, tokenizer in tokenizers.items()
        if tokenizer.recipe.changes
    }


def case_model(folder: Path, side: Side) -> Path:
    """Name the truecase model of a side in a run folder."""
    return folder / f"{side}.truecase"


def load_truecasers(recipe: Recipe, folder: Path) -> dict[Side, Truecaser]:
    """Find the truecase models of a run, for the sides whose text has true case."""
    return {
        side: Truecaser(case_model(folder, side)) for side in SIDES if recipe.text_of(side).truecase
    }


def load_tokenizers(
    recipe: Recipe, folder: Path, recorded: Mapping[str, Any]
) -> dict[Side, WordTokenizer]:
    """Make the tokenizers of a run, and warn if its text was tokenized in another way.

    recorded: for each side, the identity of the tokenizer of the training text.
    """
    tokenizers: dict[Side, WordTokenizer] = {}
    truecasers = load_truecasers(recipe, folder)
    for side in SIDES:
        before = recorded.get(side) or {}
        # older runs were tokenized with ▁ for every vocabulary
        space = str(before.get("space", SPACE)) if before else ""
        tokenizers[side] = make_tokenizer(recipe, side, truecasers.get(side), space=space)
        now = tokenizers[side].identity
        if not before.items() <= now.items():
            _logger.warning(
                f"the {side} is not tokenized as the training text was: {now} instead of {before}"
            )
    return tokenizers
