"""Filters the pairs of the training text."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from synmt.arrays import Pair
from synmt.data.text_pairs import PairChunk, read_chunks
from synmt.data.vocabulary import is_punctuation
from synmt.errors import UsageError
from synmt.files.language import known_languages
from synmt.parallel.engine import in_order
from synmt.parallel.processes import process_count
from synmt.recipe.corpus import SplitFiles
from synmt.recipe.data import FilterRecipe
from synmt.reporting.progress import progress

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
_FEW = 200_000
"""Up to this number of pairs, starting processes costs more than it saves."""


def judge_pairs(
    files: SplitFiles, filters: FilterRecipe, languages: Pair, *, lines: int, where: Path
) -> Codes:
    """Find the index in REASONS of every pair, the first reason that applies: (lines,).

    All cores or the cluster in use judge a long text. The probability that two different pairs
    among 100 million have the same hash, so that one is lost, is 0.03 %.

    lines: the number of pairs.
    where: the folder that errors name.
    """
    if filters.language and (unknown := set(languages) - known_languages()):
        raise UsageError(
            f"filters.language does not know the language {', '.join(sorted(unknown))}",
            do="Set filters.language=false",
        )
    # to classify a language takes ten times as long as all other filters
    few = lines * (10 if filters.language else 1) <= _FEW
    workers = 1 if few else process_count(-(-lines // _CHUNK))
    codes, hashes = [np.zeros(0, dtype=np.uint8)], [np.zeros(0, dtype=np.uint64)]
    with progress("prepare: filter", lines, "lines") as advance:
        for codes_of_chunk, of_kept in in_order(
            _judge_chunk, (filters, languages), read_chunks(files, _CHUNK), workers, where=where
        ):
            codes.append(codes_of_chunk)
            hashes.append(of_kept)
            advance(len(codes_of_chunk))
    all_codes = np.concatenate(codes)
    if filters.duplicates:
        again = np.ones(np.count_nonzero(all_codes == KEPT), dtype=bool)
        again[np.unique(np.concatenate(hashes), return_index=True)[1]] = False
        all_codes[np.flatnonzero(all_codes == KEPT)[again]] = DUPLICATE
    return all_codes


def count_reasons(codes: Codes) -> dict[str, int]:
    """Count how often each reason occurs."""
    return dict(zip(REASONS, np.bincount(codes, minlength=len(REASONS)).tolist(), strict=True))


def _judge_chunk(task: tuple[FilterRecipe, Pair], chunk: PairChunk) -> tuple[Codes, Hashes]:
    """Return the codes of pairs by all filters except that of duplicates, (n,), and the hashes of
    those that are kept."""
    filters, languages = task
    pairs = chunk.pairs()
    codes = np.array([_judge(pair, filters) for pair in pairs], dtype=np.uint8)
    if filters.language:
        import py3langid

        for row in np.flatnonzero(codes == KEPT).tolist():
            if tuple(py3langid.classify(text)[0] for text in pairs[row]) != languages:
                codes[row] = LANGUAGE
    kept_rows = np.flatnonzero(codes == KEPT).tolist() if filters.duplicates else []
    return codes, np.array([_hash(pairs[row]) for row in kept_rows], dtype=np.uint64)


def _judge(pair: Pair, filters: FilterRecipe) -> int:
    words = pair[0].split()
    shorter, longer = sorted((len(words), len(pair[1].split())))
    if not shorter:
        return EMPTY
    if filters.max_words and longer > filters.max_words:
        return WORDS
    if filters.max_ratio and longer > filters.max_ratio * shorter:
        return RATIO
    # a share is 1 at most
    if filters.max_punctuation < 1:
        share = sum(map(is_punctuation, words)) / len(words)
        return PUNCTUATION if share > filters.max_punctuation else KEPT
    return KEPT


def _hash(pair: Pair) -> int:
    # a line contains no line end, so it can separate the two
    return int.from_bytes(
        hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest(), "little"
    )
