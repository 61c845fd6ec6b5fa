"""What a corpus is for everything after it: files, and the parts of its training text."""

from __future__ import annotations

from dataclasses import dataclass

from synmt.corpora.parts import CorpusPart
from synmt.recipe.corpus import SplitFiles


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus in one translation direction; all of them exist.

    name: part of the names of prepared corpora and trees.
    parts: of the training text, in order; none are one part of weight 1.
    """

    name: str
    source: str
    target: str
    train: SplitFiles
    valid: SplitFiles
    test: dict[str, SplitFiles]
    parts: tuple[CorpusPart, ...] = ()

    def __post_init__(self) -> None:
        assert not {"train", "valid"} & set(self.test), list(self.test)

    def splits(self) -> dict[str, SplitFiles]:
        """Return train, valid and every test set by name."""
        return {"train": self.train, "valid": self.valid, **self.test}


def side_names(stem: str, source: str, target: str) -> tuple[str, str]:
    """Name the files of both sides: train.en and train.de, or train.source.en and train.target.en in one language."""
    if source == target:
        return f"{stem}.source.{source}", f"{stem}.target.{target}"
    return f"{stem}.{source}", f"{stem}.{target}"
