"""In which words two translations of one sentence differ, and which of these words the reference has."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

import numpy as np

from synmt.arrays import IntArray

Kind = Literal["same", "right", "other"]
"""A word is the same in both translations; or it differs, and the reference has it somewhere (`right`), or has not.

A translation may have a word more often than the reference: each word of the reference makes one `right` at most.
"""

_ALONE = ("CJK", "HIRAGANA", "KATAKANA")
"""How Unicode begins the names of letters that are words by themselves here."""


@dataclass(frozen=True)
class Stretch:
    """Neighbouring words of one kind, with the blanks between them."""

    text: str
    kind: Kind


def word_spans(line: str) -> IntArray:
    """Cut a line at blanks, punctuation and, since Chinese and Japanese know no blanks, at their letters: (W, 2)."""
    places = groupby(enumerate(line), key=lambda one: _class(*one))
    spans = [[place for place, _ in letters] for kind, letters in places if kind is not None]
    return np.array([(places[0], places[-1] + 1) for places in spans], dtype=np.int64).reshape(-1, 2)


def kinds(line: str, other: str, reference: str) -> list[Kind]:
    """Tell of each word of a translation whether another one has it at the same place, or else the reference: W."""
    words, others = _words(line), _words(other)
    found: list[Kind] = ["right" if known else "other" for known in _known(words, _words(reference))]
    for place in _in_order(words, others):
        found[place] = "same"
    return found


def _known(words: list[str], reference: list[str]) -> list[bool]:
    """Tell which words the reference has, each as often as it has it: those in its order first, then the earliest."""
    left, found = Counter(reference), [False] * len(words)
    for place in dict.fromkeys([*_in_order(words, reference), *range(len(words))]):
        found[place] = left[words[place]] > 0
        left[words[place]] -= 1
    return found


def _in_order(words: list[str], others: list[str]) -> Iterator[int]:
    """Find the places of the words that the other line has in the same order."""
    for start, _, length in SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks():
        yield from range(start, start + length)


def stretches(line: str, of_words: list[Kind]) -> Iterator[Stretch]:
    """Cut a line into stretches of words of one kind, given that of each word; blanks around them are the same."""
    spans, end, first = word_spans(line).tolist(), 0, 0
    for kind, some in groupby(of_words):
        last = first + len(list(some)) - 1
        start = spans[first][0]
        if end < start:
            yield Stretch(line[end:start], "same")
        end, first = spans[last][1], last + 1
        yield Stretch(line[start:end], kind)
    if end < len(line):
        yield Stretch(line[end:], "same")


def bracketed(line: str, of_words: list[Kind]) -> str:
    """Put words that differ into brackets."""
    merged: list[Kind] = ["same" if kind == "same" else "other" for kind in of_words]
    return "".join(one.text if one.kind == "same" else f"[{one.text}]" for one in stretches(line, merged))


def _words(line: str) -> list[str]:
    return [line[start:end] for start, end in word_spans(line).tolist()]


def _class(place: int, letter: str) -> int | None:
    """Say which letters belong together: None for a blank, a number of its own for what stands alone, else 0."""
    if letter.isspace():
        return None
    alone = unicodedata.category(letter)[0] in "PS" or unicodedata.name(letter, "").startswith(_ALONE)
    return place + 1 if alone else 0
