"""The positions of words in their line, in characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from unicodedata import name, normalize

import numpy as np

from synmt.arrays import IntArray
from synmt.syntax.parse import WHITESPACE, without_whitespace

_TOKEN_RANGE = re.compile(r"(?:^|\|)TokenRange=(\d+):(\d+)(?:\||$)")


class MisplacedWordError(Exception):
    """The line does not continue with this word after the words before it."""

    def __init__(self, word: int, found: str) -> None:
        self.word, self.found = word, found
        super().__init__(f"word {word}: the line continues with '{found}'")


def unseen_difference(word: str, text: str) -> str:
    """Name the first characters in which a word differs from the text, if they may look alike;
    empty for plain ASCII."""
    ours, theirs = without_whitespace(word), without_whitespace(text)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    at = len(list(same))
    characters = ours[at : at + 1], theirs[at : at + 1]
    if "".join(characters).isascii() and "".join(characters).isprintable():
        return ""
    named = " against ".join(f"U+{ord(each):04X} {name(each, '')}" for each in characters if each)
    if ours and normalize("NFC", theirs).startswith(normalize("NFC", ours)):
        named = f"another Unicode normalization: {named}; `uconv -x nfc` normalizes both"
    return f" ({named.rstrip()})"


def place_words(line: str, words: Sequence[str], miscs: Sequence[str]) -> IntArray:
    """Find the words in a line: (W, 2), by `TokenRange` if it is correct, otherwise one after the
    other.

    Only whitespace may differ; any other difference raises MisplacedWordError.
    """
    spans = _token_ranges(line, words, miscs)
    if spans is None:
        spans = _walk(line, words)
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _token_ranges(
    line: str, words: Sequence[str], miscs: Sequence[str]
) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    covered = 0
    for word, misc in zip(words, miscs, strict=True):
        match = _TOKEN_RANGE.search(misc)
        if match is None:
            return None
        start, end = int(match[1]), int(match[2])
        if (
            start < covered
            or without_whitespace(line[covered:start])
            or not _same(line[start:end], word)
        ):
            return None
        spans.append((start, end))
        covered = end
    return spans if not without_whitespace(line[covered:]) else None


def _same(text: str, word: str) -> bool:
    # a text that begins or ends with whitespace comes from a shifted range
    return text == word or (
        text == text.strip() != "" and without_whitespace(text) == without_whitespace(word)
    )


def _walk(line: str, words: Sequence[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    end = 0
    for index, word in enumerate(words):
        start = end = _skip_whitespace(line, end)
        for character in without_whitespace(word):
            end = _skip_whitespace(line, end)
            if line[end : end + 1] != character:
                raise MisplacedWordError(index, line[start : start + 30])
            end += 1
        if end == start:
            raise MisplacedWordError(index, line[start : start + 30])
        spans.append((start, end))
    rest = _skip_whitespace(line, end)
    if rest < len(line):
        raise MisplacedWordError(len(words), line[rest : rest + 30])
    return spans


def _skip_whitespace(line: str, position: int) -> int:
    while position < len(line) and WHITESPACE.match(line, position):
        position += 1
    return position


def locate_words(words: Sequence[str], line: str) -> IntArray:
    """Find the words in a line: (W, 2) characters.

    Spaces and case do not count. Where the line has other characters than the words, such as
    `&quot;` for a quotation mark, a word that begins there has the place at which they differ.
    """
    letters = [place for place, letter in enumerate(line) if not letter.isspace()]
    if not letters or not words:
        return np.zeros((len(words), 2), dtype=np.int64)
    text, joined = (_lower("".join(some)) for some in ((line[place] for place in letters), words))
    same = range(len(letters)) if text == joined else _matched(joined, text)
    places = np.array(letters)[np.array(same)]  # (number of letters in the words,)
    lengths = np.array([len(word) for word in words], dtype=np.int64)  # (W,)
    ends = np.cumsum(lengths)  # (W,)
    starts = ends - lengths  # (W,)
    return np.stack((places[starts], places[ends - 1] + 1), axis=1)


def _lower(text: str) -> str:
    """Put letters into lower case, apart from those that become several."""
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _matched(joined: str, text: str) -> list[int]:
    """Find a letter of `text` for each letter of `joined`."""
    found: list[int] = []
    for kind, start, end, first, _ in SequenceMatcher(
        None, joined, text, autojunk=False
    ).get_opcodes():
        if kind != "insert":
            steps = range(end - start)
            found += [
                min(first + (step if kind == "equal" else 0), len(text) - 1) for step in steps
            ]
    return found
