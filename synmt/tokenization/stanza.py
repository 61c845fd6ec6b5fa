"""Stanza's tokenizer, that of the parser of a side: multi-word tokens stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from synmt.files.reading import stored_sha256
from synmt.parsing import models, pipeline
from synmt.parsing.lines import batches, unreadable
from synmt.parsing.stanza_internals import checked_version
from synmt.recipe.data import ParserRecipe, TextRecipe
from synmt.tokenization.joining import join_tight
from synmt.tokenization.tokenizers import Tokenizer, split_words

_BATCH_WORDS = 5000
"""Words that are read at once."""


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
