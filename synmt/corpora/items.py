"""Resolves the items of a recipe's text: files, known corpora, ids of mtdata, test sets of sacreBLEU."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from synmt.corpora.build import BuiltText, NotBuilt, building_id, building_mixture, files_of_id, parts_of, test_name
from synmt.corpora.corpus import Corpus
from synmt.corpora.download import RemoteFile, downloading, result_of
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.known_texts import files_of_known, finding_known
from synmt.corpora.progress import Progress
from synmt.errors import SynmtError, UsageError, all_in_one, one_file_for_both_sides
from synmt.files.reading import count_lines, open_binary
from synmt.recipe.corpus import CorpusItem, CorpusRecipe, SplitFiles


def public_files(recipe: CorpusRecipe, source: str, target: str) -> tuple[list[RemoteFile], list[SynmtError]]:
    """List what the missing texts of public corpora are built from, each file once, and why some cannot be built."""
    files, problems = list[RemoteFile](), list[SynmtError]()
    for name, splits in public_texts(recipe).items():
        try:
            if name in KNOWN_CORPORA:
                files += files_of_known(name, source, target, splits)
            else:
                files += files_of_id(name, source, target)
        except SynmtError as error:
            problems.append(error)
    return list(dict.fromkeys(files)), problems


def public_texts(recipe: CorpusRecipe) -> dict[str, list[str]]:
    """Return the public corpora of a recipe by id; for known corpora, the splits that are used."""
    texts: dict[str, list[str]] = {}
    for split, item in _texts(recipe):
        if item.id is not None:
            splits = texts.setdefault(item.id, [])
            splits += [_own_split(item.id, split)] if item.id in KNOWN_CORPORA else []
    return texts


def resolving_items(
    recipe: CorpusRecipe, source: str, target: str, *, build: bool = True
) -> Generator[Progress, None, Corpus]:
    """Find the text of every item; public corpora are downloaded and built in the cache.

    build: False raises NotBuilt in place of downloading and building.
    """
    finder, recipe = _Finder((source, target), build), _spelled_out(recipe)
    _check_files(_items_by_key(recipe))
    _check_names(recipe)
    if build:
        files, problems = public_files(recipe, source, target)
        if problems:
            raise all_in_one(problems)
        yield from downloading(files, "this recipe's corpus")
    train = yield from finder.train(recipe.train)
    assert recipe.valid is not None
    valid = yield from finder.text(recipe.valid, "valid")
    tests: dict[str, SplitFiles] = {}
    for name, item in named_tests(recipe).items():
        tests[name] = yield from finder.text(item, name)
    return Corpus(train.name, source, target, train.files, valid, tests, train.parts)


def local_items(recipe: CorpusRecipe, source: str, target: str) -> Iterator[tuple[str, SplitFiles]]:
    """Yield key and files of each item to train and validate with whose files are known and on this machine."""
    finder = _Finder((source, target), build=False)
    for key, item in _items_by_key(_spelled_out(recipe)).items():
        split, _, _ = key.partition(".")
        if split != "test" and (item.id is None or item.id in KNOWN_CORPORA):
            with suppress(NotBuilt, SynmtError):
                yield key, result_of(finder.whole(item, split)).files


def names_of_tests(recipe: CorpusRecipe) -> tuple[str, ...]:
    """Name the test sets of a recipe's items."""
    return tuple(name for key, item in _spelled_out(recipe).test.items() for name in _names_of_test(key, item))


def named_tests(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return the item of each test set by the name of the test set."""
    return {name: item for key, item in _spelled_out(recipe).test.items() for name in _names_of_test(key, item)}


def _spelled_out(recipe: CorpusRecipe) -> CorpusRecipe:
    """Write a known corpus as items; valid and test of the recipe replace its own."""
    if recipe.name is None:
        return recipe
    item = CorpusItem(id=recipe.name)
    tests = recipe.test or {recipe.name: item}
    return recipe.model_copy(update={"name": None, "train": (item,), "valid": recipe.valid or item, "test": tests})


def _texts(recipe: CorpusRecipe) -> Iterator[tuple[str, CorpusItem]]:
    """Yield every item with the split that it is: train, valid, or the name of the test set."""
    recipe = _spelled_out(recipe)
    yield from (("train", item) for item in recipe.train)
    yield from (("valid", item) for item in filter(None, [recipe.valid]))
    yield from named_tests(recipe).items()


def _items_by_key(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return all items by the key of the recipe."""
    train = {f"train.{place}": item for place, item in enumerate(recipe.train)}
    if len(recipe.train) == 1:
        train = {"train": recipe.train[0]}
    assert recipe.valid is not None
    return {**train, "valid": recipe.valid, **{f"test.{name}": item for name, item in recipe.test.items()}}


def _check_names(recipe: CorpusRecipe) -> None:
    names = names_of_tests(recipe)
    if len(set(names)) < len(names):
        raise UsageError(
            f"two test sets have the same name: {', '.join(names)}",
            where="corpus.test",
            do="Give them names: `test: {one: …, other: …}`",
        )


def _check_files(items: Mapping[str, CorpusItem]) -> None:
    given = {split: files for split, item in items.items() if (files := item.files())}
    missing: list[SynmtError] = [
        UsageError(f"the file of corpus.{split}.{field} is missing", where=str(path))
        for split, files in given.items()
        for field, path in files
        if path is not None and not path.is_file()
    ]
    if missing:
        raise all_in_one(missing)
    if wrong := [problem for split, files in given.items() for problem in _problems(split, files)]:
        raise all_in_one(wrong)


def _problems(split: str, files: SplitFiles) -> Iterator[SynmtError]:
    """Yield why two files cannot be the sides of a text."""
    if files.source.samefile(files.target):
        yield one_file_for_both_sides(files.target, where=f"corpus.{split}: ")
    for path in dict.fromkeys((files.source, files.target)):
        try:
            with open_binary(path):
                pass
        except SynmtError as error:
            yield error


def _names_of_test(key: str, item: CorpusItem) -> tuple[str, ...]:
    """Name the test sets of an item: a name that the recipe gives, or the usual ones of a public corpus."""
    if item.id is None or key != item.id:
        return (key,)
    return KNOWN_CORPORA[item.id].test if item.id in KNOWN_CORPORA else (test_name(item.id),)


@dataclass(frozen=True)
class _Finder:
    """Finds or builds the text of items in two languages."""

    languages: tuple[str, str]
    build: bool = True

    def train(self, items: tuple[CorpusItem, ...]) -> Generator[Progress, None, BuiltText]:
        """Find the training text; nothing is copied if it is all of one corpus."""
        texts: list[BuiltText] = []
        for item in items:
            texts.append((yield from self.whole(item, "train")))
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
        text = yield from self.whole(item, split)
        if not item.is_drawn:
            return text.files
        return (yield from building_mixture([item], [text.files], split, self.languages, build=self.build)).files

    def whole(self, item: CorpusItem, split: str) -> Generator[Progress, None, BuiltText]:
        """Find the whole text that an item takes pairs from."""
        if (files := item.files()) is not None:
            return BuiltText("files", files)
        assert item.id is not None
        if item.id in KNOWN_CORPORA:
            own = _own_split(item.id, split)
            found = yield from finding_known(item.id, *self.languages, [own], build=self.build)
            return BuiltText(item.id, found[own])
        return BuiltText(
            item.id.replace("/", "_"), (yield from building_id(item.id, *self.languages, build=self.build))
        )


def _own_split(name: str, split: str) -> str:
    """Choose the split of a known corpus: train, valid, one by its own name, or its only test set under a new name."""
    known = KNOWN_CORPORA[name]
    if split in known.all_splits:
        return split
    if split == "valid":
        return known.valid
    if len(known.test) != 1:
        several = f"several test sets: {', '.join(known.test)}"
        raise UsageError(
            f"the corpus {name} has {several if known.test else 'no test set'}",
            where="corpus.test",
            do=f"Write it without a name: `test: [{name}]`" if known.test else "",
        )
    return known.test[0]
