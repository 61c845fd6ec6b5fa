"""The corpus of words: the training and validation text, cut in shards that survive every interruption."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from synmt.arrays import SIDES, Side
from synmt.data.corpora import Corpus
from synmt.data.encoding import Progress
from synmt.files import count_lines, fingerprint, locked, read_lines, stored_sha256, write_atomically
from synmt.parsing.workers import in_processes
from synmt.recipe.schema import Recipe
from synmt.words.casing import Truecaser, learn_truecase
from synmt.words.cutter import Cutter, make_cutter

_logger = logging.getLogger(__name__)

_FORMAT = 1
"""Increase it when the same settings give other words."""
_SHARD_LINES = 20_000
"""A tokenizer cuts them in some seconds."""


@dataclass(frozen=True)
class CutCorpus:
    """A corpus whose training and validation text are words; its test sets stay raw.

    raw: the corpus before.
    cutters: by side.
    """

    corpus: Corpus
    raw: Corpus
    cutters: Mapping[Side, Cutter] = field(default_factory=dict)

    @property
    def identities(self) -> dict[str, Any]:
        """What cut each side that is changed."""
        return {side: cutter.identity for side, cutter in self.cutters.items() if cutter.recipe.changes}


def make_cutters(recipe: Recipe) -> dict[Side, Cutter]:
    """Make the cutters of a recipe before a truecase model is learned; a missing package is reported now."""
    return {side: make_cutter(recipe, side) for side in SIDES}


def cut_corpus(corpus: Corpus, cutters: Mapping[Side, Cutter], root: Path) -> Generator[Progress, None, CutCorpus]:
    """Cut the sides of a corpus that its recipe changes into files under `root`; those that exist are kept."""
    splits = {"train": corpus.train, "valid": corpus.valid}
    trained = dict(cutters)
    for side, cutter in cutters.items():
        if not cutter.recipe.changes:
            continue
        raw: dict[str, Path] = {split: getattr(files, side) for split, files in splits.items()}
        texts = {}
        for split, text in raw.items():
            texts[split] = _Text(text, text, root, corpus.name, cutter)
            yield from texts[split].write(cutter.cut_lines)
        if cutter.recipe.truecase:
            trained[side] = cutter = yield from _learn(cutter, texts["train"])
            assert cutter.truecaser is not None
            for split, text in raw.items():
                texts[split] = _Text(text, texts[split].path, root, corpus.name, cutter)
                yield from texts[split].write(cutter.truecaser.truecase_lines)
        splits = {split: files.model_copy(update={side: texts[split].path}) for split, files in splits.items()}
    return CutCorpus(replace(corpus, **splits), corpus, trained)


def _learn(cutter: Cutter, train: _Text) -> Generator[Progress, None, Cutter]:
    model = train.path.with_name("truecase.model")
    if not model.is_file():
        lines = count_lines(train.path)
        yield Progress(f"learn the case of {train.raw.name}", 0, lines)
        learn_truecase(read_lines(train.path), model)
        yield Progress(f"learn the case of {train.raw.name}", lines, lines)
    return replace(cutter, truecaser=Truecaser(model))


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
    cutter: Cutter

    @cached_property
    def path(self) -> Path:
        """The file, named by the text and by what cuts it."""
        key = fingerprint(_FORMAT, json.dumps(self.cutter.identity, sort_keys=True), stored_sha256(self.raw))
        return self.root / f"{self.corpus}-{key}" / self.raw.name.removesuffix(".gz")

    def write(self, cut: Callable[[list[str]], list[str]]) -> Iterator[Progress]:
        """Write the file unless it exists; shards that an interrupted process has finished are kept."""
        if self.path.is_file():
            _logger.info("words: %s exists already", self.path)
            return
        lines, stage = count_lines(self.source), f"cut {self.path.name}"
        parts = self.path.with_name(f"{self.path.name}.parts")
        with locked(parts, "these words"):
            yield Progress(stage, 0, lines)
            shards = [parts / f"{number:05}" for number in range(-(-lines // _SHARD_LINES))]
            done = sum(path.is_file() for path in shards)
            for _ in in_processes(_cut_shard, cut, self._missing(shards), _processes(len(shards) - done), where=parts):
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


def _cut_shard(cut: Callable[[list[str]], list[str]], shard: _Shard) -> None:
    with write_atomically(shard.path) as out:
        out.writelines(f"{line}\n" for line in cut(shard.lines))


def _processes(shards: int) -> int:
    # to load a tokenizer in more processes takes longer than to cut two shards
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, shards) if shards > 2 else 1
