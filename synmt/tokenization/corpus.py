"""The corpus of words: the training and validation text, tokenized in shards that survive every
interruption."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from synmt.tokenization.casing import Truecaser, learn_truecase
from synmt.tokenization.word_tokenizer import WordTokenizer, make_tokenizer

_logger = logging.getLogger(__name__)

_FORMAT = 1
"""Increase it when the same settings give other words."""
_SHARD_LINES = 20_000
"""Lines of a shard; a tokenizer reads them in a few seconds."""

Words = tuple[Corpus, dict[Side, WordTokenizer]]
"""A corpus of words, and what has tokenized its sides."""


def make_tokenizers(
    recipe: Recipe, truecasers: Mapping[Side, Truecaser] | None = None
) -> dict[Side, WordTokenizer]:
    """Make the tokenizers of a recipe; a missing package is reported now.

    truecasers: those of another run; without them, they are learned when the corpus is tokenized.
    """
    return {side: make_tokenizer(recipe, side, (truecasers or {}).get(side)) for side in SIDES}


def tokenize_corpus(corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path) -> Words:
    """Tokenize train and valid of the sides that a recipe changes into files under `root`; those
    that exist are kept.

    The test sets stay as they are. The tokenizers that are returned know the case of words, where
    the recipe wants it.
    """
    for side, tokenizer in _changed_sides(tokenizers):
        texts = _texts(corpus, side, tokenizer, root)
        cut = tokenizer.recipe.already_cut
        for text in () if cut else texts:
            text.write(text.raw, tokenizer.tokenize_lines)
        if tokenizer.learns_case:
            model = _case_model(texts)
            if not model.is_file():
                _learn(texts[0].raw if cut else texts[0].path, model)
            cased = replace(tokenizer, truecaser=Truecaser(model))
            for text in () if cut else texts:
                replace(text, tokenizer=cased).write(text.path, Truecaser(model).truecase_lines)
    found = find_words(corpus, tokenizers, root)
    assert found is not None
    return found


def find_words(
    corpus: Corpus, tokenizers: Mapping[Side, WordTokenizer], root: Path
) -> Words | None:
    """Find what `tokenize_corpus` makes; None as long as one of its files is missing."""
    trained = dict(tokenizers)
    for side, tokenizer in _changed_sides(tokenizers):
        if tokenizer.learns_case:
            model = _case_model(_texts(corpus, side, tokenizer, root))
            if not model.is_file():
                return None
            trained[side] = tokenizer = replace(tokenizer, truecaser=Truecaser(model))
        if tokenizer.recipe.already_cut:
            continue
        train, valid = ({side: text.path} for text in _texts(corpus, side, tokenizer, root))
        if not (train[side].is_file() and valid[side].is_file()):
            return None
        corpus = replace(
            corpus,
            train=corpus.train.model_copy(update=train),
            valid=corpus.valid.model_copy(update=valid),
        )
    return corpus, trained


def _changed_sides(tokenizers: Mapping[Side, WordTokenizer]) -> list[tuple[Side, WordTokenizer]]:
    return [(side, tokenizer) for side, tokenizer in tokenizers.items() if tokenizer.recipe.changes]


def _texts(corpus: Corpus, side: Side, tokenizer: WordTokenizer, root: Path) -> list[_Text]:
    """Name the words of train and valid of a side."""
    paths = [getattr(files, side) for files in (corpus.train, corpus.valid)]
    return [_Text(path, root, corpus.name, tokenizer) for path in paths]


def _case_model(texts: list[_Text]) -> Path:
    return texts[0].path.with_name("truecase.model")


def _learn(words: Path, model: Path) -> None:
    lines = count_lines(words)
    with progress(f"learn the case of {words.name}", lines, "lines") as advance:
        learn_truecase(read_lines(words), model)
        advance(lines)


@dataclass(frozen=True)
class _Text:
    """A file of words.

    raw: the text that it is named after.
    """

    raw: Path
    root: Path
    corpus: str
    tokenizer: WordTokenizer

    @cached_property
    def path(self) -> Path:
        """The file, named by the text and by its tokenizer."""
        key = fingerprint(
            _FORMAT, json.dumps(self.tokenizer.identity, sort_keys=True), stored_sha256(self.raw)
        )
        return self.root / f"{self.corpus}-{key}" / self.raw.name.removesuffix(".gz")

    def write(self, source: Path, tokenize: Callable[[list[str]], list[str]]) -> None:
        """Make the file from another one unless it exists; shards that an interrupted process has
        finished are kept."""
        if self.path.is_file():
            _logger.info("words: %s exists already", self.path)
            return
        lines = count_lines(source)
        parts = self.path.with_name(f"{self.path.name}.parts")
        with alone(self.path, f"tokenizes {self.path.name}"):
            if self.path.is_file():
                return
            shards = [parts / f"{number:05}" for number in range(-(-lines // _SHARD_LINES))]
            left = sum(not path.is_file() for path in shards)
            with progress(f"tokenize {self.path.name}", lines, "lines") as advance:
                advance(max(0, lines - left * _SHARD_LINES))
                missing = _missing(source, shards)
                for written in in_processes(
                    _tokenize_shard, tokenize, missing, _processes(left), where=parts
                ):
                    advance(written)
            with write_atomically(self.path, binary=True) as out:
                for path in shards:
                    with open(path, "rb") as stream:
                        shutil.copyfileobj(stream, out)
            shutil.rmtree(parts, ignore_errors=True)


def _missing(source: Path, shards: Sequence[Path]) -> Iterator[tuple[Path, list[str]]]:
    """Yield each shard that does not exist, with its lines."""
    lines = read_lines(source)
    for path in shards:
        some = list(islice(lines, _SHARD_LINES))
        if not path.is_file():
            yield path, some


def _tokenize_shard(
    tokenize: Callable[[list[str]], list[str]], shard: tuple[Path, list[str]]
) -> int:
    """Write the words of a shard; returns the number of its lines."""
    path, lines = shard
    with write_atomically(path) as out:
        out.writelines(f"{line}\n" for line in tokenize(lines))
    return len(lines)


def _processes(shards: int) -> int:
    # to load a tokenizer in more processes takes longer than to tokenize two shards
    return process_count(shards) if shards > 2 else 1
