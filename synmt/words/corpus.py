"""The corpus of words: the training and validation text, tokenized in shards that survive every interruption."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.download import alone
from synmt.corpora.progress import Progress
from synmt.corpora.resolve import Corpus
from synmt.files.reading import count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import write_atomically
from synmt.parallel.processes import in_processes, process_count
from synmt.recipe.schema import Recipe
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


def tokenize_corpus(
    corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path
) -> Generator[Progress, None, Words]:
    """Tokenize train and valid of the sides that a recipe changes into files under `root`; those that exist are kept.

    The test sets stay as they are. The tokenizers that are returned know the case of words, where the recipe wants it.
    """
    trained = dict(tokenizers)
    for side, tokenizer in tokenizers.items():
        if tokenizer.recipe.changes:
            texts = {split: getattr(files, side) for split, files in (("train", corpus.train), ("valid", corpus.valid))}
            texts, trained[side] = yield from _tokenize_side(texts, tokenizer, root, corpus.name)
            train, valid = (corpus.splits()[split].model_copy(update={side: path}) for split, path in texts.items())
            corpus = replace(corpus, train=train, valid=valid)
    return corpus, trained


def find_words(corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path) -> Corpus | None:
    """Find the corpus of words that `tokenize_corpus` makes; None as long as one of its files is missing."""
    for side, tokenizer in tokenizers.items():
        if not tokenizer.recipe.changes or tokenizer.recipe.already_cut:
            continue
        files = {"train": corpus.train, "valid": corpus.valid}
        words = {split: _Text(getattr(pair, side), root, root, corpus.name, tokenizer) for split, pair in files.items()}
        model = words["train"].path.with_name("truecase.model")
        if tokenizer.learns_case:
            if not model.is_file():
                return None
            cased = replace(tokenizer, truecaser=Truecaser(model))
            words = {split: replace(text, tokenizer=cased) for split, text in words.items()}
        if not all(text.path.is_file() for text in words.values()):
            return None
        train, valid = (pair.model_copy(update={side: words[split].path}) for split, pair in files.items())
        corpus = replace(corpus, train=train, valid=valid)
    return corpus


def _tokenize_side(
    texts: dict[str, Path], tokenizer: WordTokenizer, root: Path, corpus: str
) -> Generator[Progress, None, tuple[dict[str, Path], WordTokenizer]]:
    """Tokenize the texts of one side; learn the case of words from the training text."""
    words = {split: _Text(path, path, root, corpus, tokenizer) for split, path in texts.items()}
    if not tokenizer.recipe.already_cut:
        for text in words.values():
            yield from text.write(tokenizer.tokenize_lines)
    if tokenizer.learns_case:
        words_of_train = texts["train"] if tokenizer.recipe.already_cut else words["train"].path
        truecaser = yield from _learn(words_of_train, words["train"].path.with_name("truecase.model"))
        tokenizer = replace(tokenizer, truecaser=truecaser)
        words = {split: replace(text, source=text.path, tokenizer=tokenizer) for split, text in words.items()}
        for text in words.values() if not tokenizer.recipe.already_cut else ():
            yield from text.write(truecaser.truecase_lines)
    return texts if tokenizer.recipe.already_cut else {split: text.path for split, text in words.items()}, tokenizer


def _learn(words: Path, model: Path) -> Generator[Progress, None, Truecaser]:
    if not model.is_file():
        lines, stage = count_lines(words), f"learn the case of {words.name}"
        yield Progress(stage, 0, lines)
        learn_truecase(read_lines(words), model)
        yield Progress(stage, lines, lines)
    return Truecaser(model)


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

    def write(self, tokenize: Callable[[list[str]], list[str]]) -> Iterator[Progress]:
        """Write the file unless it exists; shards that an interrupted process has finished are kept."""
        if self.path.is_file():
            _logger.info("words: %s exists already", self.path)
            return
        lines, stage = count_lines(self.source), f"tokenize {self.path.name}"
        parts = self.path.with_name(f"{self.path.name}.parts")
        with alone(self.path, f"tokenizes {self.path.name}"):
            if self.path.is_file():
                return
            yield Progress(stage, 0, lines)
            shards = [parts / f"{number:05}" for number in range(-(-lines // _SHARD_LINES))]
            done = sum(path.is_file() for path in shards)
            for _ in in_processes(
                _tokenize_shard, tokenize, self._missing(shards), _processes(len(shards) - done), where=parts
            ):
                done += 1
                yield Progress(stage, min(lines, done * _SHARD_LINES), lines)
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


def _tokenize_shard(tokenize: Callable[[list[str]], list[str]], shard: _Shard) -> None:
    with write_atomically(shard.path) as out:
        out.writelines(f"{line}\n" for line in tokenize(shard.lines))


def _processes(shards: int) -> int:
    # to load a tokenizer in more processes takes longer than to tokenize two shards
    return process_count(shards) if shards > 2 else 1
