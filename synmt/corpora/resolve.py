"""Finds the text of a recipe: a known corpus by name, a folder, or public corpora and files one by one."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

from synmt.corpora.corpus import Corpus, files_in, in_any, side_names
from synmt.corpora.download import result_of
from synmt.corpora.items import local_items, named_tests, names_of_tests, resolving_items
from synmt.corpora.known_texts import finding_known, known_corpus
from synmt.corpora.progress import Progress
from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.recipe.corpus import CorpusItem, CorpusRecipe, SplitFiles

_VALID_NAMES = ("valid", "val", "dev")


def resolve_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus:
    """Find every file of a corpus; `resolving` also reports the progress of what has to be made first."""
    return result_of(resolving(recipe, source, target))


def resolving(
    recipe: CorpusRecipe, source: str, target: str, *, build: bool = True
) -> Generator[Progress, None, Corpus]:
    """Find every file of a corpus; public corpora are downloaded and built in the cache.

    build: False raises NotBuilt in place of downloading and building.
    """
    if recipe.folder is not None:
        name = re.sub(r"[^\w.+-]", "_", recipe.folder.resolve().name) or "corpus"
        items = _items_of_folder(recipe, recipe.folder, source, target)
        return replace((yield from resolving_items(items, source, target, build=build)), name=name)
    if recipe.name is not None:
        known = known_corpus(recipe.name, source, target)
        if recipe.valid is None and not recipe.test:
            # all of it at once: its errors say which files of the user can take the place of missing ones
            yield from finding_known(recipe.name, source, target, known.splits, build=build)
    return (yield from resolving_items(recipe, source, target, build=build))


def test_names(recipe: CorpusRecipe, source: str, target: str) -> tuple[str, ...]:
    """Name the test sets of a corpus without downloading its files; a missing folder has none."""
    if recipe.folder is not None and not recipe.test:
        return _tests_in(recipe.folder, source, target) if recipe.folder.is_dir() else ()
    return names_of_tests(recipe)


def local_tests(recipe: CorpusRecipe, source: str, target: str) -> dict[str, SplitFiles]:
    """Name the files of the test sets that are the user's own, which may change; without checking that they exist."""
    if recipe.folder is None or recipe.test:
        return {name: files for name, item in named_tests(recipe).items() if (files := item.files())}
    names = test_names(recipe, source, target)
    return {
        name: files_in([recipe.folder], name, source, target)
        for name in names
        if all(in_any([recipe.folder], side) for side in side_names(name, source, target))
    }


def local_texts(recipe: CorpusRecipe, source: str, target: str) -> dict[str, SplitFiles]:
    """Find the texts to train and validate with by the keys of their items; those that are not here are left out.

    Corpora with an id of mtdata or sacreBLEU never change, so they are also left out.
    """
    if recipe.folder is not None:
        try:
            recipe = _items_of_folder(recipe, recipe.folder, source, target)
        except SynmtError:
            return {}
    return dict(local_items(recipe, source, target))


def _items_of_folder(recipe: CorpusRecipe, folder: Path, source: str, target: str) -> CorpusRecipe:
    """Write a folder as the files that it has; valid and test of the recipe replace its own."""
    if not folder.is_dir():
        raise UsageError(
            "corpus.folder: there is no such folder",
            where=str(folder),
            do="Give its path relative to the current folder, not the recipe's",
        )
    valid = next((name for name in _VALID_NAMES if in_any([folder], side_names(name, source, target)[0])), "valid")
    tests = () if recipe.test else _tests_in(folder, source, target)
    missing: list[SynmtError] = [
        UsageError(f"neither {name} nor {name}.gz is there", where=str(folder))
        for split in ("train", *(() if recipe.valid else (valid,)), *tests)
        for name in side_names(split, source, target)
        if not in_any([folder], name)
    ]
    if missing:
        raise all_in_one(missing)

    def item(split: str) -> CorpusItem:
        return CorpusItem(**dict(files_in([folder], split, source, target)))

    return recipe.model_copy(
        update={
            "folder": None,
            "train": (item("train"),),
            "valid": recipe.valid or item(valid),
            "test": recipe.test or {name: item(name) for name in tests},
        }
    )


def _tests_in(folder: Path, source: str, target: str) -> tuple[str, ...]:
    ending = re.compile(rf"(test.*)(?:{'|'.join(map(re.escape, side_names('', source, target)))})(?:\.gz)?")
    return tuple(sorted({match[1] for path in folder.iterdir() if (match := ending.fullmatch(path.name))}))
