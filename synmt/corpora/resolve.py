"""Finds the text of a recipe: a known corpus by name, a folder, or the files themselves."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from synmt.corpora.assemble import building_known, in_any
from synmt.corpora.download import result_of
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.plan import KnownCorpus
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import cache_folder, fingerprint, sha256, write_folder_atomically
from synmt.recipe.data import CorpusRecipe, SplitFiles

_VALID_NAMES = ("valid", "val", "dev")


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus in one translation direction; all of them exist.

    name: part of the names of prepared corpora and trees.
    """

    name: str
    source: str
    target: str
    train: SplitFiles
    valid: SplitFiles
    test: dict[str, SplitFiles]

    def splits(self) -> dict[str, SplitFiles]:
        """Return train, valid and every test set by name."""
        return {"train": self.train, "valid": self.valid, **self.test}


def resolve_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus:
    """Find every file of a corpus; missing files of a public corpus are downloaded into the cache."""
    if recipe.name is not None:
        return _resolve_known(recipe.name, source, target)
    if recipe.folder is not None:
        return _resolve_folder(recipe.folder, source, target)
    return _resolve_paths(recipe, source, target)


def test_names(recipe: CorpusRecipe, source: str, target: str) -> tuple[str, ...]:
    """Name the test sets of a corpus without downloading its files; a missing folder has none."""
    if recipe.name is not None:
        return KNOWN_CORPORA[recipe.name].test if recipe.name in KNOWN_CORPORA else ()
    if recipe.folder is not None:
        return _tests_in(recipe.folder, source, target) if recipe.folder.is_dir() else ()
    return tuple(recipe.test)


def _resolve_paths(recipe: CorpusRecipe, source: str, target: str) -> Corpus:
    assert recipe.train is not None
    assert recipe.valid is not None
    tests = {f"test.{name}": files for name, files in recipe.test.items()}
    keys = {"train": recipe.train, "valid": recipe.valid, **tests}
    missing: list[SynmtError] = [
        UsageError(f"the file of corpus.{split}.{field} is missing", where=str(path))
        for split, files in keys.items()
        for field, path in files
        if path is not None and not path.is_file()
    ]
    if missing:
        raise all_in_one(missing)
    return Corpus("files", source, target, recipe.train, recipe.valid, recipe.test)


def _resolve_folder(folder: Path, source: str, target: str) -> Corpus:
    if not folder.is_dir():
        raise UsageError("the folder of corpus.folder is missing", where=str(folder))
    valid = next((name for name in _VALID_NAMES if in_any([folder], f"{name}.{source}")), "valid")
    tests = _tests_in(folder, source, target)
    missing: list[SynmtError] = [
        UsageError(f"no {name} and no {name}.gz", where=str(folder))
        for split in ("train", valid, *tests)
        for name in (f"{split}.{source}", f"{split}.{target}")
        if not in_any([folder], name)
    ]
    if missing:
        raise all_in_one(missing)
    name = re.sub(r"[^\w.+-]", "_", folder.resolve().name) or "corpus"
    return _corpus(name, source, target, valid, tests, [folder])


def _tests_in(folder: Path, source: str, target: str) -> tuple[str, ...]:
    ending = re.compile(rf"(test.*)\.(?:{re.escape(source)}|{re.escape(target)})(?:\.gz)?")
    return tuple(sorted({match[1] for path in folder.iterdir() if (match := ending.fullmatch(path.name))}))


def known_corpus(name: str, source: str, target: str) -> tuple[KnownCorpus, list[Path]]:
    """Find a known corpus of two languages, and the folders that may contain its files, in order."""
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
    folders = _folders(name)
    if name == "controlled" and not in_any(folders[:1], f"train.{source}"):
        folders = [_controlled_folder()]
    return known, folders


def _resolve_known(name: str, source: str, target: str) -> Corpus:
    known, folders = known_corpus(name, source, target)
    if name != "controlled":
        result_of(building_known(name, (source, target), folders))
    elif not in_any(folders, f"train.{source}"):
        _generate_controlled(folders[-1])
    return _corpus(name, source, target, known.valid, known.test, folders)


def _folders(name: str) -> list[Path]:
    """List the folders that may contain a known corpus, in order; the last one is the cache."""
    given = os.environ.get("SYNMT_DATA")
    return [*([Path(given).expanduser() / name] if given else []), cache_folder() / "corpora" / name]


def _corpus(name: str, source: str, target: str, valid: str, test: tuple[str, ...], folders: list[Path]) -> Corpus:
    def files(split: str) -> SplitFiles:
        paths = [in_any(folders, f"{split}.{language}") for language in (source, target)]
        assert paths[0] is not None
        assert paths[1] is not None
        return SplitFiles(
            source=paths[0],
            target=paths[1],
            source_parses=in_any(folders, f"{split}.{source}.conllu"),
            target_parses=in_any(folders, f"{split}.{target}.conllu"),
            source_bracketings=in_any(folders, f"{split}.{source}.brackets"),
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
