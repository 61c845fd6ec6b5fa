"""The words in which translations of a sentence differ, and which of them are in the reference."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

import numpy as np

from synmt.arrays import IntArray

WordKind = Literal["same", "right", "other"]
"""A word is the same in both translations, or it differs and is in the reference (`right`) or not (`other`).

Each word of the reference makes at most one word `right`, so repeated words are `other`.
"""

_ALONE = ("CJK", "HIRAGANA", "KATAKANA")
"""Unicode names of the characters that are treated as words begin with one of these."""


def word_spans(line: str) -> IntArray:
    """Split a line at spaces, punctuation, and Chinese and Japanese characters: character spans (W, 2)."""
    places = groupby(enumerate(line), key=lambda one: _class(*one))
    spans = [[place for place, _ in letters] for kind, letters in places if kind is not None]
    return np.array([(places[0], places[-1] + 1) for places in spans], dtype=np.int64).reshape(-1, 2)


def classify_words(line: str, other: str, reference: str) -> list[WordKind]:
    """Classify the W words of a translation, `line`, by another translation and the reference."""
    words, others = _words(line), _words(other)
    found: list[WordKind] = ["right" if known else "other" for known in _known(words, _words(reference))]
    for place in _in_order(words, others):
        found[place] = "same"
    return found


def classify_all(lines: Sequence[str], reference: str) -> list[list[WordKind]]:
    """Classify the words of several translations: those of the first by all others, and those of the others by it.

    A word of the first translation is the same if any other has it.
    """
    first, *others = lines
    of_others = [classify_words(line, first, reference) for line in others]
    of_first = [classify_words(first, line, reference) for line in others]
    merged: list[WordKind] = ["same" if "same" in kinds else kinds[0] for kinds in zip(*of_first, strict=True)]
    return [merged, *of_others]


def _known(words: list[str], reference: list[str]) -> list[bool]:
    """Tell which words the reference has, counting repetitions; words in its order first, then from left to right."""
    left, found = Counter(reference), [False] * len(words)
    for place in dict.fromkeys([*_in_order(words, reference), *range(len(words))]):
        found[place] = left[words[place]] > 0
        left[words[place]] -= 1
    return found


def _in_order(words: list[str], others: list[str]) -> Iterator[int]:
    """Find the positions of the words that the other line has in the same order."""
    for start, _, length in SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks():
        yield from range(start, start + length)


def stretches(line: str, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Split a line into neighbouring words of one kind, with the spaces between them, given the kind of each word.

    Spaces between words of different kinds are `same`.
    """
    spans, end = word_spans(line).tolist(), 0
    for kind, some in groupby(zip(kinds, spans, strict=True), key=lambda one: one[0]):
        places = [span for _, span in some]
        yield line[end : places[0][0]], "same"
        end = places[-1][1]
        yield line[places[0][0] : end], kind
    yield line[end:], "same"


def bracketed(line: str, kinds: Sequence[WordKind]) -> str:
    """Put brackets around the words that differ."""
    differs = ["same" if kind == "same" else "other" for kind in kinds]
    return "".join(text if kind == "same" else f"[{text}]" for text, kind in stretches(line, differs))


def _words(line: str) -> list[str]:
    return [line[start:end] for start, end in word_spans(line).tolist()]


def _class(place: int, letter: str) -> int | None:
    """Group letters into words: None for a space, a unique number for a one-letter word, else 0."""
    if letter.isspace():
        return None
    alone = unicodedata.category(letter)[0] in "PS" or unicodedata.name(letter, "").startswith(_ALONE)
    return place + 1 if alone else 0
