"""Trees as text for a terminal: one word on each line, with arcs next to the words.

     1 The    <┐    + det
     2 monkey ─┘<┐  + nsubj
     3 eats   *──┤  + root
     4 a      <┐ │  - det of 5 banana
     5 banana ─┘<┘  + obj

A track is a line that connects a parent with its children on one side. Tracks that overlap are at
different distances from the words; where the line of a word crosses another track, the other track
is drawn on top.
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
    words = list(map(_shortened, gold.words))
    arcs, remarks = draw_arcs(parents), _remarks(parents, gold, words)
    word_width = max(map(display_width, words), default=0)
    arc_width = max(map(len, arcs), default=0)
    lines = []
    for number, (word, arc, remark) in enumerate(zip(words, arcs, remarks, strict=True), 1):
        padded = word + " " * (word_width - display_width(word))
        lines.append(f"{number:{len(str(len(words)))}} {padded} {arc:{arc_width}}  {remark}")
    return lines


def _shortened(word: str) -> str:
    word = without_breaks(word)
    while display_width(word) > _LONGEST:
        word = word.removesuffix("…")[:-1] + "…"
    return word


def display_width(text: str) -> int:
    """Count the terminal columns of a text."""
    base = [letter for letter in text if not unicodedata.combining(letter)]
    return len(base) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in base)


def _remarks(parents: IntArray, gold: Parse, words: Sequence[str]) -> list[str]:
    """Compare each word with gold: a sign, the gold relation and, for a wrong parent, the gold
    parent."""
    remarks = []
    counts = not_punctuation(gold).tolist()
    for word, (parent, relation) in enumerate(zip(gold.parents, gold.relations, strict=True)):
        sign, of = "-", f" of {parent + 1} {words[parent]}" if parent != word else ""
        if not counts[word]:
            sign, of = " ", ""
        elif parents[word] == parent:
            sign, of = "+", ""
        elif parents[parent] == word != parent:
            sign = "~"
        remarks.append(f"{sign} {relation}{of}")
    return remarks


@dataclass(frozen=True)
class Family:
    """A parent and its children on one side, in the words `first` to `last`; track 0 is nearest to
    the words."""

    parent: int
    first: int
    last: int
    track: int


def families(parents: Sequence[int]) -> dict[tuple[int, bool], Family]:
    """Assign tracks, to narrow families first, so that only crossing arcs cross.

    The keys are the parent, and whether its children are to its left.
    """
    spans = {}
    for word, parent in enumerate(parents):
        if word != parent:
            first, last = spans.get((parent, word < parent), (parent, parent))
            spans[parent, word < parent] = min(first, word), max(last, word)
    found: dict[tuple[int, bool], Family] = {}
    for key, (first, last) in sorted(
        spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])
    ):
        overlapping = [one for one in found.values() if one.first <= last and first <= one.last]
        # both sides of a parent may share a track
        track = max((one.track + (one.parent != key[0]) for one in overlapping), default=0)
        found[key] = Family(key[0], first, last, track)
    return found


def draw_arcs(parents: IntArray) -> list[str]:
    """Draw the arcs of a tree: (W,) -> W lines."""
    above = parents.tolist()
    tracks = list(families(above).values())
    return [_row(word, parent, tracks) for word, parent in enumerate(above)]


def _row(word: int, parent: int, tracks: Sequence[Family]) -> str:
    """Draw the row of a word: two columns for each track, with an arrow before the track of its
    parent."""
    here = [family for family in tracks if family.first <= word <= family.last]
    far = max((family.track for family in here if family.parent in (word, parent)), default=-1)
    cells = ""
    for track in range(max((family.track for family in here), default=-1) + 1):
        meeting = [family for family in here if family.track == track]
        arrow = any(family.parent == parent != word for family in meeting)
        cells += "<" if arrow else "─" if track <= far else " "
        cells += _box(word, parent, meeting, track < far)
    return "*" + cells[1:] if word == parent else cells


def _box(word: int, parent: int, meeting: Sequence[Family], line: bool) -> str:
    """Draw the cell where a row crosses a track; `line`: the row continues to the right."""
    if not meeting:
        return "─" if line else " "
    sides = _UP * any(family.first < word for family in meeting)
    sides |= _DOWN * any(word < family.last for family in meeting)
    if any(family.parent in (word, parent) for family in meeting):
        sides |= _LEFT | _RIGHT * line
    return _BOXES[sides]
