"""The items of a recipe's text: train, valid and test sets, each a public corpus or files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from synmt.arrays import Strings
from synmt.corpora.corpus import Splits, files_in, in_any, side_names
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.public_text import test_name
from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.files.reading import open_binary
from synmt.recipe.corpus import CorpusItem, CorpusRecipe, SplitFiles

_VALID_NAMES = ("valid", "val", "dev")


def spelled_out(recipe: CorpusRecipe, source: str, target: str) -> CorpusRecipe:
    """Write a known corpus or a folder as items; valid and test of the recipe replace its own.

    Raises SynmtError for files that are missing in the folder.
    """
    if recipe.folder is not None:
        return _folder_as_items(recipe, recipe.folder, source, target)
    return _name_as_items(recipe)


def checked(recipe: CorpusRecipe) -> CorpusRecipe:
    """Return a recipe of items; raises SynmtError if files are missing or wrong, or test sets have
    the same name."""
    problems: list[SynmtError] = []
    for key, item in items_by_key(recipe).items():
        if files := item.files():
            problems += _problems(key, files)
    if problems:
        raise all_in_one(problems)
    named_tests(recipe)
    return recipe


def items_by_key(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return all items by the key of the recipe."""
    items = {f"train.{place}": item for place, item in enumerate(recipe.train)}
    if len(recipe.train) == 1:
        items = {"train": recipe.train[0]}
    assert recipe.valid is not None
    items["valid"] = recipe.valid
    return items | {f"test.{name}": item for name, item in recipe.test.items()}


def items_by_split(recipe: CorpusRecipe) -> list[tuple[str, CorpusItem]]:
    """List every item with the split that it is: train, valid, or the name of the test set."""
    recipe = _name_as_items(recipe)
    train = [("train", item) for item in recipe.train]
    valid = [("valid", recipe.valid)] if recipe.valid else []
    return [*train, *valid, *named_tests(recipe).items()]


def named_tests(recipe: CorpusRecipe) -> dict[str, CorpusItem]:
    """Return the item of each test set by its name: that of the recipe, or the usual one of a
    public corpus.

    Raises UsageError if two test sets have the same name.
    """
    items: dict[str, CorpusItem] = {}
    for key, item in _name_as_items(recipe).test.items():
        names = (key,)
        if key == item.id:
            names = KNOWN_CORPORA[key].test if key in KNOWN_CORPORA else (test_name(key),)
        for name in names:
            if name in items:
                raise UsageError(
                    f"two test sets have the same name: {name}",
                    where="corpus.test",
                    do="Give them names: `test: {one: …, other: …}`",
                )
            items[name] = item
    return items


def test_names(recipe: CorpusRecipe, source: str, target: str) -> Strings:
    """Name the test sets of a corpus without downloading its files; a missing folder has none."""
    if recipe.folder is not None and not recipe.test:
        return _tests_in(recipe.folder, source, target) if recipe.folder.is_dir() else ()
    return tuple(named_tests(recipe))


def local_tests(recipe: CorpusRecipe, source: str, target: str) -> Splits:
    """Name the files of the test sets that are the user's own, which may change; without checking
    that they exist."""
    if recipe.folder is None or recipe.test:
        return {
            name: files for name, item in named_tests(recipe).items() if (files := item.files())
        }
    test_sets: Splits = {}
    for name in test_names(recipe, source, target):
        with suppress(SynmtError):
            test_sets[name] = files_in([recipe.folder], name, source, target)
    return test_sets


def _name_as_items(recipe: CorpusRecipe) -> CorpusRecipe:
    if recipe.name is None:
        return recipe
    item = CorpusItem(id=recipe.name)
    return recipe.model_copy(
        update={
            "name": None,
            "train": (item,),
            "valid": recipe.valid or item,
            "test": recipe.test or {recipe.name: item},
        }
    )


def _folder_as_items(recipe: CorpusRecipe, folder: Path, source: str, target: str) -> CorpusRecipe:
    if not folder.is_dir():
        raise UsageError(
            "corpus.folder: there is no such folder",
            where=folder,
            do="Give its path relative to the current folder, not the recipe's",
        )
    valid = next(
        (name for name in _VALID_NAMES if in_any([folder], side_names(name, source, target)[0])),
        "valid",
    )

    def item(split: str) -> CorpusItem:
        return CorpusItem.model_validate(files_in([folder], split, source, target))

    return recipe.model_copy(
        update={
            "folder": None,
            "train": (item("train"),),
            "valid": recipe.valid or item(valid),
            "test": recipe.test or {name: item(name) for name in _tests_in(folder, source, target)},
        }
    )


def _tests_in(folder: Path, source: str, target: str) -> Strings:
    endings = "|".join(map(re.escape, side_names("", source, target)))
    pattern = rf"(test.*)(?:{endings})(?:\.gz)?"
    matches = (re.fullmatch(pattern, path.name) for path in folder.iterdir())
    return tuple(sorted({match[1] for match in matches if match}))


def _problems(key: str, files: SplitFiles) -> Iterator[SynmtError]:
    """Yield why files cannot be a text."""
    for field, path in files:
        if path is not None and not path.is_file():
            yield UsageError(f"the file of corpus.{key}.{field} is missing", where=path)
    if not (files.source.is_file() and files.target.is_file()):
        return
    if files.source.samefile(files.target):
        yield UsageError(f"corpus.{key}: source and target are the same file", where=files.target)
    for path in dict.fromkeys((files.source, files.target)):
        try:
            with open_binary(path):
                pass
        except SynmtError as error:
            yield error
