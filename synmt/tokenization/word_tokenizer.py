"""From a raw line to its words and back, for one side of a recipe: a tokenizer and case."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side, Texts, Values
from synmt.errors import RESTORE, SynmtError
from synmt.files.reading import stored_sha256
from synmt.files.writing import write_content
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.recipe.schema import Recipe
from synmt.tokenization.tokenizers import SPACE, TOKENIZERS, Tokenizer

_logger = logging.getLogger(__name__)

_SPACE_OF_PIECES = "␣"
"""What `char` writes for a space if the vocabulary is SentencePiece's, which reads ▁ as the space
between two words."""
_ENDS = {".", ":", "?", "!"}
_DELAYS = {"(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;"}
"""Words before the first word of a sentence."""
_DOTTED = {"az", "crh", "kaa", "tr", "tt"}
"""Languages whose Latin alphabet has `i` with its capital `İ`, and `ı` with its capital `I`."""


class Truecaser:
    """Writes the first word of a sentence as it is usually written elsewhere, by a model file:
    true case (Moses' truecase.perl).

    sacremoses learns the model and reads its file. The words are replaced here, because its own
    function looks for XML tags in the text and cuts them off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __getstate__(self) -> Values:
        return {"path": self.path}

    @property
    def identity(self) -> str:
        """SHA-256 of the model."""
        return stored_sha256(self.path)

    @cached_property
    def _model(self) -> tuple[dict[str, str], Any]:
        from sacremoses import MosesTruecaser

        try:
            model: Any = MosesTruecaser(load_from=str(self.path)).model
        except (OSError, ValueError):
            what = "missing, or not a truecase model"
            raise SynmtError(f"broken: {what}", where=self.path, do=RESTORE) from None
        return model["best"], model["known"]

    def truecase(self, words: Texts) -> list[str]:
        """Write the words of a line in their true case."""
        best, known = self._model
        cased: list[str] = []
        first = True
        for word in words:
            # an unknown form of a known word, such as one in capitals, is replaced anywhere
            chosen = best.get(word.lower(), word) if first or word not in known else word
            cased.append(chosen)
            first = chosen in _ENDS or (first and chosen in _DELAYS)
        return cased

    def truecase_lines(self, lines: Texts) -> list[str]:
        """Write lines of words in their true case."""
        return [" ".join(self.truecase(line.split())) for line in lines]

    def capitalize(self, words: Texts, language: str) -> list[str]:
        """Capitalize the first word of each sentence, as detruecase.perl does; in Turkish, `i`
        becomes `İ`."""
        dotted = language in _DOTTED
        cased: list[str] = []
        first = True
        for word in words:
            initial = "İ" if dotted and word[:1] == "i" else word[:1].upper()
            cased.append(initial + word[1:] if first else word)
            first = word in _ENDS or (first and word in _DELAYS)
        return cased


def learn_truecase(lines: Iterable[str], path: Path) -> None:
    """Learn a model from lines of words into a file that appears when it is complete."""
    from sacremoses import MosesTruecaser

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model")
        MosesTruecaser().train(map(str.split, lines), save_to=str(model))
        write_content(path, model.read_bytes())


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

    def tokenize(self, line: str) -> str:
        """Write the words of a line with a space between two."""
        return self.tokenize_lines([line])[0]

    def tokenize_lines(self, lines: Texts) -> list[str]:
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
        kind = TOKENIZERS[self.recipe.tokenizer]
        return kind(self.recipe, self.language, self.parser, self.space)

    @property
    def identity(self) -> Values:
        """What determines the words, in values for JSON."""
        case = {"lowercase": True} if self.recipe.lowercase else {}
        case |= {"truecase": self.truecaser.identity} if self.truecaser else {}
        return {**(self.splitter.identity if self.tokenizes else {}), **case}


Tokenizers = Mapping[Side, WordTokenizer]
"""What tokenizes each side."""

RAW = WordTokenizer(TextRecipe(), "", ParserRecipe())
"""Leaves every line as it is."""


def make_tokenizer(
    recipe: Recipe, side: Side, truecaser: Truecaser | None, *, space: str = ""
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


def identities(tokenizers: Tokenizers) -> Values:
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


def load_tokenizers(recipe: Recipe, folder: Path, recorded: Mapping[str, Any]) -> Tokenizers:
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
