"""What a corpus is for everything after it: files, and the parts of its training text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from synmt.corpora.parts import CorpusPart
from synmt.recipe.corpus import SplitFiles


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus in one translation direction; all of them exist.

    name: part of the names of prepared corpora and trees.
    parts: parts of the training text, in order; empty: one part with weight 1.
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


def in_any(folders: Iterable[Path], name: str) -> Path | None:
    """Find a file, plain or with `.gz`, in the first folder that has it."""
    places = (folder / file for folder in folders for file in (name, f"{name}.gz"))
    return next((path for path in places if path.is_file()), None)


def files_in(folders: list[Path], split: str, source: str, target: str) -> SplitFiles:
    """Find both sides of a split, which exist, and what belongs to them in the same folders or in
    earlier ones."""
    names = side_names(split, source, target)
    paths = [path for name in names if (path := in_any(folders, name))]
    assert len(paths) == 2, names
    # trees and labels in a later folder belong to another text
    beside, beside_target = (folders[: folders.index(path.parent) + 1] for path in paths)
    return SplitFiles(
        source=paths[0],
        target=paths[1],
        source_parses=in_any(beside, f"{names[0]}.conllu"),
        target_parses=in_any(beside_target, f"{names[1]}.conllu"),
        source_bracketings=in_any(beside, f"{names[0]}.brackets"),
        target_bracketings=in_any(beside_target, f"{names[1]}.brackets"),
        labels=in_any(beside, f"{split}.labels.tsv"),
    )


def side_names(stem: str, source: str, target: str) -> tuple[str, str]:
    """Name the files of both sides: train.en and train.de, or train.source.en and train.target.en
    in one language."""
    if source == target:
        return f"{stem}.source.{source}", f"{stem}.target.{target}"
    return f"{stem}.{source}", f"{stem}.{target}"
