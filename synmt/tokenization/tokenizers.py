"""Tokenizers by name: each splits a line into words without whitespace, and joins words into a
line.

Joining gives the line back where the words tell how they were joined. Where they do not, it is a
guess: Moses writes `http : / / a.b` and `a - b` for two texts each, MeCab and jieba do not say
where a space was.
"""

from __future__ import annotations

import importlib
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from synmt.errors import SynmtError, UsageError
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
    """

    packages: tuple[str, ...] = ()

    def __init__(self, recipe: TextRecipe, language: str) -> None:
        self.recipe, self.language = recipe, language

    def __getstate__(self) -> dict[str, Any]:
        # a worker process loads its own tokenizer
        return {key: value for key, value in self.__dict__.items() if key != "_loaded"}

    def tokenize(self, line: str) -> list[str]:
        """Split a line into words; none of them is empty or has whitespace."""
        return split_words(self._split(evenly_spaced(line)))

    @abstractmethod
    def _split(self, line: str) -> str | Iterable[str]:
        """Split a line whose whitespace is spaces into tokens, which may contain some."""

    def detokenize(self, words: Sequence[str]) -> str:
        """Join words into a line as a person would write it."""
        return join_tight(words)

    def tokenize_lines(self, lines: Sequence[str]) -> list[list[str]]:
        """Split lines; faster than one by one."""
        return [self.tokenize(line) for line in lines]

    def check(self) -> None:
        """Load the tokenizer; raises SynmtError that names what is missing."""
        if self.recipe.truecase:
            _version("sacremoses")
        self.detokenize(self.tokenize("1 ."))

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the words: name, language, options and versions of packages."""
        options = {key: True for key in ("split_hyphens", "escape") if getattr(self.recipe, key)}
        versions = {name: _version(name) for name in self.packages}
        return {
            "tokenizer": self.recipe.tokenizer,
            "language": self.language,
            **options,
            **versions,
        }

    def join_words(self, words: Sequence[str], **options: bool) -> str:
        """Join words by the rules of the language for spaces."""
        self._import("sacremoses")
        return join_spaced(words, self.language, **options)

    def _import(self, module: str) -> Any:
        try:
            # jieba's own code makes Python warn
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return importlib.import_module(module)
        except ImportError as error:
            raise _missing(self.recipe.tokenizer, self.packages, str(error)) from None


class MosesTokenizer(Tokenizer):
    """Moses' tokenizer.perl and detokenizer.perl, by sacremoses."""

    packages = ("sacremoses",)

    @cached_property
    def _loaded(self) -> Any:
        return _load_moses(self._import("sacremoses"), self.language)

    def _split(self, line: str) -> list[str]:
        recipe = self.recipe
        return self._loaded.tokenize(
            line, aggressive_dash_splits=recipe.split_hyphens, escape=recipe.escape
        )

    def detokenize(self, words: Sequence[str]) -> str:
        return self.join_words(words, unescape=self.recipe.escape)


@cache
def _load_moses(sacremoses: Any, language: str) -> Any:
    tokenizer = sacremoses.MosesTokenizer(language)
    # its own methods make a set of 100,000 letters for every word with a full stop, which takes
    # most of the time
    letters, lower = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = lower.issuperset
    return tokenizer


@cache
def _load_spacy(spacy: Any, language: str) -> Any:
    # one for all recipes of a process: it takes a third of a second
    return spacy.blank(language).tokenizer


class SpacyTokenizer(Tokenizer):
    """The tokenizer of spaCy's blank pipeline; for Chinese it gives characters."""

    packages = ("spacy", "sacremoses")

    @cached_property
    def _loaded(self) -> Any:
        spacy = self._import("spacy")
        try:
            return _load_spacy(spacy, self.language)
        except ImportError as error:
            # spaCy raises the same exception for an unknown language and for a package that a
            # language needs
            if "E048" in str(error):
                raise UsageError(
                    f"spaCy has no tokenizer for '{self.language}'",
                    do="Choose another `tokenizer`, such as moses",
                ) from None
            raise _missing("spacy", (f"spacy[{self.language}]",), str(error)) from None

    @cached_property
    def _splits_hyphens(self) -> bool:
        return len(self.tokenize("ab-cd")) == 3

    def _split(self, line: str) -> list[str]:
        return [token.text for token in self._loaded(line)]

    def detokenize(self, words: Sequence[str]) -> str:
        if self.language == "zh":
            return "".join(words)
        return (
            join_tight(words)
            if self.language == "ja"
            else self.join_words(words, hyphens=self._splits_hyphens)
        )


class MecabTokenizer(Tokenizer):
    """MeCab with the IPA dictionary, as sacreBLEU's `ja-mecab`."""

    packages = ("mecab-python3", "ipadic")

    @cached_property
    def _loaded(self) -> Any:
        arguments = self._import("ipadic").MECAB_ARGS
        return self._import("MeCab").Tagger(f"{arguments} -Owakati")

    def _split(self, line: str) -> str:
        return self._loaded.parse(line)


class KyteaTokenizer(Tokenizer):
    """KyTea with the model that comes with the program, or the one that KYTEA_MODEL names."""

    packages = ("kytea",)

    @cached_property
    def _loaded(self) -> Any:
        binding, path = self._import("Mykytea"), self._model
        try:
            return binding.Mykytea(f"-model {path} -notags" if path else "-notags")
        except RuntimeError as error:
            raise SynmtError(
                f"KyTea's model cannot be read ({error})",
                where=path,
                do="The Python package has no model: install KyTea, "
                "http://www.phontron.com/kytea/, whose model.bin it "
                "finds, or set KYTEA_MODEL to a model file",
            ) from None

    @property
    def _model(self) -> str:
        return os.environ.get("KYTEA_MODEL", "")

    @property
    def identity(self) -> dict[str, Any]:
        return {
            **super().identity,
            **({"model": stored_sha256(Path(self._model))} if self._model else {}),
        }

    def _split(self, line: str) -> list[str]:
        return self._loaded.getWS(line)


class JiebaTokenizer(Tokenizer):
    """Jieba's default mode."""

    packages = ("jieba",)

    @cached_property
    def _loaded(self) -> Any:
        jieba = self._import("jieba")
        # it logs to stderr by itself
        jieba.setLogLevel("CRITICAL")
        return jieba

    def _split(self, line: str) -> list[str]:
        return self._loaded.lcut(line)


class CharacterTokenizer(Tokenizer):
    """Every character is a word, and a mark replaces spaces, so that the line can be restored.

    space: the mark.
    """

    def __init__(self, recipe: TextRecipe, language: str, space: str = SPACE) -> None:
        super().__init__(recipe, language)
        self.space = space

    @property
    def identity(self) -> dict[str, Any]:
        return {**super().identity, **({"space": self.space} if self.space != SPACE else {})}

    def _split(self, line: str) -> list[str]:
        return list(self.space.join(WORD.findall(line)))

    def detokenize(self, words: Sequence[str]) -> str:
        return "".join(words).replace(self.space, " ").strip()


class StanzaTokenizer(Tokenizer):
    """The tokenizer of a Stanza model; a line with 1,000 characters without whitespace stays as it
    is."""

    packages = ("sacremoses",)

    def __init__(self, recipe: TextRecipe, language: str, parser: ParserRecipe) -> None:
        super().__init__(recipe, language)
        self.parser = parser

    @property
    def identity(self) -> dict[str, Any]:
        files = pipeline.model_files(self._folder, self.language, self.parser.package)
        model = {
            name: stored_sha256(path)
            for name, path in sorted(files.items())
            if "tokenize" in name.split("/")
        }
        return {**super().identity, "stanza": checked_version(), "files": model}

    @cached_property
    def _folder(self) -> Path:
        return models.locate(self.parser.model, self.language)

    @cached_property
    def _loaded(self) -> Any:
        return pipeline.load_tokenizer(self._folder, self.language, self.parser.package)

    def _split(self, line: str) -> list[str]:
        return self.tokenize_lines([line])[0]

    def tokenize_lines(self, lines: Sequence[str]) -> list[list[str]]:
        words = {line: split_words(line) for line in lines}
        readable = [line for line, found in words.items() if found and not unreadable(line)]
        for batch in batches(readable, _BATCH_WORDS):
            words |= zip(
                batch, map(split_words, pipeline.tokenize(self._loaded, batch)), strict=True
            )
        return [words[line] for line in lines]

    def detokenize(self, words: Sequence[str]) -> str:
        return join_tight(words) if self.language in ("zh", "ja") else self.join_words(words)


def split_words(tokens: str | Iterable[str]) -> list[str]:
    """Split tokens at whitespace, which spaCy and Stanza leave inside some of them."""
    return WORD.findall(tokens if isinstance(tokens, str) else " ".join(tokens))


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise _missing("", (package,), f"the package {package} is missing") from None


def _missing(tokenizer: str, packages: Sequence[str], why: str) -> SynmtError:
    extra = "kytea" if "kytea" in packages else "tokenizers"
    what = f"the tokenizer '{tokenizer}' needs" if tokenizer else "this recipe needs"
    return SynmtError(
        f"{what} {' and '.join(packages)}, which cannot be imported ({why})",
        do=f"Install it: `pip install 'synmt[{extra}]'`, or only `pip install "
        f"{' '.join(packages)}`",
    )
