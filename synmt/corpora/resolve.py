"""Finds the text of a recipe: a known corpus by name, a folder, or the files themselves."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from synmt.corpora.download import RemoteFile, download
from synmt.corpora.known import KNOWN_CORPORA, KnownCorpus
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import cache_folder, fingerprint, offline, sha256, write_atomically, write_folder_atomically
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


def find_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus | None:
    """Find a corpus as `resolve_corpus` does, but make nothing: None if a file has to be downloaded or made first."""
    return None if missing_files(recipe, source, target) else resolve_corpus(recipe, source, target)


def missing_files(recipe: CorpusRecipe, source: str, target: str) -> list[str]:
    """Name the files that a known corpus lacks on this machine; for other corpora `resolve_corpus` reports them."""
    if recipe.name is None:
        return []
    known, folders = _known(recipe.name, source, target), _known_folders(recipe.name, source)
    names = [f"{split}.{language}" for split in ("train", known.valid, *known.test) for language in (source, target)]
    return [file for file in names if _in_any(folders, file) is None]


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
    valid = next((name for name in _VALID_NAMES if _plain_or_packed(folder, f"{name}.{source}")), "valid")
    tests = _tests_in(folder, source, target)
    missing: list[SynmtError] = [
        UsageError(f"no {name} and no {name}.gz", where=str(folder))
        for split in ("train", valid, *tests)
        for name in (f"{split}.{source}", f"{split}.{target}")
        if not _plain_or_packed(folder, name)
    ]
    if missing:
        raise all_in_one(missing)
    name = re.sub(r"[^\w.+-]", "_", folder.resolve().name) or "corpus"
    return _corpus(name, source, target, valid, tests, [folder])


def _tests_in(folder: Path, source: str, target: str) -> tuple[str, ...]:
    ending = re.compile(rf"(test.*)\.(?:{re.escape(source)}|{re.escape(target)})(?:\.gz)?")
    return tuple(sorted({match[1] for path in folder.iterdir() if (match := ending.fullmatch(path.name))}))


def _known(name: str, source: str, target: str) -> KnownCorpus:
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


def _resolve_known(name: str, source: str, target: str) -> Corpus:
    known, folders = _known(name, source, target), _known_folders(name, source)
    if name == "controlled" and _in_any(folders, f"train.{source}") is None:
        _generate_controlled(folders[-1])
    _fetch_missing(name, known, folders, (source, target))
    return _corpus(name, source, target, known.valid, known.test, folders)


def _known_folders(name: str, source: str) -> list[Path]:
    folders = _folders(name)
    if name == "controlled" and not _plain_or_packed(folders[0], f"train.{source}"):
        folders = [_controlled_folder()]
    return folders


def _folders(name: str) -> list[Path]:
    """List the folders that may contain a known corpus, in order; the last one is the cache."""
    given = os.environ.get("SYNMT_DATA")
    return [*([Path(given).expanduser() / name] if given else []), cache_folder() / "corpora" / name]


def _corpus(name: str, source: str, target: str, valid: str, test: tuple[str, ...], folders: list[Path]) -> Corpus:
    def files(split: str) -> SplitFiles:
        paths = [_in_any(folders, f"{split}.{language}") for language in (source, target)]
        assert paths[0] is not None
        assert paths[1] is not None
        return SplitFiles(
            source=paths[0],
            target=paths[1],
            source_parses=_in_any(folders, f"{split}.{source}.conllu"),
            target_parses=_in_any(folders, f"{split}.{target}.conllu"),
            source_bracketings=_in_any(folders, f"{split}.{source}.brackets"),
            labels=_in_any(folders, f"{split}.labels.tsv"),
        )

    return Corpus(name, source, target, files("train"), files(valid), {split: files(split) for split in test})


def _in_any(folders: list[Path], name: str) -> Path | None:
    return next((path for folder in folders if (path := _plain_or_packed(folder, name))), None)


def _plain_or_packed(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _controlled_folder() -> Path:
    """Name the folder of the generated corpus; a changed generator gets a new one."""
    package = Path(__file__).parent / "controlled"
    made_by = fingerprint(*(sha256(path) for path in sorted(package.glob("*.py"))))
    return cache_folder() / "corpora" / f"controlled-{made_by}"


def _generate_controlled(folder: Path) -> None:
    from synmt.corpora.controlled import corpus as controlled

    if not folder.is_dir():
        with write_folder_atomically(folder) as unfinished:
            controlled.write_corpus(unfinished, controlled.generate())


def _fetch_missing(name: str, known: KnownCorpus, folders: list[Path], languages: tuple[str, str]) -> None:
    names = [f"{split}.{language}" for split in ("train", known.valid, *known.test) for language in languages]
    missing = [file for file in names if _in_any(folders, file) is None]
    if missing and (not known.address or offline()):
        raise _missing_files(name, known, folders, missing)
    for file in missing:
        local = download(RemoteFile(f"{known.address}/{file}.gz", known.sums[f"{file}.gz"]))
        with write_atomically(folders[-1] / f"{file}.gz", binary=True) as out:
            out.write(local.read_bytes())


def _missing_files(name: str, known: KnownCorpus, folders: list[Path], missing: list[str]) -> SynmtError:
    origin = f"They can be downloaded from {known.address}/ as `.gz`" if known.address else f"They are {known.origin}"
    other = "" if os.environ.get("SYNMT_DATA") else f", or into {name}/ in a folder that SYNMT_DATA names"
    return SynmtError(
        f"files of the corpus {name} are missing: {', '.join(missing)}",
        allowed=origin,
        do=f"Put them, plain or as `.gz`, into {' or '.join(map(str, folders))}{other}"
        + (", or unset SYNMT_OFFLINE to download them" if known.address else ""),
    )
