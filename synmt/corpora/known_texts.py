"""Finds the text of a known corpus: the files that the user has, and those that synmt builds in the cache."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator
from pathlib import Path

from synmt.corpora.assemble import building_known, check_own_files, files_of, missing_texts
from synmt.corpora.build import NotBuilt
from synmt.corpora.cleaning import Pair
from synmt.corpora.corpus import files_in
from synmt.corpora.download import RemoteFile, alone
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.plan import KnownCorpus
from synmt.corpora.progress import Progress
from synmt.errors import UsageError, did_you_mean
from synmt.files.reading import cache_folder, fingerprint, sha256
from synmt.files.writing import write_folder_atomically
from synmt.recipe.corpus import SplitFiles


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
                f"the corpus {name} has no language pair {source}-{target}",
                allowed=f"Any two of {', '.join(known.languages)}",
            )
    return known


def known_folders(name: str) -> list[Path]:
    """List the folders that may contain a known corpus, in order; the last one is in the cache."""
    given = os.environ.get("SYNMT_DATA")
    folders = [*([Path(given).expanduser() / name] if given else []), cache_folder() / "corpora" / name]
    generated = [_controlled_folder("hard"), _controlled_folder()] if name == "controlled" else []
    return [*folders, *generated]


def missing_of_known(name: str, source: str, target: str, splits: Collection[str]) -> list[tuple[str, str]]:
    """List split and language of the files of some splits that are not on this machine."""
    known_corpus(name, source, target)
    return missing_texts(name, (source, target), known_folders(name), splits)


def files_of_known(name: str, source: str, target: str, splits: Collection[str]) -> list[RemoteFile]:
    """List the public files that the missing texts of some splits are built from, each once.

    Raises SynmtError if only the user can provide a text, or if a package that builds it is missing.
    """
    missing, folders = missing_of_known(name, source, target, splits), known_folders(name)
    if not missing or name == "controlled":
        return []
    check_own_files(name, missing, folders)
    return files_of(name, (source, target), folders, splits)


def finding_known(
    name: str, source: str, target: str, splits: Collection[str], *, build: bool
) -> Generator[Progress, None, dict[str, SplitFiles]]:
    """Find the files of some splits; those that are missing are downloaded and built.

    build: False raises NotBuilt in place of downloading and building.
    """
    missing, folders = missing_of_known(name, source, target, splits), known_folders(name)
    if missing and not build:
        raise NotBuilt
    if name != "controlled":
        yield from building_known(name, (source, target), folders, splits)
    elif missing:
        _generate_controlled((source, target), folders, splits)
    return {split: files_in(folders, split, source, target) for split in splits}


def _controlled_folder(part: str = "") -> Path:
    """Name the folder of the generated corpus, or of its hard test set; a changed generator gets a new one."""
    package = Path(__file__).parents[1] / "controlled"
    made_by = fingerprint(*(sha256(path) for path in sorted(package.glob("*.py"))))
    return cache_folder() / "corpora" / "-".join(filter(None, ["controlled", part, made_by]))


def _generate_controlled(languages: Pair, folders: list[Path], splits: Collection[str]) -> None:
    from synmt.controlled import corpus as controlled

    with alone(folders[-1], "generates the controlled corpus"):
        # another process may have generated it in the meantime
        missing = {split for split, _ in missing_texts("controlled", languages, folders, splits)}
        makers = {"hard": controlled.generate_hard} if "hard" in missing else {}
        makers |= {"": controlled.generate} if missing - {"hard"} else {}
        for part, generate in makers.items():
            with write_folder_atomically(_controlled_folder(part)) as unfinished:
                controlled.write_corpus(unfinished, generate())
