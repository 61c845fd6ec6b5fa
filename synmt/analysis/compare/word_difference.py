"""The words in which translations of a sentence differ, and which of them are in the reference."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Stretch:
    """Neighbouring words of one kind, with the spaces between them."""

    text: str
    kind: WordKind


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


def stretches(line: str, kinds: list[WordKind]) -> Iterator[Stretch]:
    """Split a line into stretches of one kind, given the kind of each word; spaces between stretches are `same`."""
    spans, end, first = word_spans(line).tolist(), 0, 0
    for kind, some in groupby(kinds):
        last = first + len(list(some)) - 1
        start = spans[first][0]
        if end < start:
            yield Stretch(line[end:start], "same")
        end, first = spans[last][1], last + 1
        yield Stretch(line[start:end], kind)
    if end < len(line):
        yield Stretch(line[end:], "same")


def bracketed(line: str, kinds: list[WordKind]) -> str:
    """Put brackets around the words that differ."""
    merged: list[WordKind] = ["same" if kind == "same" else "other" for kind in kinds]
    return "".join(one.text if one.kind == "same" else f"[{one.text}]" for one in stretches(line, merged))


def _words(line: str) -> list[str]:
    return [line[start:end] for start, end in word_spans(line).tolist()]


def _class(place: int, letter: str) -> int | None:
    """Group letters into words: None for a space, a unique number for a one-letter word, else 0."""
    if letter.isspace():
        return None
    alone = unicodedata.category(letter)[0] in "PS" or unicodedata.name(letter, "").startswith(_ALONE)
    return place + 1 if alone else 0
