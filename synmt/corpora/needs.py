"""What the text of a recipe still needs on this machine; nothing is downloaded or built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synmt.corpora.assemble import check_own_files, files_of, missing_texts
from synmt.corpora.build import NotBuilt
from synmt.corpora.corpus import Corpus
from synmt.corpora.download import RemoteFile, result_of
from synmt.corpora.items import files_of_items, items_of, known_corpus
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.resolve import corpus_folders, resolving
from synmt.errors import SynmtError
from synmt.files import cache_folder
from synmt.recipe.corpus import CorpusRecipe


@dataclass(frozen=True)
class CorpusNeeds:
    """What makes a text complete.

    downloads: the public files that the missing texts are built from, whether or not these are there.
    folder: where the missing texts will be.
    valid: the name of the split that is the validation text.
    counts: sentence pairs of each split, where a paper states them.
    problems: why only a person can provide a text.
    """

    downloads: tuple[RemoteFile, ...]
    folder: Path
    valid: str = "valid"
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[SynmtError, ...] = ()


def find_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus | None:
    """Find a corpus as `resolve_corpus` does, but make nothing: None if a text has to be downloaded or built first."""
    try:
        return result_of(resolving(recipe, source, target, build=False))
    except NotBuilt:
        return None


def corpus_needs(recipe: CorpusRecipe, source: str, target: str) -> CorpusNeeds:
    """Find what a text needs that `find_corpus` does not find."""
    names = (
        [recipe.name] if recipe.name else [item.id for item in items_of(recipe).values() if item.id in KNOWN_CORPORA]
    )
    files, problems = list[RemoteFile](), list[SynmtError]()
    for name in dict.fromkeys(filter(None, names)):
        try:
            files += _files_of_known(name, source, target)
        except SynmtError as error:
            problems.append(error)
    folder = cache_folder() / "corpora"
    if not recipe.name:
        files += files_of_items(recipe, source, target)
        return CorpusNeeds(tuple(dict.fromkeys(files)), folder, problems=tuple(problems))
    known, folders = known_corpus(recipe.name, source, target), corpus_folders(recipe.name, source)
    return CorpusNeeds(tuple(files), folders[-1], known.valid, known.counts, tuple(problems))


def missing_files(recipe: CorpusRecipe, source: str, target: str) -> list[str]:
    """Name the files that a known corpus lacks on this machine; for other corpora `find_corpus` has the answer."""
    if recipe.name is None:
        return []
    known_corpus(recipe.name, source, target)
    folders = corpus_folders(recipe.name, source)
    return list(map(".".join, missing_texts(recipe.name, (source, target), folders)))


def stated_pairs(recipe: CorpusRecipe) -> int | None:
    """Return the number of training pairs that the paper of a known corpus states; None if there is none."""
    known = KNOWN_CORPORA.get(recipe.name or "")
    return known.counts.get("train") if known else None


def _files_of_known(name: str, source: str, target: str) -> list[RemoteFile]:
    known_corpus(name, source, target)
    folders = corpus_folders(name, source)
    missing = missing_texts(name, (source, target), folders)
    if not missing or name == "controlled":
        return []
    check_own_files(name, missing, folders)
    return files_of(name, (source, target), folders)
