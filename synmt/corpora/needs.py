"""What a corpus still needs on this machine; nothing is downloaded or made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from synmt.corpora.assemble import check_own_files, files_of, missing_texts
from synmt.corpora.download import RemoteFile
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.resolve import Corpus, known_corpus, resolve_corpus
from synmt.errors import SynmtError
from synmt.recipe.data import CorpusRecipe


@dataclass(frozen=True)
class CorpusNeeds:
    """What makes a corpus complete.

    missing: names of the files that are not there.
    downloads: the public files that they are built from, whether or not these are there.
    folder: where the missing files will be; None for a person's own files.
    valid: the name of the split that is the validation text.
    counts: sentence pairs of each split, where a paper states them.
    problem: why only a person can provide the corpus.
    """

    missing: tuple[str, ...] = ()
    downloads: tuple[RemoteFile, ...] = ()
    folder: Path | None = None
    valid: str = "valid"
    counts: Mapping[str, int] = field(default_factory=dict)
    problem: SynmtError | None = None


def missing_files(recipe: CorpusRecipe, source: str, target: str) -> list[str]:
    """Name the files that a known corpus lacks on this machine; for other corpora `resolve_corpus` reports them."""
    if recipe.name is None:
        return []
    _, folders = known_corpus(recipe.name, source, target)
    return list(map(".".join, missing_texts(recipe.name, (source, target), folders)))


def stated_pairs(recipe: CorpusRecipe, split: str = "train") -> int | None:
    """Return the number of sentence pairs that the paper of a known corpus states; None if there is none."""
    known = KNOWN_CORPORA.get(recipe.name or "")
    return known.counts.get(split) if known else None


def corpus_needs(recipe: CorpusRecipe, source: str, target: str) -> CorpusNeeds:
    """Find what a known corpus lacks."""
    if recipe.name is None:
        return CorpusNeeds()
    known, folders = known_corpus(recipe.name, source, target)
    missing = missing_texts(recipe.name, (source, target), folders)
    needs = CorpusNeeds(tuple(map(".".join, missing)), (), folders[-1], known.valid, known.counts)
    if not missing or recipe.name == "controlled":
        return needs
    try:
        check_own_files(recipe.name, missing, folders)
    except SynmtError as error:
        return replace(needs, problem=error)
    return replace(needs, downloads=tuple(files_of(recipe.name, (source, target), folders)))


def find_corpus(recipe: CorpusRecipe, source: str, target: str) -> Corpus | None:
    """Find a corpus as `resolve_corpus` does, but make nothing: None if a file has to be downloaded or made first."""
    return None if missing_files(recipe, source, target) else resolve_corpus(recipe, source, target)
