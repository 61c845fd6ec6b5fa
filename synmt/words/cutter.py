"""From a raw line to its words and back, for one side of a recipe: tokenizer and case."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.errors import broken_run
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.recipe.schema import Recipe
from synmt.words import tokenizers
from synmt.words.casing import Truecaser
from synmt.words.stanza import StanzaTokenizer

_logger = logging.getLogger(__name__)

_TOKENIZERS = {
    "moses": tokenizers.MosesTokenizer,
    "spacy": tokenizers.SpacyTokenizer,
    "mecab": tokenizers.MecabTokenizer,
    "kytea": tokenizers.KyteaTokenizer,
    "jieba": tokenizers.JiebaTokenizer,
}

_SPACE_OF_PIECES = "␣"
"""What `char` writes for a space if the vocabulary is SentencePiece's, which reads ▁ as the space between two words."""


@dataclass(frozen=True)
class Cutter:
    """Cuts the text of one side, and joins its words; without a tokenizer, lines stay as they are.

    parser: the section of the recipe whose Stanza model also cuts the text.
    truecaser: None if the recipe has none, or before it is learned.
    space: what `char` writes for a space.
    """

    recipe: TextRecipe
    language: str
    parser: ParserRecipe
    truecaser: Truecaser | None = None
    space: str = tokenizers.SPACE

    @cached_property
    def cuts(self) -> bool:
        """Whether lines become words, with a space between two."""
        return self.recipe.cuts

    @property
    def learns_case(self) -> bool:
        """Whether a truecase model is still to be learned."""
        return self.recipe.truecase and self.truecaser is None

    def cut(self, line: str) -> str:
        """Cut a line into words with a space between two."""
        return self.cut_lines([line])[0]

    def cut_lines(self, lines: Sequence[str]) -> list[str]:
        """Cut lines."""
        if not self.cuts:
            return [line.lower() if self.recipe.lowercase else line for line in lines]
        return [" ".join(self._cased(words)) for words in self.tokenizer.tokenize_lines(lines)]

    def join(self, line: str) -> str:
        """Join the words of a line into text; only whitespace separates them."""
        if not self.cuts:
            return line
        words = line.split()
        return self.tokenizer.detokenize(self.truecaser.capitalize(words, self.language) if self.truecaser else words)

    def _cased(self, words: list[str]) -> list[str]:
        if self.truecaser is not None:
            return self.truecaser.truecase(words)
        return [word.lower() for word in words] if self.recipe.lowercase else words

    @cached_property
    def tokenizer(self) -> tokenizers.Tokenizer:
        """The tokenizer; it loads its data when it first cuts."""
        assert self.cuts
        if self.recipe.tokenizer == "stanza":
            return StanzaTokenizer(self.recipe, self.language, self.parser)
        if self.recipe.tokenizer == "char":
            return tokenizers.CharacterTokenizer(self.recipe, self.language, self.space)
        return _TOKENIZERS[self.recipe.tokenizer](self.recipe, self.language)

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the words, in values for JSON."""
        case = {"lowercase": True} if self.recipe.lowercase else {}
        case |= {"truecase": self.truecaser.identity} if self.truecaser else {}
        return {**(self.tokenizer.identity if self.cuts else {}), **case}


RAW = Cutter(TextRecipe(), "", ParserRecipe())
"""Leaves every line as it is."""


def make_cutter(recipe: Recipe, side: Side, truecaser: Truecaser | None = None, *, space: str = "") -> Cutter:
    """Make the cutter of one side; raises SynmtError if its tokenizer cannot be loaded.

    space: what `char` writes for a space; by default, what the vocabulary can keep.
    """
    space = space or (tokenizers.SPACE if recipe.vocabulary.kind == "word" else _SPACE_OF_PIECES)
    cutter = Cutter(recipe.text_of(side), recipe.language_of(side), recipe.parser_of(side), truecaser, space)
    if cutter.cuts:
        cutter.tokenizer.check()
    return cutter


def identities(cutters: Mapping[Side, Cutter]) -> dict[str, Any]:
    """Describe what cut each side that a recipe changes."""
    return {side: cutter.identity for side, cutter in cutters.items() if cutter.recipe.changes}


def case_model(folder: Path, side: Side) -> Path:
    """Name the truecase model of a side in a run folder."""
    return folder / f"{side}.truecase"


def load_truecasers(recipe: Recipe, folder: Path) -> dict[Side, Truecaser]:
    """Find the truecase models of a run, for the sides whose text has true case."""
    paths: dict[Side, Path] = {side: case_model(folder, side) for side in SIDES if recipe.text_of(side).truecase}
    for path in paths.values():
        if not path.is_file():
            raise broken_run(path, f"{path.name} is missing")
    return {side: Truecaser(path) for side, path in paths.items()}


def load_cutters(recipe: Recipe, folder: Path, recorded: Mapping[str, Any]) -> dict[Side, Cutter]:
    """Make the cutters of a run, and warn if its text was cut in another way.

    recorded: for each side, the identity of the cutter that cut the training text.
    """
    cutters: dict[Side, Cutter] = {}
    truecasers = load_truecasers(recipe, folder)
    for side in SIDES:
        before = recorded.get(side) or {}
        # older runs were cut with ▁ for every vocabulary
        space = before.get("space", tokenizers.SPACE) if before else ""
        cutters[side] = make_cutter(recipe, side, truecasers.get(side), space=space)
        now = cutters[side].identity
        if different := [
            f"{key} {now.get(key)} instead of {before[key]}" for key in before if now.get(key) != before[key]
        ]:
            _logger.warning(f"the {side} is not cut as the training text was: {', '.join(different)}")
    return cutters
