"""A text that is put together from parts of several texts, or drawn from one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from synmt.corpora.cleaning import Pair
from synmt.corpora.corpus import side_names
from synmt.corpora.download import alone
from synmt.corpora.parts import CorpusPart
from synmt.corpora.public_text import FACTS, write_pairs
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import Count, read_cached_json
from synmt.files.reading import cache_folder, count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import write_folder_atomically, write_json
from synmt.recipe.corpus import CorpusItem, SplitFiles

_BLOCK = 1 << 16
_BITS = 16
"""The first pass counts the numbers by their highest bits, the second one sorts those of one
count."""


class _Facts(TypedDict):
    parts: list[Count]


@dataclass(frozen=True)
class MixedText:
    """Parts of several texts, one after the other.

    texts: the files of each item, which exist.
    stem: the name of the files before the language, such as `train`.
    """

    items: Sequence[CorpusItem]
    texts: Sequence[SplitFiles]
    stem: str
    languages: Pair

    @cached_property
    def folder(self) -> Path:
        """The folder of the text; other texts and other draws have another one."""
        drawing = [
            (
                stored_sha256(text.source),
                stored_sha256(text.target),
                item.fraction,
                item.lines,
                item.seed,
            )
            for item, text in zip(self.items, self.texts, strict=True)
        ]
        return cache_folder() / "corpora" / f"mix-{fingerprint(drawing, self.stem, self.languages)}"

    @property
    def files(self) -> SplitFiles:
        """The two sides."""
        source, target = (self.folder / name for name in side_names(self.stem, *self.languages))
        return SplitFiles(source=source, target=target)

    def is_done(self) -> bool:
        """Tell whether the text is in the cache."""
        return len(self._counts()) == len(self.items)

    def run(self) -> None:
        """Write the text, unless it is there; raises UsageError if an item wants more pairs than
        its text has."""
        if not self.is_done():
            with alone(self.folder, "puts this text together"):
                if not self.is_done():
                    self._mix()

    def parts(self) -> tuple[CorpusPart, ...]:
        """Describe the parts of the finished text."""
        return parts_of(self.items, self._counts())

    def _counts(self) -> list[int]:
        facts = read_cached_json(self.folder / FACTS, _Facts)
        return facts["parts"] if facts else []

    def _mix(self) -> None:
        both = list(zip(self.items, self.texts, strict=True))
        sizes = [_size(item, text) for item, text in both]
        wanted = [_wanted(item, size) for item, size in zip(self.items, sizes, strict=True)]
        with write_folder_atomically(self.folder) as unfinished:
            pairs = (
                pair
                for (item, text), size, some in zip(both, sizes, wanted, strict=True)
                for pair in compress(_pairs(text), drawn(size, some, item.seed))
            )
            paths = [unfinished / name for name in side_names(self.stem, *self.languages)]
            write_pairs(pairs, paths, "build the training text")
            facts = {"parts": wanted, "of": sizes, "names": list(map(_label, self.items))}
            write_json(unfinished / FACTS, facts, indent=1)


def parts_of(items: Sequence[CorpusItem], counts: Sequence[int]) -> tuple[CorpusPart, ...]:
    """Describe the parts of a text by their numbers of lines."""
    return tuple(
        CorpusPart(_label(item), lines, item.weight, item.tag)
        for item, lines in zip(items, counts, strict=True)
    )


def _label(item: CorpusItem) -> str:
    """Name an item: by its id, or its source file."""
    return item.id if item.id is not None else str(item.source)


def _size(item: CorpusItem, text: SplitFiles) -> int:
    source, target = count_lines(text.source), count_lines(text.target)
    if source != target:
        raise SynmtError(
            f"{source:,} source lines and {target:,} target lines",
            where=_label(item),
            allowed="Both files need the same number of lines: each line is the translation of the "
            "same line",
        )
    if not source:
        raise SynmtError("the text is empty", where=_label(item))
    return source


def _wanted(item: CorpusItem, size: int) -> int:
    if item.lines > size:
        raise UsageError(
            f"`lines: {item.lines}` is more than the {size:,} pairs that it has", where=_label(item)
        )
    return item.lines or max(round(item.fraction * size), 1)


def _pairs(text: SplitFiles) -> Iterator[Pair]:
    return zip(read_lines(text.source), read_lines(text.target), strict=True)


# which pairs are drawn


def drawn(total: int, wanted: int, seed: int) -> Iterator[bool]:
    """Tell for each of `total` pairs whether it is one of the `wanted` that are sampled.

    Every pair gets a random number of 64 bits, and those with the smallest are taken. So with one
    seed, a smaller sample is a subset of a larger one: the points of a learning curve differ in
    size only.
    """
    assert 0 <= wanted <= total, (wanted, total)
    limit = _smallest(total, wanted, seed)
    for numbers in _numbers(total, seed):
        yield from (
            (numbers < np.uint64(limit)).tolist() if limit is not None else [True] * len(numbers)
        )


def _numbers(total: int, seed: int) -> Iterator[NDArray[np.uint64]]:
    # numpy promises that the raw numbers of a generator never change
    generator = np.random.PCG64(seed)
    for start in range(0, total, _BLOCK):
        yield generator.random_raw(min(_BLOCK, total - start))


def _smallest(total: int, wanted: int, seed: int) -> int | None:
    """Find the number that `wanted` numbers are smaller than; None if all are."""
    if wanted == total:
        return None
    counts = np.zeros(1 << _BITS, dtype=np.int64)
    for numbers in _numbers(total, seed):
        counts += np.bincount(_high(numbers), minlength=len(counts))
    before = np.concatenate([[0], np.cumsum(counts)])
    group = int(np.searchsorted(before, wanted, side="right")) - 1
    members = np.concatenate(
        [numbers[_high(numbers) == group] for numbers in _numbers(total, seed)]
    )
    return int(np.sort(members)[wanted - before[group]])


def _high(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (numbers >> np.uint64(64 - _BITS)).astype(np.int64)
