"""The corpus that a section of a recipe describes."""

from __future__ import annotations

from synmt.corpora.resolve import Corpus, resolve
from synmt.recipe.corpus import CorpusRecipe


def resolved(source: str = "en", target: str = "de", /, **section: object) -> Corpus:
    """Find the corpus of a section as from a file."""
    return resolve(CorpusRecipe.model_validate(section, strict=False), source, target)
