"""Resolves the items of a recipe's text: files, known corpora, ids of mtdata, test sets of sacreBLEU."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synmt.corpora.assemble import files_of
from synmt.corpora.build import BuiltText, building_id, building_mixture, files_of_id, parts_of, test_name
from synmt.corpora.corpus import Corpus
from synmt.corpora.download import RemoteFile, downloading
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.plan import KnownCorpus
from synmt.corpora.progress import Progress
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import cache_folder, count_lines
from synmt.recipe.corpus import CorpusItem, CorpusRecipe, SplitFiles

KnownFinder = Callable[[str, str, str], Generator[Progress, None, Corpus]]


def known_corpus(name: str, source: str, target: str) -> KnownCorpus:
    """Find a known corpus; raises UsageError if there is none, or none with these languages."""
    known = KNOWN_CORPORA.get(name)
    if known is None:
        raise UsageError(
            f"unknown corpus '{name}'",
            allowed=f"Known: {', '.join(sorted(KNOWN_CORPORA))}",
            do=did_you_mean(name, KNOWN_CORPORA) or "For your own files, set corpus.folder or corpus.train",
        )
    for language in (source, target):
        if language not in known.languages or source == target:
            raise UsageError(
                f"the corpus {name} has no pair {source}-{target}", allowed=f"Any two of {', '.join(known.languages)}"
            )
    return known


def known_folders(name: str) -> list[Path]:
    """List the folders that may contain a known corpus, in order; the last one is the cache."""
    given = os.environ.get("SYNMT_DATA")
    return [*([Path(given).expanduser() / name] if given else []), cache_folder() / "corpora" / name]


def files_of_items(recipe: CorpusRecipe, source: str, target: str) -> list[RemoteFile]:
    """List what the public corpora among the items are built from, as far as they are not built; each file once."""
    ids = dict.fromkeys(item.id for item in items_of(recipe).values() if item.id is not None)
    files = (file for name in ids for file in _files_of(name, source, target))
    return list(dict.fromkeys(files))


def _files_of(name: str, source: str, target: str) -> list[RemoteFile]:
    if name not in KNOWN_CORPORA:
        return files_of_id(name, source, target)
    known_corpus(name, source, target)
    return files_of(name, (source, target), known_folders(name))


def items_of(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return all items by the key of the recipe."""
    train = {f"train.{place}": item for place, item in enumerate(recipe.train)}
    if len(recipe.train) == 1:
        train = {"train": recipe.train[0]}
    assert recipe.valid is not None
    return {**train, "valid": recipe.valid, **{f"test.{name}": item for name, item in recipe.test.items()}}


def resolving_items(
    recipe: CorpusRecipe, source: str, target: str, known: KnownFinder, *, build: bool = True
) -> Generator[Progress, None, Corpus]:
    """Find the text of every item; public corpora are downloaded and built in the cache.

    known: finds a known corpus by its name, source and target.
    build: False raises NotBuilt in place of downloading and building.
    """
    finder = _Finder((source, target), known, build)
    _check_files(items_of(recipe))
    _check_names(recipe)
    if build:
        yield from downloading(files_of_items(recipe, source, target), "this recipe's corpus")
    train = yield from finder.train(recipe.train)
    assert recipe.valid is not None
    valid = yield from finder.text(recipe.valid, "valid")
    tests: dict[str, SplitFiles] = {}
    for key, item in recipe.test.items():
        for name in _names_of_test(key, item):
            tests[name] = yield from finder.text(item, name)
    return Corpus(train.name, source, target, train.files, valid, tests, train.parts)


def names_of_tests(recipe: CorpusRecipe) -> tuple[str, ...]:
    """Name the test sets of a recipe's items."""
    return tuple(name for key, item in recipe.test.items() for name in _names_of_test(key, item))


def named_tests(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return the item of each test set by the name of the test set."""
    return {name: item for key, item in recipe.test.items() for name in _names_of_test(key, item)}


def _check_names(recipe: CorpusRecipe) -> None:
    names = names_of_tests(recipe)
    if len(set(names)) < len(names):
        raise UsageError(
            f"two test sets have the same name: {', '.join(names)}",
            where="corpus.test",
            do="Give them names: `test: {one: …, other: …}`",
        )


def _check_files(items: Mapping[str, CorpusItem]) -> None:
    missing: list[SynmtError] = [
        UsageError(f"the file of corpus.{split}.{field} is missing", where=str(path))
        for split, item in items.items()
        for field, path in item.files() or ()
        if path is not None and not path.is_file()
    ]
    if missing:
        raise all_in_one(missing)


def _names_of_test(key: str, item: CorpusItem) -> tuple[str, ...]:
    """Name the test sets of an item: a name that the recipe gives, or the usual ones of a public corpus."""
    if item.id is None or key != item.id:
        return (key,)
    return KNOWN_CORPORA[item.id].test if item.id in KNOWN_CORPORA else (test_name(item.id),)


@dataclass(frozen=True)
class _Finder:
    """Finds or builds the text of items in two languages."""

    languages: tuple[str, str]
    known: KnownFinder
    build: bool = True

    def train(self, items: tuple[CorpusItem, ...]) -> Generator[Progress, None, BuiltText]:
        """Find the training text; nothing is copied if it is all of one corpus."""
        texts: list[BuiltText] = []
        for item in items:
            texts.append((yield from self._whole(item, "train")))
        item, *others = items
        if others or item.is_drawn:
            return (
                yield from building_mixture(
                    items, [text.files for text in texts], "train", self.languages, build=self.build
                )
            )
        text = texts[0]
        if item.weight == 1 and not item.tag:
            return text
        return replace(text, parts=parts_of(items, [count_lines(text.files.source)]))

    def text(self, item: CorpusItem, split: str) -> Generator[Progress, None, SplitFiles]:
        """Find the text of valid or of a test set, or the pairs that are drawn from it."""
        text = yield from self._whole(item, split)
        if not item.is_drawn:
            return text.files
        return (yield from building_mixture([item], [text.files], split, self.languages, build=self.build)).files

    def _whole(self, item: CorpusItem, split: str) -> Generator[Progress, None, BuiltText]:
        if (files := item.files()) is not None:
            return BuiltText("files", files)
        assert item.id is not None
        if item.id in KNOWN_CORPORA:
            corpus = yield from self.known(item.id, *self.languages)
            return BuiltText(corpus.name, _split_of(corpus, split))
        return BuiltText(
            item.id.replace("/", "_"), (yield from building_id(item.id, *self.languages, build=self.build))
        )


def _split_of(corpus: Corpus, split: str) -> SplitFiles:
    """Choose the split of a known corpus: train, valid, one by its own name, or its only test set under a new name."""
    named = {**corpus.splits(), KNOWN_CORPORA[corpus.name].valid: corpus.valid}
    if split in named:
        return named[split]
    if len(corpus.test) != 1:
        raise UsageError(
            f"the corpus {corpus.name} has several test sets: {', '.join(corpus.test)}",
            where="corpus.test",
            do=f"Write it without a name: `test: [{corpus.name}]`",
        )
    return next(iter(corpus.test.values()))
