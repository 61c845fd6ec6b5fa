"""What the text of a recipe still needs on this machine; nothing is downloaded or built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synmt.corpora.build import NotBuilt
from synmt.corpora.corpus import Corpus
from synmt.corpora.download import RemoteFile, result_of
from synmt.corpora.items import public_files, public_texts
from synmt.corpora.known import KNOWN_CORPORA
from synmt.corpora.known_texts import known_corpus, known_folders, missing_of_known
from synmt.corpora.resolve import resolving
from synmt.errors import SynmtError
from synmt.files.reading import cache_folder
from synmt.recipe.corpus import CorpusRecipe


@dataclass(frozen=True)
class CorpusNeeds:
    """What makes a text complete.

    downloads: the public files that the missing texts are built from, whether or not these are there.
    folder: where the missing texts will be.
    valid: the name of the split that is the validation text.
    counts: sentence pairs of each split, where a paper states them.
    problems: why only the user can provide a text.
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
    files, problems = public_files(recipe, source, target)
    if recipe.name is None:
        return CorpusNeeds(tuple(files), cache_folder() / "corpora", problems=tuple(problems))
    known = known_corpus(recipe.name, source, target)
    counts = {split: known.counts[split] for split in public_texts(recipe)[recipe.name] if split in known.counts}
    valid = known.valid if recipe.valid is None else "valid"
    return CorpusNeeds(tuple(files), known_folders(recipe.name)[-1], valid, counts, tuple(problems))


def missing_files(recipe: CorpusRecipe, source: str, target: str) -> list[str]:
    """Name the files that a known corpus lacks on this machine; for other corpora `find_corpus` has the answer."""
    if recipe.name is None:
        return []
    missing = missing_of_known(recipe.name, source, target, public_texts(recipe)[recipe.name])
    return list(map(".".join, missing))


def stated_pairs(recipe: CorpusRecipe) -> int | None:
    """Return the number of training pairs that the paper of a known corpus states; None if there is none."""
    known = KNOWN_CORPORA.get(recipe.name or "")
    return known.counts.get("train") if known else None
