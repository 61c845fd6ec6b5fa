"""Finds the text of a recipe: a known corpus by name, a folder, or public corpora and files one by
one.

What is missing is made by steps, which `resolve` runs and `estimates` lists: public files are
downloaded, each text is built from them, and the parts of the training text are put together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from synmt.corpora.corpus import Corpus, CorpusPart, Splits
from synmt.corpora.download import (
    RemoteFile,
    download_all,
    is_there,
    network_problem,
)
from synmt.corpora.items import checked, items_by_key, items_by_split, spelled_out
from synmt.corpora.known import KNOWN_CORPORA, known_corpus, split_of
from synmt.corpora.known_text import KnownText, known_text
from synmt.corpora.mixture import MixedText, parts_of
from synmt.corpora.public_text import PublicText, public_text
from synmt.errors import SynmtError, all_in_one
from synmt.files.reading import count_lines
from synmt.recipe.corpus import CorpusItem, CorpusRecipe, SplitFiles

_Text = KnownText | PublicText


@dataclass(frozen=True)
class Estimate:
    """A step that a dry run shows.

    what: begins with a verb.
    size: how much it is (bytes, lines, steps), or where its result is.
    problem: what the command would report, because it would stop here.
    """

    what: str
    is_done: bool = False
    size: str = ""
    problem: SynmtError | None = None

    @property
    def state(self) -> str:
        """What people see: `error`, `done` or `to do`."""
        return "error" if self.problem else "done" if self.is_done else "to do"


def resolve(recipe: CorpusRecipe, source: str, target: str) -> Corpus:
    """Find every file of a corpus; public corpora are downloaded and built in the cache."""
    texts = _Texts(recipe, source, target)
    if texts.unavailable:
        raise all_in_one(list(texts.unavailable.values()))
    missing = texts.missing()
    download_all(texts.files)
    for text in missing:
        text.run()
    for mixture in texts.mixtures.values():
        if not mixture.is_done():
            mixture.run()
    return texts.corpus()


def find_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus | None:
    """Find a corpus as `resolve` does, but make nothing: None if a text has to be downloaded or
    built first."""
    texts = _Texts(recipe, source, target)
    there = not texts.missing() and all(mixture.is_done() for mixture in texts.mixtures.values())
    return texts.corpus() if there else None


def estimates(recipe: CorpusRecipe, source: str, target: str) -> list[Estimate]:
    """List the steps that `resolve` would take until each text is there, the downloads first."""
    texts = _Texts(recipe, source, target)
    steps, problem = list[Estimate](), network_problem(texts.files)
    for file in texts.files:
        size, is_done = f"{file.size:,} bytes" if file.size else "", is_there(file)
        steps.append(
            Estimate(f"download {file.address}", is_done, size, None if is_done else problem)
        )
    missing = texts.missing()
    for text in missing:
        steps.append(
            Estimate(f"build the text: {text.folder}", problem=texts.unavailable.get(text.name))
        )
    if not missing:
        for mixture in texts.mixtures.values():
            if not mixture.is_done():
                steps.append(Estimate(f"build the text: {mixture.folder}"))
    return steps


def local_texts(recipe: CorpusRecipe, source: str, target: str) -> Splits:
    """Find the texts to train and validate with by the keys of their items; those that are not here
    are left out.

    Corpora with an id of mtdata or sacreBLEU never change, so they are also left out.
    """
    files_of_split: Splits = {}
    with suppress(SynmtError):
        for key, item in items_by_key(spelled_out(recipe, source, target)).items():
            split = key.partition(".")[0]
            if split == "test":
                continue
            if files := item.files():
                files_of_split[key] = files
            elif item.id in KNOWN_CORPORA:
                text = known_text(
                    item.id, (source, target), (split_of(item.id, split),), recipe.controlled
                )
                if text.is_done():
                    files_of_split[key] = text.files(split)
    return files_of_split


class _Texts:
    """The texts of a recipe in two languages.

    files: what the missing texts are built from.
    unavailable: why some of them, by name, cannot be built.
    """

    def __init__(self, recipe: CorpusRecipe, source: str, target: str) -> None:
        self.languages = (source, target)
        if recipe.name is not None:
            known_corpus(recipe.name, source, target)
        # the name of the folder is that of the corpus
        self._folder = recipe.folder
        self.recipe = checked(spelled_out(recipe, source, target))
        self.public: dict[str, _Text] = {}
        # of known corpora, the splits that are used
        splits = defaultdict[str, list[str]](list)
        for split, item in items_by_split(self.recipe):
            if item.id in KNOWN_CORPORA:
                splits[item.id].append(split_of(item.id, split))
                self.public[item.id] = known_text(
                    item.id, self.languages, tuple(splits[item.id]), recipe.controlled
                )
            elif item.id is not None and item.id not in self.public:
                self.public[item.id] = public_text(item.id, source, target)
        self.files: list[RemoteFile] = []
        self.unavailable: dict[str, SynmtError] = {}
        for text in self.missing():
            try:
                self.files += (file for file in text.downloads() if file not in self.files)
            except SynmtError as error:
                self.unavailable[text.name] = error

    def missing(self) -> list[_Text]:
        """List the public texts that have to be built."""
        return [text for text in self.public.values() if not text.is_done()]

    @cached_property
    def mixtures(self) -> dict[str, MixedText]:
        """The texts that are put together or drawn from public ones, which are there, by split."""
        splits: dict[str, list[CorpusItem]] = {}
        for split, item in items_by_split(self.recipe):
            splits.setdefault(split, []).append(item)
        return {
            split: MixedText(
                items, [self._whole(item, split) for item in items], split, self.languages
            )
            for split, items in splits.items()
            if len(items) > 1 or any(item.is_drawn for item in items)
        }

    def corpus(self) -> Corpus:
        """Name the files, all of which exist."""
        first, *_ = self.recipe.train
        name = (first.id or "files").replace("/", "_")
        parts: tuple[CorpusPart, ...] = ()
        if mixture := self.mixtures.get("train"):
            name, parts = mixture.folder.name, mixture.parts()
        elif first.weight != 1 or first.tag:
            parts = parts_of([first], [count_lines(self._whole(first, "train").source)])
        if self._folder is not None:
            name = re.sub(r"[^\w.+-]", "_", self._folder.resolve().name) or "corpus"
        files = {
            split: self.mixtures[split].files
            if split in self.mixtures
            else self._whole(item, split)
            for split, item in items_by_split(self.recipe)
        }
        return Corpus(name, *self.languages, files.pop("train"), files.pop("valid"), files, parts)

    def _whole(self, item: CorpusItem, split: str) -> SplitFiles:
        """Find the whole text that an item takes pairs from."""
        if item.id is not None:
            return self.public[item.id].files(split)
        files = item.files()
        assert files is not None, item
        return files
