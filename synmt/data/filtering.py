"""Filters the pairs of the training text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from synmt.arrays import BoolArray
from synmt.data.text_pairs import Pair, PairChunk, read_chunks
from synmt.data.vocabulary import is_punctuation
from synmt.errors import UsageError
from synmt.parallel.engine import in_order
from synmt.parallel.processes import process_count
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe

# prepared corpora store the numbers: add new reasons at the end
REASONS = (
    "kept",
    "empty",
    "too long (words)",
    "ratio",
    "duplicate",
    "language",
    "too long (pieces)",
    "punctuation",
)
KEPT, EMPTY, WORDS, RATIO, DUPLICATE, LANGUAGE, PIECES, PUNCTUATION = range(len(REASONS))

Codes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]

_CHUNK = 20_000
_FEW, _FEW_WITH_LANGUAGE = 200_000, 20_000
"""Up to this number of pairs, starting processes costs more than it saves."""


def judge_pairs(
    files: SplitFiles,
    filters: FilterRecipe,
    languages: Pair,
    *,
    lines: int = 0,
    where: Path = Path(),
) -> Iterator[Codes]:
    """Yield, in chunks, the index in REASONS of every pair: the first reason that applies.

    All cores or the cluster in use judge a long text. Memory is constant, except 8 bytes per kept
    pair for the duplicate filter's hashes, and 16 for a moment. The probability that two different
    pairs among 100 million have the same hash, so that one is lost, is 0.03 %.

    lines: the number of pairs.
    where: the folder that errors name.
    """
    seen = _Seen() if filters.duplicates else None
    judge, chunks = _Judge(filters, languages), read_chunks(files, _CHUNK)
    few = lines <= (_FEW_WITH_LANGUAGE if filters.language else _FEW)
    workers = process_count(-(-lines // _CHUNK))
    judged = (
        map(judge.judge, chunks)
        if few
        else in_order(_Judge.judge, judge, chunks, workers, where=where)
    )
    for codes, hashes in judged:
        if seen:
            rows = np.flatnonzero(codes == KEPT)
            codes[rows[seen.again(hashes)]] = DUPLICATE
        yield codes


def count_reasons(codes: Codes) -> dict[str, int]:
    """Count how often each reason occurs."""
    counts = np.bincount(codes, minlength=len(REASONS)).tolist()
    return dict(zip(REASONS, counts, strict=True))


@dataclass(frozen=True)
class _Judge:
    """Judges pairs by all filters except that of duplicates, which needs the pairs before."""

    filters: FilterRecipe
    languages: Pair

    def judge(self, chunk: PairChunk) -> tuple[Codes, Hashes]:
        """Return the codes of pairs, (n,), and the hashes of those that are kept if duplicates are
        removed."""
        pairs = chunk.pairs()
        codes = np.array([_judge(pair, self.filters) for pair in pairs], dtype=np.uint8)
        if self.filters.language:
            is_foreign = _language_filter(self.languages)
            codes[
                [row for row in np.flatnonzero(codes == KEPT).tolist() if is_foreign(pairs[row])]
            ] = LANGUAGE
        kept = np.flatnonzero(codes == KEPT).tolist() if self.filters.duplicates else []
        return codes, np.array([_hash(pairs[row]) for row in kept], dtype=np.uint64)


def _judge(pair: Pair, filters: FilterRecipe) -> int:
    shorter, longer = len(pair[0].split()), len(pair[1].split())
    if shorter > longer:
        shorter, longer = longer, shorter
    if not shorter:
        return EMPTY
    if filters.max_words and longer > filters.max_words:
        return WORDS
    if filters.max_ratio and longer > filters.max_ratio * shorter:
        return RATIO
    if filters.max_punctuation < 1:
        words = pair[0].split()
        if sum(map(is_punctuation, words)) / len(words) > filters.max_punctuation:
            return PUNCTUATION
    return KEPT


def _hash(pair: Pair) -> int:
    # a line contains no line end, so it can separate the two
    return int.from_bytes(
        hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest(), "little"
    )


class _Seen:
    """The hashes so far, in sorted arrays, each at least twice as long as the next one.

    So a hash is moved as often as an array has doubled, and not with every chunk.
    """

    def __init__(self) -> None:
        self._arrays: list[Hashes] = []

    def again(self, hashes: Hashes) -> BoolArray:
        """Mark the hashes that occurred before, in this call or an earlier one, and remember
        all."""
        different, firsts = np.unique(hashes, return_index=True)
        known = np.zeros(len(different), dtype=bool)
        for array in self._arrays:
            known |= _contains(array, different)
        again = np.ones(len(hashes), dtype=bool)
        again[firsts[~known]] = False
        new = different[~known]
        while self._arrays and len(self._arrays[-1]) < 2 * len(new):
            new = np.sort(np.concatenate((self._arrays.pop(), new)))
        self._arrays += [new] if len(new) else []
        return again


def _contains(array: Hashes, values: Hashes) -> BoolArray:
    """Mark the values that are in a sorted array, which is not empty: (n,)."""
    places = np.searchsorted(array, values).clip(max=len(array) - 1)
    return array[places] == values


@cache
def _language_filter(languages: Pair) -> Callable[[Pair], bool]:
    import py3langid

    known = {language for language, _ in py3langid.rank("")}
    for language in languages:
        if language not in known:
            raise UsageError(
                f"filters.language does not know the language '{language}'",
                allowed=f"Known: {', '.join(sorted(known))}",
                do="Set filters.language=false",
            )
    return lambda pair: any(
        py3langid.classify(text)[0] != language
        for text, language in zip(pair, languages, strict=True)
    )
