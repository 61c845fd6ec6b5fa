"""A text that is put together from parts of several texts, or drawn from one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from pathlib import Path

import numpy as np
from typing_extensions import TypedDict

from synmt.arrays import BoolArray, Pair
from synmt.corpora.archives import Packed
from synmt.corpora.corpus import CorpusPart, side_names
from synmt.corpora.formats import zipped
from synmt.corpora.public_text import FACTS, write_pairs
from synmt.errors import SynmtError, UsageError
from synmt.files.json_files import Count, read_cached_json
from synmt.files.reading import cache_folder, count_lines, fingerprint, read_lines, stored_sha256
from synmt.files.writing import alone, write_folder_atomically, write_json
from synmt.recipe.corpus import CorpusItem, SplitFiles


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
        drawing = []
        for item, text in zip(self.items, self.texts, strict=True):
            sums = map(stored_sha256, (text.source, text.target))
            drawing.append((*sums, item.fraction, item.lines, item.seed))
        return cache_folder() / "corpora" / f"mix-{fingerprint(drawing, self.stem, self.languages)}"

    @property
    def files(self) -> SplitFiles:
        """The two sides."""
        source, target = (self.folder / name for name in side_names(self.stem, *self.languages))
        return SplitFiles(source=source, target=target)

    def is_done(self) -> bool:
        """Check whether the text is in the cache."""
        return bool(self._counts())

    def run(self) -> None:
        """Write the text; raises UsageError if an item wants more pairs than its text has."""
        with alone(self.folder):
            # another process may have written it in the meantime
            if self.is_done():
                return
            sizes = list(map(_size, self.items, self.texts))
            wanted = list(map(_wanted, self.items, sizes))
            with write_folder_atomically(self.folder) as unfinished:
                pairs = chain.from_iterable(map(_drawn, self.items, self.texts, sizes, wanted))
                paths = [unfinished / name for name in side_names(self.stem, *self.languages)]
                write_pairs(pairs, paths, "build the training text")
                write_json(unfinished / FACTS, {"parts": wanted}, indent=1)

    def parts(self) -> tuple[CorpusPart, ...]:
        """Describe the parts of the finished text."""
        return parts_of(self.items, self._counts())

    def _counts(self) -> list[int]:
        facts = read_cached_json(self.folder / FACTS, _Facts)
        return facts["parts"] if facts else []


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
    if not (size := count_lines(text.source)):
        raise SynmtError("the text is empty", where=_label(item))
    return size


def _wanted(item: CorpusItem, size: int) -> int:
    if item.lines > size:
        raise UsageError(
            f"`lines: {item.lines}` is more than the {size:,} pairs that it has", where=_label(item)
        )
    return item.lines or max(round(item.fraction * size), 1)


def _drawn(item: CorpusItem, text: SplitFiles, size: int, wanted: int) -> Iterator[Pair]:
    """Yield the pairs that an item draws from its text."""
    sides = text.source, text.target
    pairs = zipped([Packed((side,)) for side in sides], map(read_lines, sides))
    return compress(pairs, drawn(size, wanted, item.seed))


def drawn(total: int, wanted: int, seed: int) -> BoolArray:
    """Choose `wanted` of `total` pairs: (total,), True for those that are drawn.

    Every pair gets a random number of 64 bits, and those with the smallest are taken. So with one
    seed, a smaller sample is a subset of a larger one: the points of a learning curve differ in
    size only.
    """
    # numpy promises that the raw numbers of a generator never change
    numbers = np.random.PCG64(seed).random_raw(total)  # (total,)
    if wanted == total:
        return np.ones(total, dtype=np.bool_)
    return numbers < np.partition(numbers, wanted)[wanted]
