"""The corpus of words: the training and validation text, tokenized in shards that survive every
interruption."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from synmt.arrays import SIDES, Side
from synmt.corpora.resolve import Corpus
from synmt.files.reading import count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import alone, write_atomically, write_lines
from synmt.parallel.processes import in_processes, process_count
from synmt.recipe.schema import Recipe
from synmt.reporting.progress import progress
from synmt.tokenization.word_tokenizer import (
    Tokenizers,
    Truecaser,
    WordTokenizer,
    learn_truecase,
    make_tokenizer,
)

_logger = logging.getLogger(__name__)

_FORMAT = 1
"""Increase it when the same settings give other words."""
_SHARD_LINES = 20_000
"""Lines of a shard; a tokenizer reads them in a few seconds."""

Words = tuple[Corpus, Tokenizers]
"""A corpus of words, and what has tokenized its sides."""


def make_tokenizers(
    recipe: Recipe, truecasers: Mapping[Side, Truecaser] | None = None
) -> Tokenizers:
    """Make the tokenizers of a recipe; a missing package is reported now.

    truecasers: those of another run; without them, they are learned when the corpus is tokenized.
    """
    return {side: make_tokenizer(recipe, side, (truecasers or {}).get(side)) for side in SIDES}


def tokenize_corpus(corpus: Corpus, tokenizers: Tokenizers, root: Path) -> Words:
    """Tokenize train and valid of the sides that a recipe changes into files under `root`; those
    that exist are kept.

    The test sets stay as they are. The tokenizers that are returned know the case of words, where
    the recipe wants it.
    """
    words = _words(corpus, tokenizers, root, make=True)
    assert words is not None
    return words


def find_words(corpus: Corpus, tokenizers: Tokenizers, root: Path) -> Words | None:
    """Find what `tokenize_corpus` makes; None as long as one of its files is missing."""
    return _words(corpus, tokenizers, root, make=False)


def _words(corpus: Corpus, tokenizers: Tokenizers, root: Path, *, make: bool) -> Words | None:
    trained = dict(tokenizers)
    for side, tokenizer in tokenizers.items():
        if not tokenizer.recipe.changes:
            continue
        paths = [getattr(files, side) for files in (corpus.train, corpus.valid)]
        texts = [_Text(path, root, corpus.name, tokenizer) for path in paths]
        # words that the owners of a corpus have cut stay as they are
        is_cut = tokenizer.recipe.already_cut
        writes = make and not is_cut
        for text in texts if writes else ():
            text.write(text.raw, tokenizer.tokenize_lines)
        if tokenizer.recipe.truecase and tokenizer.truecaser is None:
            words = texts[0].raw if is_cut else texts[0].path
            model = texts[0].path.with_name("truecase.model")
            if make and not model.is_file():
                _logger.info("learning the case of %s", words.name)
                learn_truecase(read_lines(words), model)
            if not model.is_file():
                return None
            caser = Truecaser(model)
            trained[side] = tokenizer = replace(tokenizer, truecaser=caser)
            cased = [replace(text, tokenizer=tokenizer) for text in texts]
            for text, before in zip(cased, texts, strict=True) if writes else ():
                text.write(before.path, caser.truecase_lines)
            texts = cased
        if is_cut:
            continue
        if not all(text.path.is_file() for text in texts):
            return None
        train, valid = ({side: text.path} for text in texts)
        corpus = replace(
            corpus,
            train=corpus.train.model_copy(update=train),
            valid=corpus.valid.model_copy(update=valid),
        )
    return corpus, trained


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
            return
        lines = count_lines(source)
        parts = self.path.with_name(f"{self.path.name}.parts")
        with alone(self.path):
            if self.path.is_file():
                return
            shards = [parts / f"{number:05}" for number in range(-(-lines // _SHARD_LINES))]
            # to load a tokenizer in more processes takes longer than to tokenize two shards
            processes = process_count(len(shards)) if len(shards) > 2 else 1
            with progress(f"tokenize {self.path.name}", lines, "lines") as advance:
                text = read_lines(source)
                texts = iter(lambda: list(islice(text, _SHARD_LINES)), [])
                pairs = zip(shards, texts, strict=True)
                missing = (pair for pair in pairs if not pair[0].is_file())
                for written in in_processes(
                    _tokenize_shard, tokenize, missing, processes, where=parts
                ):
                    advance(written)
            with write_atomically(self.path, binary=True) as out:
                for path in shards:
                    with open(path, "rb") as stream:
                        shutil.copyfileobj(stream, out)
            shutil.rmtree(parts, ignore_errors=True)


def _tokenize_shard(
    tokenize: Callable[[list[str]], list[str]], shard: tuple[Path, list[str]]
) -> int:
    """Write the words of a shard; returns the number of its lines."""
    path, lines = shard
    write_lines(path, tokenize(lines))
    return len(lines)
