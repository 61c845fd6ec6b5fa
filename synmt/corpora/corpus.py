"""What a corpus is for everything after it: files, and the parts of its training text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from synmt.arrays import IntArray, Pair, Strings
from synmt.errors import SynmtError, UsageError
from synmt.files.reading import cache_folder
from synmt.recipe.corpus import SplitFiles

Splits = dict[str, SplitFiles]
"""Texts by the names of their splits, or by other keys."""


@dataclass(frozen=True)
class CorpusPart:
    """Consecutive lines of the training text.

    lines: their number.
    weight: how often an epoch reads each. 2: twice; 0.5: half of the pairs, another random half in
        each epoch.
    tag: a piece that each source begins with, such as `<BT>` for machine translations (Caswell et
        al., 2019); it belongs to no word.
    """

    name: str
    lines: int
    weight: float = 1.0
    tag: str = ""


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
    test: Splits
    parts: tuple[CorpusPart, ...] = ()

    def splits(self) -> Splits:
        """Return train, valid and every test set by name."""
        return {"train": self.train, "valid": self.valid, **self.test}


def corpus_folders(name: str) -> list[Path]:
    """List the folders that may have the files of a corpus, in order: in $SYNMT_DATA, in the
    cache."""
    folder = os.environ.get("SYNMT_DATA")
    beside = [Path(folder).expanduser() / name] if folder else []
    return [*beside, cache_folder() / "corpora" / name]


def in_any(folders: Iterable[Path], name: str) -> Path | None:
    """Find a file, plain or with `.gz`, in the first folder that has it."""
    places = (folder / file for folder in folders for file in (name, f"{name}.gz"))
    return next((path for path in places if path.is_file()), None)


def files_in(folders: list[Path], split: str, source: str, target: str) -> SplitFiles:
    """Find both sides of a split, and what belongs to them in the same folders or in earlier
    ones."""
    names = side_names(split, source, target)
    paths = [path for name in names if (path := in_any(folders, name))]
    if len(paths) < 2:
        raise UsageError(f"{' and '.join(names)} must be there, plain or as .gz", where=folders[-1])
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


def side_names(stem: str, source: str, target: str) -> Pair:
    """Name the files of both sides: train.en and train.de, or train.source.en and train.target.en
    in one language."""
    if source == target:
        return f"{stem}.source.{source}", f"{stem}.target.{target}"
    return f"{stem}.{source}", f"{stem}.{target}"


def part_tags(parts: Sequence[CorpusPart]) -> Strings:
    """List the tags of parts, each once."""
    return tuple(dict.fromkeys(part.tag for part in parts if part.tag))


def tags_of_lines(parts: Sequence[CorpusPart], lines: IntArray) -> list[str]:
    """Return the tag of each line, counted from 0; empty without one."""
    if not part_tags(parts):
        return [""] * len(lines)
    numbers = np.searchsorted(_ends(parts), lines, side="right")  # (N,)
    return [parts[number].tag for number in numbers.tolist()]


def rows_of_parts(parts: Sequence[CorpusPart], lines: IntArray) -> list[range]:
    """Find the rows of each part among rows with these lines, in ascending order: (N,)."""
    bounds = np.searchsorted(lines, np.append(0, _ends(parts))).tolist()
    return [range(first, last) for first, last in pairwise(bounds)]


def check_parts(parts: Sequence[CorpusPart], lines: int) -> None:
    """Raise SynmtError unless the parts have all lines of the training text."""
    if parts and (counted := sum(part.lines for part in parts)) != lines:
        raise SynmtError(
            f"the training text has {lines:,} lines, but its parts have {counted:,}",
            where=", ".join(f"{part.name}: {part.lines:,}" for part in parts),
        )


def _ends(parts: Sequence[CorpusPart]) -> IntArray:
    return np.cumsum([part.lines for part in parts], dtype=np.int64)
