"""Which words of a translation are right, as compare-mt counts them (Neubig et al., 2019).

The first copy of a word in a translation matches the first copy in the reference of the sentence, the second copy the
second, and so on; copies beyond those of the reference match nothing. Positions do not matter, as in BLEU.

Words are numbered through the whole text: M words of N sentences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synmt.arrays import BoolArray, IntArray
from synmt.decode.alignment import Pair

Lines = Sequence[Sequence[str]]
"""The words of each sentence."""


@dataclass(frozen=True, eq=False)
class TokenizedText:
    """The words of N sentences, M in all."""

    lines: Lines

    @cached_property
    def sentence(self) -> IntArray:
        """The sentence of each word: (M,)."""
        lengths = [len(words) for words in self.lines]
        return np.repeat(np.arange(len(lengths)), lengths).astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """The number of words before each sentence: (N,)."""
        return np.cumsum([0, *(len(words) for words in self.lines)])[:-1].astype(np.int64)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the words of the whole text."""
        return (word for words in self.lines for word in words)

    def __len__(self) -> int:
        return len(self.sentence)


def match_words(hypothesis: TokenizedText, reference: TokenizedText) -> IntArray:
    """Find the word of the reference that each word of a translation matches: (M,), -1 for none."""
    found: list[int] = []
    for words, start, others in zip(hypothesis.lines, reference.starts.tolist(), reference.lines, strict=True):
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(others, start):
            places[word].append(place)
        copies = {word: iter(numbers) for word, numbers in places.items()}
        found += [next(copies[word], -1) if word in copies else -1 for word in words]
    return np.array(found, dtype=np.int64)


def found_words(matches: IntArray, words: int) -> BoolArray:
    """Tell which words of the reference some word of the translation matches: (M,) -> (words,)."""
    found = np.zeros(words, dtype=np.bool_)
    found[matches[matches >= 0]] = True
    return found


def join_alignments(alignments: Iterable[Sequence[Pair]], source: TokenizedText, reference: TokenizedText) -> IntArray:
    """Number the words of aligned pairs through the whole text: for each sentence its pairs -> (A, 2)."""
    starts = zip(source.starts.tolist(), reference.starts.tolist(), strict=True)
    pairs = [
        (start + one, other_start + other)
        for (start, other_start), some in zip(starts, alignments, strict=True)
        for one, other in some
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def right_sources(found: BoolArray, pairs: IntArray, words: int) -> tuple[BoolArray, BoolArray]:
    """Tell which source words are aligned, and which of them have all their words of the reference in a translation.

    found: (M,) which words of the reference the translation has.
    pairs: (A, 2) a source word and a word of the reference.
    Returns aligned, right: (words,) both.
    """
    aligned, missed = np.zeros((2, words), dtype=np.bool_)
    aligned[pairs[:, 0]] = True
    missed[pairs[~found[pairs[:, 1]], 0]] = True
    return aligned, aligned & ~missed
