"""Tokenizers by name: each splits a line into words without whitespace, and joins words into a
line.

Joining gives the line back where the words tell how they were joined. Where they do not, it is a
guess: Moses writes `http : / / a.b` and `a - b` for two texts each, MeCab and jieba do not say
where a space was.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synmt.arrays import Strings, Texts, Values
from synmt.errors import SynmtError
from synmt.files.reading import stored_sha256
from synmt.parsing import models, pipeline
from synmt.parsing.lines import batches, unreadable
from synmt.parsing.stanza_internals import checked_version
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.syntax.parse import WORD, evenly_spaced
from synmt.tokenization.joining import join_spaced, join_tight

SPACE = "▁"
"""What `char` writes for a space."""
_BATCH_WORDS = 5000
"""Words that Stanza reads at once."""


class Tokenizer(ABC):
    """Splits text of one language into words; by default, words are joined as in Chinese and
    Japanese.

    packages: the Python packages that it needs, by their names in the index.
    parser: the section of the recipe for the model of `stanza`.
    space: what `char` writes for a space.
    """

    packages: Strings = ()

    def __init__(self, recipe: TextRecipe, language: str, parser: ParserRecipe, space: str) -> None:
        self.recipe, self.language, self.parser, self.space = recipe, language, parser, space

    def __getstate__(self) -> Values:
        # a worker process loads its own tokenizer
        return {key: value for key, value in self.__dict__.items() if key != "_loaded"}

    def tokenize(self, line: str) -> list[str]:
        """Split a line into words; none of them is empty or has whitespace."""
        return split_words(self._split(evenly_spaced(line)))

    @abstractmethod
    def _split(self, line: str) -> str | Iterable[str]:
        """Split a line whose whitespace is spaces into tokens, which may contain some."""

    def detokenize(self, words: Texts) -> str:
        """Join words into a line as a person would write it."""
        return join_tight(words)

    def tokenize_lines(self, lines: Texts) -> list[list[str]]:
        """Split lines; faster than one by one."""
        return [self.tokenize(line) for line in lines]

    def check(self) -> None:
        """Load the tokenizer; raises SynmtError if it cannot be used here."""
        try:
            self.detokenize(self.tokenize("1 ."))
            if self.recipe.truecase:
                version("sacremoses")
        except (ImportError, RuntimeError) as error:
            raise SynmtError(
                f"the tokenizer '{self.recipe.tokenizer}' for '{self.language}' cannot be loaded "
                f"({error})",
                do="Install what it needs: `pip install 'synmt[tokenizers]'`; for KyTea, `pip "
                "install 'synmt[kytea]'` and its model, or set KYTEA_MODEL to a model file",
            ) from None

    @property
    def identity(self) -> Values:
        """What determines the words: name, language, options and versions of packages."""
        options = {key: True for key in ("split_hyphens", "escape") if getattr(self.recipe, key)}
        versions = {name: version(name) for name in self.packages}
        names = {"tokenizer": self.recipe.tokenizer, "language": self.language}
        return names | options | versions


class MosesTokenizer(Tokenizer):
    """Moses' tokenizer.perl and detokenizer.perl, by sacremoses."""

    packages = ("sacremoses",)

    @cached_property
    def _loaded(self) -> Any:
        import sacremoses

        tokenizer: Any = sacremoses.MosesTokenizer(self.language)
        # its own methods make a set of 100,000 letters for every word with a full stop, which
        # takes most of the time
        letters, lower = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
        tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
        tokenizer.islower = lower.issuperset
        return tokenizer

    def _split(self, line: str) -> list[str]:
        recipe = self.recipe
        return self._loaded.tokenize(
            line, aggressive_dash_splits=recipe.split_hyphens, escape=recipe.escape
        )

    def detokenize(self, words: Texts) -> str:
        return join_spaced(words, self.language, unescape=self.recipe.escape)


class SpacyTokenizer(Tokenizer):
    """The tokenizer of spaCy's blank pipeline; for Chinese it gives characters."""

    packages = ("spacy", "sacremoses")

    @cached_property
    def _loaded(self) -> Any:
        import spacy

        return spacy.blank(self.language).tokenizer

    @cached_property
    def _splits_hyphens(self) -> bool:
        return len(self.tokenize("ab-cd")) == 3

    def _split(self, line: str) -> list[str]:
        return [token.text for token in self._loaded(line)]

    def detokenize(self, words: Texts) -> str:
        if self.language == "zh":
            return "".join(words)
        if self.language == "ja":
            return join_tight(words)
        return join_spaced(words, self.language, hyphens=self._splits_hyphens)


class MecabTokenizer(Tokenizer):
    """MeCab with the IPA dictionary, as sacreBLEU's `ja-mecab`."""

    packages = ("mecab-python3", "ipadic")

    @cached_property
    def _loaded(self) -> Any:
        import ipadic
        import MeCab

        return MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")

    def _split(self, line: str) -> str:
        return self._loaded.parse(line)


class KyteaTokenizer(Tokenizer):
    """KyTea with the model that comes with the program, or the one that KYTEA_MODEL names."""

    packages = ("kytea",)

    @cached_property
    def _loaded(self) -> Any:
        import Mykytea  # type: ignore[import-not-found]

        return Mykytea.Mykytea(f"-model {self._model} -notags" if self._model else "-notags")

    @property
    def _model(self) -> str:
        return os.environ.get("KYTEA_MODEL", "")

    @property
    def identity(self) -> Values:
        model = {"model": stored_sha256(Path(self._model))} if self._model else {}
        return super().identity | model

    def _split(self, line: str) -> list[str]:
        return self._loaded.getWS(line)


class JiebaTokenizer(Tokenizer):
    """Jieba's default mode."""

    packages = ("jieba",)

    @cached_property
    def _loaded(self) -> Any:
        # its own code makes Python warn, and it logs to stderr by itself
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
        jieba.setLogLevel("CRITICAL")
        return jieba

    def _split(self, line: str) -> list[str]:
        return self._loaded.lcut(line)


class CharacterTokenizer(Tokenizer):
    """Every character is a word, and a mark replaces spaces, so that the line can be restored."""

    @property
    def identity(self) -> Values:
        return super().identity | ({"space": self.space} if self.space != SPACE else {})

    def _split(self, line: str) -> list[str]:
        return list(self.space.join(WORD.findall(line)))

    def detokenize(self, words: Texts) -> str:
        return "".join(words).replace(self.space, " ").strip()


class StanzaTokenizer(Tokenizer):
    """The tokenizer of a Stanza model; a line with 1,000 characters without whitespace stays as it
    is."""

    packages = ("sacremoses",)

    @property
    def identity(self) -> Values:
        files = pipeline.model_files(self._folder, self.language, self.parser.package)
        model = {
            name: stored_sha256(path)
            for name, path in sorted(files.items())
            if "tokenize" in name.split("/")
        }
        return super().identity | {"stanza": checked_version(), "files": model}

    @cached_property
    def _folder(self) -> Path:
        return models.locate(self.parser.model, self.language)

    @cached_property
    def _loaded(self) -> Any:
        return pipeline.load_tokenizer(self._folder, self.language, self.parser.package)

    def _split(self, line: str) -> list[str]:
        return self.tokenize_lines([line])[0]

    def tokenize_lines(self, lines: Texts) -> list[list[str]]:
        words = {line: split_words(line) for line in lines}
        readable = [line for line, tokens in words.items() if tokens and not unreadable(line)]
        for batch in batches(readable, _BATCH_WORDS):
            words |= zip(
                batch, map(split_words, pipeline.tokenize(self._loaded, batch)), strict=True
            )
        return [words[line] for line in lines]

    def detokenize(self, words: Texts) -> str:
        is_tight = self.language in ("zh", "ja")
        return join_tight(words) if is_tight else join_spaced(words, self.language)


def split_words(tokens: str | Iterable[str]) -> list[str]:
    """Split tokens at whitespace, which spaCy and Stanza leave inside some of them."""
    return WORD.findall(tokens if isinstance(tokens, str) else " ".join(tokens))


TOKENIZERS = {
    "moses": MosesTokenizer,
    "spacy": SpacyTokenizer,
    "mecab": MecabTokenizer,
    "kytea": KyteaTokenizer,
    "jieba": JiebaTokenizer,
    "char": CharacterTokenizer,
    "stanza": StanzaTokenizer,
}
