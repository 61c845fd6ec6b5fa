"""Trees as text for a terminal: one word on each line, with arcs next to the words.

     1 The    <┐    + det
     2 monkey ─┘<┐  + nsubj
     3 eats   *──┤  + root
     4 a      <┐ │  - det of 5 banana
     5 banana ─┘<┘  + obj

A track is a vertical line that connects a parent with its children. Tracks that overlap are in
different columns; where the line of a word crosses another track, the other track is drawn on top.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse, without_breaks

LEGEND = "* root   + correct   ~ reversed   - wrong, with the {} parent"

_LEFT, _RIGHT, _UP, _DOWN = 1, 2, 4, 8
_BOXES = {
    _UP | _DOWN: "│",
    _LEFT | _DOWN: "┐",
    _LEFT | _UP: "┘",
    _LEFT | _UP | _DOWN: "┤",
    _LEFT | _RIGHT | _DOWN: "┬",
    _LEFT | _RIGHT | _UP: "┴",
    _LEFT | _RIGHT | _UP | _DOWN: "┼",
}
_LONGEST = 16
"""Maximum width of a word in columns; longer words are shortened so that a tree fits into 80
columns."""


def draw_tree(parents: IntArray, gold: Parse) -> list[str]:
    """Draw a tree (W,) next to the gold relations: one line for each word."""
    numbers = [str(number) for number in range(1, len(gold) + 1)]
    words = [without_breaks(word) for word in gold.words]
    for place, word in enumerate(words):
        while display_width(word) > _LONGEST:
            word = words[place] = word.removesuffix("…")[:-1] + "…"
    arcs = draw_arcs(parents)
    remarks = _remarks(parents, gold, words)
    word_width = max(map(display_width, words), default=0)
    arc_width = max(map(len, arcs), default=0)
    lines = []
    for number, word, arc, remark in zip(numbers, words, arcs, remarks, strict=True):
        gap = " " * (word_width - display_width(word))
        lines.append(
            f"{number:>{len(numbers[-1])}} {word}{gap} {arc:<{arc_width}}  {remark}".rstrip()
        )
    return lines


def display_width(text: str) -> int:
    """Count the terminal columns of a text."""
    return sum(
        0
        if unicodedata.combining(letter)
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )


def _remarks(parents: IntArray, gold: Parse, words: Sequence[str]) -> list[str]:
    """Compare each word with gold: a sign, the gold relation and, for a wrong parent, the gold
    parent."""
    above, counts = gold.parents.tolist(), not_punctuation(gold).tolist()
    remarks = []
    for word, (parent, relation) in enumerate(zip(above, gold.relations, strict=True)):
        known = parent == word or not counts[word]
        right = parents[word] == parent
        sign = (
            " "
            if not counts[word]
            else "+"
            if right
            else "~"
            if parents[parent] == word != parent
            else "-"
        )
        remarks.append(
            f"{sign} {relation}"
            if right or known
            else f"{sign} {relation} of {parent + 1} {words[parent]}"
        )
    return remarks


def draw_arcs(parents: IntArray) -> list[str]:
    """Draw the arcs of a tree: (W,) -> W lines."""
    above = parents.tolist()
    families = _families(above)
    return [_row(word, parent, families) for word, parent in enumerate(above)]


@dataclass(frozen=True)
class _Family:
    """A parent and its children on one side, in the words `first` to `last`, with the column of
    their track."""

    parent: int
    first: int
    last: int
    track: int


def _families(parents: Sequence[int]) -> list[_Family]:
    """Assign columns to tracks, narrow families first, so that only crossing arcs cross."""
    spans = {}
    for word, parent in enumerate(parents):
        if word != parent:
            first, last = spans.get((parent, word < parent), (parent, parent))
            spans[parent, word < parent] = min(first, word), max(last, word)
    families = []
    for (parent, _), (first, last) in sorted(
        spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])
    ):
        overlapping = [other for other in families if other.first <= last and first <= other.last]
        # both sides of a parent may share a track
        track = max((other.track + (other.parent != parent) for other in overlapping), default=0)
        families.append(_Family(parent, first, last, track))
    return families


def _row(word: int, parent: int, families: Sequence[_Family]) -> str:
    """Draw the row of a word: two columns for each track, with an arrow before the track of its
    parent."""
    here = [family for family in families if family.first <= word <= family.last]
    far = max((family.track for family in here if family.parent in (word, parent)), default=-1)
    cells = ""
    for track in range(max((family.track for family in here), default=-1) + 1):
        meeting = [family for family in here if family.track == track]
        arrow = any(family.parent == parent != word for family in meeting)
        cells += "<" if arrow else "─" if track <= far else " "
        cells += _box(word, parent, meeting, track < far)
    return "*" + cells[1:] if word == parent else cells


def _box(word: int, parent: int, meeting: Sequence[_Family], line: bool) -> str:
    """Draw the cell where a row crosses a track; `line`: the row continues to the right."""
    if not meeting:
        return "─" if line else " "
    sides = _UP * any(family.first < word for family in meeting) | _DOWN * any(
        word < family.last for family in meeting
    )
    if any(family.parent in (word, parent) for family in meeting):
        sides |= _LEFT | _RIGHT * line
    return _BOXES[sides]
