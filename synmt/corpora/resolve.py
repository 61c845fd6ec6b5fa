"""Finds the text of a recipe: a known corpus by name, a folder, or public corpora and files one by one."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import partial
from pathlib import Path

from synmt.corpora.assemble import building_known, in_any, missing_texts
from synmt.corpora.build import NotBuilt
from synmt.corpora.corpus import Corpus, side_names
from synmt.corpora.download import result_of
from synmt.corpora.items import known_corpus, known_folders, names_of_tests, resolving_items
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.progress import Progress
from synmt.errors import SynmtError, UsageError, all_in_one
from synmt.files import cache_folder, fingerprint, sha256, write_folder_atomically
from synmt.recipe.corpus import CorpusRecipe, SplitFiles

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
    known = partial(_resolving_known, build=build)
    if recipe.name is not None:
        return (yield from known(recipe.name, source, target))
    if recipe.folder is not None:
        return _resolve_folder(recipe.folder, source, target)
    return (yield from resolving_items(recipe, source, target, known, build=build))


def test_names(recipe: CorpusRecipe, source: str, target: str) -> tuple[str, ...]:
    """Name the test sets of a corpus without downloading its files; a missing folder has none."""
    if recipe.name is not None:
        return KNOWN_CORPORA[recipe.name].test if recipe.name in KNOWN_CORPORA else ()
    if recipe.folder is not None:
        return _tests_in(recipe.folder, source, target) if recipe.folder.is_dir() else ()
    return names_of_tests(recipe)


def _resolve_folder(folder: Path, source: str, target: str) -> Corpus:
    if not folder.is_dir():
        raise UsageError("the folder of corpus.folder is missing", where=str(folder))
    valid = next((name for name in _VALID_NAMES if in_any([folder], side_names(name, source, target)[0])), "valid")
    tests = _tests_in(folder, source, target)
    missing: list[SynmtError] = [
        UsageError(f"no {name} and no {name}.gz", where=str(folder))
        for split in ("train", valid, *tests)
        for name in side_names(split, source, target)
        if not in_any([folder], name)
    ]
    if missing:
        raise all_in_one(missing)
    name = re.sub(r"[^\w.+-]", "_", folder.resolve().name) or "corpus"
    return _corpus(name, source, target, valid, tests, [folder])


def _tests_in(folder: Path, source: str, target: str) -> tuple[str, ...]:
    ending = re.compile(rf"(test.*)(?:{'|'.join(map(re.escape, side_names('', source, target)))})(?:\.gz)?")
    return tuple(sorted({match[1] for path in folder.iterdir() if (match := ending.fullmatch(path.name))}))


def corpus_folders(name: str, source: str) -> list[Path]:
    """List the folders that may contain a known corpus, in order; the last one is in the cache."""
    folders = known_folders(name)
    if name == "controlled" and not in_any(folders[:1], f"train.{source}"):
        folders = [_controlled_folder()]
    return folders


def _resolving_known(name: str, source: str, target: str, *, build: bool) -> Generator[Progress, None, Corpus]:
    known, folders = known_corpus(name, source, target), corpus_folders(name, source)
    if not build and missing_texts(name, (source, target), folders):
        raise NotBuilt
    if name != "controlled":
        yield from building_known(name, (source, target), folders)
    elif not in_any(folders, f"train.{source}"):
        _generate_controlled(folders[-1])
    return _corpus(name, source, target, known.valid, known.test, folders)


def _corpus(name: str, source: str, target: str, valid: str, test: tuple[str, ...], folders: list[Path]) -> Corpus:
    def files(split: str) -> SplitFiles:
        names = side_names(split, source, target)
        paths = [in_any(folders, name) for name in names]
        assert paths[0] is not None
        assert paths[1] is not None
        return SplitFiles(
            source=paths[0],
            target=paths[1],
            source_parses=in_any(folders, f"{names[0]}.conllu"),
            target_parses=in_any(folders, f"{names[1]}.conllu"),
            source_bracketings=in_any(folders, f"{names[0]}.brackets"),
            labels=in_any(folders, f"{split}.labels.tsv"),
        )

    return Corpus(name, source, target, files("train"), files(valid), {split: files(split) for split in test})


def _controlled_folder() -> Path:
    """Name the folder of the generated corpus; a changed generator gets a new one."""
    package = Path(__file__).parent / "controlled"
    made_by = fingerprint(*(sha256(path) for path in sorted(package.glob("*.py"))))
    return cache_folder() / "corpora" / f"controlled-{made_by}"


def _generate_controlled(folder: Path) -> None:
    from synmt.corpora.controlled import corpus as controlled

    with write_folder_atomically(folder) as unfinished:
        controlled.write_corpus(unfinished, controlled.generate())
