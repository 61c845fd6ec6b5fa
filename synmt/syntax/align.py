"""Where the words of a sentence stand in its line, by character."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from synmt.arrays import IntArray
from synmt.syntax.whitespace import WHITESPACE, without_whitespace

_TOKEN_RANGE = re.compile(r"(?:^|\|)TokenRange=(\d+):(\d+)(?:\||$)")


class Misplaced(Exception):
    """A word that does not stand in the line where the words before it end."""

    def __init__(self, word: int, found: str) -> None:
        self.word, self.found = word, found
        super().__init__(f"word {word}: the line goes on with '{found}'")


def spans_in(line: str, words: Sequence[str], miscs: Sequence[str]) -> IntArray:
    """Place the words in a line: (W, 2), by `TokenRange` where that is right, else by walking along the line.

    Differences in blanks are forgiven, nothing else: raises Misplaced.
    """
    spans = _given(line, words, miscs)
    if spans is None:
        spans = _walked(line, words)
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _given(line: str, words: Sequence[str], miscs: Sequence[str]) -> list[tuple[int, int]] | None:
    spans: list[tuple[int, int]] = []
    covered = 0
    for word, misc in zip(words, miscs, strict=True):
        match = _TOKEN_RANGE.search(misc)
        if match is None:
            return None
        start, end = int(match[1]), int(match[2])
        if start < covered or without_whitespace(line[covered:start]) or not _same(line[start:end], word):
            return None
        spans.append((start, end))
        covered = end
    return spans if not without_whitespace(line[covered:]) else None


def _same(piece: str, word: str) -> bool:
    # a piece that begins or ends in a blank is a range that has slipped
    return piece == word or (piece == piece.strip() != "" and without_whitespace(piece) == without_whitespace(word))


def _walked(line: str, words: Sequence[str]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    end = 0
    for index, word in enumerate(words):
        start = end = _skip_blanks(line, end)
        for character in without_whitespace(word):
            end = _skip_blanks(line, end)
            if line[end : end + 1] != character:
                raise Misplaced(index, line[start : start + 30])
            end += 1
        if end == start:
            raise Misplaced(index, line[start : start + 30])
        spans.append((start, end))
    rest = _skip_blanks(line, end)
    if rest < len(line):
        raise Misplaced(len(words), line[rest : rest + 30])
    return spans


def _skip_blanks(line: str, position: int) -> int:
    while position < len(line) and WHITESPACE.match(line, position):
        position += 1
    return position
