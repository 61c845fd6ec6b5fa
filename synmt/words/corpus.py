"""The corpus of words: the training and validation text, tokenized in shards that survive every interruption."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.download import alone
from synmt.corpora.resolve import Corpus
from synmt.files.reading import count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import write_atomically
from synmt.parallel.processes import in_processes, process_count
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.words.casing import Truecaser, learn_truecase
from synmt.words.word_tokenizer import WordTokenizer, make_tokenizer

_logger = logging.getLogger(__name__)

_FORMAT = 1
"""Increase it when the same settings give other words."""
_SHARD_LINES = 20_000
"""Lines of a shard; a tokenizer reads them in a few seconds."""

Words = tuple[Corpus, dict[Side, WordTokenizer]]
"""A corpus of words, and what has tokenized its sides."""


def make_tokenizers(recipe: Recipe, truecasers: Mapping[Side, Truecaser] | None = None) -> dict[Side, WordTokenizer]:
    """Make the tokenizers of a recipe; a missing package is reported now.

    truecasers: those of another run; without them, they are learned when the corpus is tokenized.
    """
    return {side: make_tokenizer(recipe, side, (truecasers or {}).get(side)) for side in SIDES}


def tokenize_corpus(corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path) -> Words:
    """Tokenize train and valid of the sides that a recipe changes into files under `root`; those that exist are kept.

    The test sets stay as they are. The tokenizers that are returned know the case of words, where the recipe wants it.
    """
    trained = dict(tokenizers)
    for side, tokenizer in _changed_sides(tokenizers):
        texts = _texts(corpus, side, tokenizer, root)
        if not tokenizer.recipe.already_cut:
            for text in texts:
                text.write(tokenizer.tokenize_lines)
        if tokenizer.learns_case:
            model = _case_model(texts)
            if not model.is_file():
                _learn(texts[0].raw if tokenizer.recipe.already_cut else texts[0].path, model)
            trained[side] = tokenizer = replace(tokenizer, truecaser=Truecaser(model))
            texts = [replace(text, source=text.path, tokenizer=tokenizer) for text in texts]
            for text in texts if not tokenizer.recipe.already_cut else ():
                text.write(Truecaser(model).truecase_lines)
        corpus = _with_words(corpus, side, texts)
    return corpus, trained


def find_words(corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path) -> Words | None:
    """Find what `tokenize_corpus` makes; None as long as one of its files is missing."""
    trained = dict(tokenizers)
    for side, tokenizer in _changed_sides(tokenizers):
        texts = _texts(corpus, side, tokenizer, root)
        needed = [] if tokenizer.recipe.already_cut else texts
        if tokenizer.learns_case:
            model = _case_model(texts)
            if not model.is_file():
                return None
            trained[side] = tokenizer = replace(tokenizer, truecaser=Truecaser(model))
            texts = [replace(text, tokenizer=tokenizer) for text in texts]
            needed = texts if needed else []
        if not all(text.path.is_file() for text in needed):
            return None
        corpus = _with_words(corpus, side, texts)
    return corpus, trained


def _changed_sides(tokenizers: Mapping[Side, WordTokenizer]) -> list[tuple[Side, WordTokenizer]]:
    return [(side, tokenizer) for side, tokenizer in tokenizers.items() if tokenizer.recipe.changes]


def _texts(corpus: Corpus, side: Side, tokenizer: WordTokenizer, root: Path) -> list[_Text]:
    """Name the words of train and valid of a side."""
    paths = [getattr(files, side) for files in (corpus.train, corpus.valid)]
    return [_Text(path, path, root, corpus.name, tokenizer) for path in paths]


def _case_model(texts: list[_Text]) -> Path:
    return texts[0].path.with_name("truecase.model")


def _with_words(corpus: Corpus, side: Side, texts: list[_Text]) -> Corpus:
    """Put words in place of the text of a side, unless it was cut into words already."""
    if texts[0].tokenizer.recipe.already_cut:
        return corpus
    train, valid = (
        files.model_copy(update={side: text.path})
        for files, text in zip((corpus.train, corpus.valid), texts, strict=True)
    )
    return replace(corpus, train=train, valid=valid)


def _learn(words: Path, model: Path) -> None:
    lines = count_lines(words)
    with progress(f"learn the case of {words.name}", lines, "lines") as advance:
        learn_truecase(read_lines(words), model)
        advance(lines)


@dataclass(frozen=True)
class _Text:
    """A file of words.

    raw: the text that it is named after.
    source: the file that it is made from.
    """

    raw: Path
    source: Path
    root: Path
    corpus: str
    tokenizer: WordTokenizer

    @cached_property
    def path(self) -> Path:
        """The file, named by the text and by its tokenizer."""
        key = fingerprint(_FORMAT, json.dumps(self.tokenizer.identity, sort_keys=True), stored_sha256(self.raw))
        return self.root / f"{self.corpus}-{key}" / self.raw.name.removesuffix(".gz")

    def write(self, tokenize: Callable[[list[str]], list[str]]) -> None:
        """Write the file unless it exists; shards that an interrupted process has finished are kept."""
        if self.path.is_file():
            _logger.info("words: %s exists already", self.path)
            return
        lines = count_lines(self.source)
        parts = self.path.with_name(f"{self.path.name}.parts")
        with alone(self.path, f"tokenizes {self.path.name}"):
            if self.path.is_file():
                return
            shards = [parts / f"{number:05}" for number in range(-(-lines // _SHARD_LINES))]
            left = sum(not path.is_file() for path in shards)
            with progress(f"tokenize {self.path.name}", lines, "lines") as advance:
                advance(max(0, lines - left * _SHARD_LINES))
                for written in in_processes(
                    _tokenize_shard, tokenize, self._missing(shards), _processes(left), where=parts
                ):
                    advance(written)
            with write_atomically(self.path, binary=True) as out:
                for path in shards:
                    with open(path, "rb") as stream:
                        shutil.copyfileobj(stream, out)
            shutil.rmtree(parts, ignore_errors=True)

    def _missing(self, shards: list[Path]) -> Iterator[_Shard]:
        lines = read_lines(self.source)
        for path in shards:
            some = list(islice(lines, _SHARD_LINES))
            if not path.is_file():
                yield _Shard(path, some)


@dataclass(frozen=True)
class _Shard:
    """Some lines of a text, and the file of their words."""

    path: Path
    lines: list[str]


def _tokenize_shard(tokenize: Callable[[list[str]], list[str]], shard: _Shard) -> int:
    """Write the words of a shard; returns the number of its lines."""
    with write_atomically(shard.path) as out:
        out.writelines(f"{line}\n" for line in tokenize(shard.lines))
    return len(shard.lines)


def _processes(shards: int) -> int:
    # to load a tokenizer in more processes takes longer than to tokenize two shards
    return process_count(shards) if shards > 2 else 1
