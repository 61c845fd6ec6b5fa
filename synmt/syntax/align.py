"""The positions of words in their line, in characters."""

from __future__ import annotations

from difflib import SequenceMatcher
from unicodedata import normalize

import numpy as np

from synmt.arrays import IntArray, IntPairs, Texts, int_pairs
from synmt.errors import SynmtError
from synmt.syntax.parse import CHARACTER, without_whitespace


def place_words(line: str, words: Texts, *, where: str) -> IntArray:
    """Find words in a line, one after the other: (W, 2).

    Only whitespace may differ; any other difference raises SynmtError.

    where: names the tree in the message.
    """
    spans: IntPairs = []
    end = 0
    for number, word in enumerate(words, start=1):
        start = end = _next_character(line, end)
        word = word.strip()
        if word and line.startswith(word, start):
            end += len(word)
        else:
            for character in without_whitespace(word):
                end = _next_character(line, end)
                if not line.startswith(character, end):
                    raise _misplaced(number, word, line[start : start + 30], where)
                end += 1
        if end == start:
            raise _misplaced(number, word, line[start : start + 30], where)
        spans.append((start, end))
    rest = line[_next_character(line, end) :]
    if rest:
        raise _misplaced(len(words) + 1, "", rest[:30], where)
    return int_pairs(spans)


def _misplaced(number: int, word: str, found: str, where: str) -> SynmtError:
    """Make the error for a line that does not continue with a word, counted from 1, but with
    `found`."""
    what = f"word {number} is '{word}', but the text continues with '{found}'"
    if word and normalize("NFC", found).startswith(normalize("NFC", word)):
        what += ", which is another Unicode normalization"
    return SynmtError(
        f"the tree does not match the text: {what}",
        where=where,
        allowed="Only whitespace may differ",
        do="Check that trees and text belong together, line by line, or parse the text again",
    )


def _next_character(line: str, position: int) -> int:
    """Find the first character that is not whitespace."""
    character = CHARACTER.search(line, position)
    return character.start() if character else len(line)


def locate_words(words: Texts, line: str) -> IntArray:
    """Find the words in a line: (W, 2) characters.

    Spaces and case do not count. Where the line has other characters than the words, such as
    `&quot;` for a quotation mark, a word that begins there has the place at which they differ.
    """
    letters = [place for place, letter in enumerate(line) if not letter.isspace()]
    if not letters or not words:
        return np.zeros((len(words), 2), dtype=np.int64)
    text, joined = _lower("".join(line[place] for place in letters)), _lower("".join(words))
    same = range(len(letters)) if text == joined else _matched(joined, text)
    places = np.array(letters)[np.array(same)]  # (number of letters in the words,)
    ends = np.cumsum([len(word) for word in words])  # (W,)
    starts = np.append(0, ends[:-1])  # (W,)
    return np.stack((places[starts], places[ends - 1] + 1), axis=1)


def _lower(text: str) -> str:
    """Put letters into lower case, apart from those that become several."""
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _matched(joined: str, text: str) -> list[int]:
    """Find a letter of `text` for each letter of `joined`."""
    places: list[int] = []
    matcher = SequenceMatcher(None, joined, text, autojunk=False)
    for kind, start, end, first, _ in matcher.get_opcodes():
        for step in range(end - start):
            places.append(min(first + (step if kind == "equal" else 0), len(text) - 1))
    return places
