"""Trees for a terminal: one word a line, with arcs beside the words.

     1 The    <┐    + det
     2 monkey ─┘<┐  + nsubj
     3 eats   *──┤  + root
     4 a      <┐ │  - det of 5 banana
     5 banana ─┘<┘  + obj

A parent has one track, which joins it with all of its children; tracks that share a row are different ones. Where a
line of a word comes to the track of others, the line passes below it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse
from synmt.syntax.whitespace import without_breaks

LEGEND = "* root   + as in gold   ~ reversed   - not in gold, whose parent is named"

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
"""Columns of a word; longer ones are cut, so that a tree fits on 80 columns."""


def draw_tree(parents: IntArray, gold: Parse) -> list[str]:
    """Draw a tree (W,) with what gold says of each word: a line for each word."""
    numbers = [str(number) for number in range(1, len(gold) + 1)]
    words = [_fitted(without_breaks(word)) for word in gold.words]
    arcs = draw_arcs(parents)
    remarks = _remarks(parents, gold, words)
    wide = max(map(columns, words), default=0)
    far = max(map(len, arcs), default=0)
    return [
        f"{number:>{len(numbers[-1])}} {word}{' ' * (wide - columns(word))} {arc:<{far}}  {remark}".rstrip()
        for number, word, arc, remark in zip(numbers, words, arcs, remarks, strict=True)
    ]


def columns(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _fitted(word: str) -> str:
    while columns(word) > _LONGEST:
        word = word.removesuffix("…")[:-1] + "…"
    return word


def _remarks(parents: IntArray, gold: Parse, words: Sequence[str]) -> list[str]:
    """Say of each word whether its parent is the gold one; of punctuation, which does not count, only what it is."""
    above, counts = gold.parents.tolist(), not_punctuation(gold).tolist()
    remarks = []
    for word, (parent, relation) in enumerate(zip(above, gold.relations, strict=True)):
        known = parent == word or not counts[word]
        right = parents[word] == parent
        sign = " " if not counts[word] else "+" if right else "~" if parents[parent] == word != parent else "-"
        remarks.append(f"{sign} {relation}" if right or known else f"{sign} {relation} of {parent + 1} {words[parent]}")
    return remarks


def draw_arcs(parents: IntArray) -> list[str]:
    """Draw the arcs of a tree as they stand beside its words: (W,) -> W lines."""
    above = parents.tolist()
    families = _families(above)
    return [_row(word, parent, families) for word, parent in enumerate(above)]


@dataclass(frozen=True)
class _Family:
    """A parent and its children on one side of it, from the first of these words to the last, and their track."""

    parent: int
    first: int
    last: int
    track: int


def _families(parents: Sequence[int]) -> list[_Family]:
    """Hand out tracks, those of narrow families inside, so that only arcs that cross each other cross."""
    spans: dict[tuple[int, bool], tuple[int, int]] = {}
    for word, parent in enumerate(parents):
        if word != parent:
            first, last = spans.get((parent, word < parent), (parent, parent))
            spans[parent, word < parent] = min(first, word), max(last, word)
    families: list[_Family] = []
    for (parent, _), (first, last) in sorted(spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])):
        beside = [other for other in families if other.first <= last and first <= other.last]
        # both sides of a parent may share a track
        track = max((other.track + (other.parent != parent) for other in beside), default=0)
        families.append(_Family(parent, first, last, track))
    return families


def _row(word: int, parent: int, families: Sequence[_Family]) -> str:
    """Draw the row of a word: two columns for each track, with an arrow before that of its parent."""
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
    """Draw a row where it meets a track; `line` says whether the row goes on beyond it."""
    if not meeting:
        return "─" if line else " "
    sides = _UP * any(family.first < word for family in meeting) | _DOWN * any(word < family.last for family in meeting)
    if any(family.parent in (word, parent) for family in meeting):
        sides |= _LEFT | _RIGHT * line
    return _BOXES[sides]
