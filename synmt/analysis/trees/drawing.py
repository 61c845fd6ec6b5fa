"""Trees as text for a terminal, one word on each line with arcs beside it; and as SVG, with
the arcs of the model above the words, and gold arcs below.

     1 The    <┐    + det
     2 monkey ─┘<┐  + nsubj
     3 eats   *──┤  + root
     4 a      <┐ │  - det of 5 banana
     5 banana ─┘<┘  + obj

A track is a line that connects a parent with its children on one side. Tracks that overlap are at
different distances from the words; where the line of a word crosses another track, the other track
is drawn on top.

In SVG, correct arcs are solid and wrong arcs dashed, so the picture can be read without colour. The
colours are those of Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.analysis.trees.attachment import not_punctuation
from synmt.arrays import IntArray
from synmt.reporting.svg import svg_document, svg_text
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
class _Family:
    """A parent and its children on one side, in the words `first` to `last`; track 0 is nearest to
    the words."""

    parent: int
    first: int
    last: int
    track: int


def _families(parents: Sequence[int]) -> dict[tuple[int, bool], _Family]:
    """Assign tracks, to narrow families first, so that only crossing arcs cross.

    The keys are the parent, and whether its children are to its left.
    """
    spans = {}
    for word, parent in enumerate(parents):
        if word != parent:
            first, last = spans.get((parent, word < parent), (parent, parent))
            spans[parent, word < parent] = min(first, word), max(last, word)
    found: dict[tuple[int, bool], _Family] = {}
    for key, (first, last) in sorted(
        spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])
    ):
        overlapping = [one for one in found.values() if one.first <= last and first <= one.last]
        # both sides of a parent may share a track
        track = max((one.track + (one.parent != key[0]) for one in overlapping), default=0)
        found[key] = _Family(key[0], first, last, track)
    return found


def draw_arcs(parents: IntArray) -> list[str]:
    """Draw the arcs of a tree: (W,) -> W lines."""
    above = parents.tolist()
    tracks = list(_families(above).values())
    return [_row(word, parent, tracks) for word, parent in enumerate(above)]


def _row(word: int, parent: int, tracks: Sequence[_Family]) -> str:
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


def _box(word: int, parent: int, meeting: Sequence[_Family], line: bool) -> str:
    """Draw the cell where a row crosses a track; `line`: the row continues to the right."""
    if not meeting:
        return "─" if line else " "
    sides = _UP * any(family.first < word for family in meeting)
    sides |= _DOWN * any(word < family.last for family in meeting)
    if any(family.parent in (word, parent) for family in meeting):
        sides |= _LEFT | _RIGHT * line
    return _BOXES[sides]


_WORD, _LABEL = 8.6, 7.0
"""Estimated width of a letter at font sizes of 15 and 11 pixels, rounded up."""
_GAP, _STEM, _LEVEL, _MARGIN = 14, 7, 19, 18
"""Pixels between words, from the middle of a word to the arcs to its children, between tracks, and
around the picture."""
_KEY = (
    "above: the model's tree, dashed: not in the {0} tree, thin: punctuation, which does not "
    "count; below: the {0} tree"
)

_STYLE = """
.title { font-weight: bold }
.title, .key { font-size: 13px }
.word, .label { text-anchor: middle }
.label { font-size: 11px; fill: #555555 }
path { fill: none; stroke-linejoin: round }
.gold { stroke: #777777; stroke-width: 1.2px }
.right { stroke: #0072b2; stroke-width: 2px }
.wrong { stroke: #d55e00; stroke-width: 1.6px; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
  .label { fill: #bbbbbb }
  .gold { stroke: #999999 }
  .right { stroke: #56b4e9 }
  .wrong { stroke: #e69f00 }
}
"""


@dataclass(frozen=True, eq=False)
class TreeDrawing:
    """A sentence to draw: its title, the model's parents (W,) and the gold tree; None draws the
    gold tree alone."""

    title: str
    parents: IntArray | None
    gold: Parse


def draw_svg(sentences: Sequence[TreeDrawing], heading: str, kind: str = "gold") -> str:
    """Draw sentences below each other.

    kind: the name of the trees that those of the model are compared with.
    """
    key, y = _KEY.format(kind), _MARGIN + 54.0
    parts = [svg_text(_MARGIN, y - 40, heading, "title"), svg_text(_MARGIN, y - 22, key, "key")]
    width = 2 * _MARGIN + _WORD * max(display_width(heading), 0.9 * display_width(key))
    for sentence in sentences:
        elements, its_width, height = _sentence(sentence, y)
        parts += elements
        y, width = y + height, max(width, its_width)
    return svg_document(parts, width, y, style=_STYLE)


def draw_parse(parse: Parse) -> str:
    """Draw one tree, above its words, with its relations."""
    return svg_document(*_sentence(TreeDrawing("", None, parse), 0), style=_STYLE)


def _sentence(drawn: TreeDrawing, top: float) -> tuple[list[str], float, float]:
    """Draw a sentence: its SVG elements, its width and its height."""
    gold = drawn.gold
    below = gold.parents.tolist() if drawn.parents is not None else []
    above, styles = gold.parents, ["gold"] * len(gold)
    if drawn.parents is not None:
        above, counts = drawn.parents, not_punctuation(gold)  # (W,) both
        right = np.where(above == gold.parents, "right", "wrong")  # (W,)
        styles = np.where(counts, right, "gold").tolist()
    widths = [
        max(_WORD * display_width(word), _LABEL * display_width(relation), 3 * _STEM) + _GAP
        for word, relation in zip(gold.words, gold.relations, strict=True)
    ]
    middles = (_MARGIN + np.cumsum(widths) - np.array(widths) / 2).tolist()
    up, down = _tracks(above.tolist()) * _LEVEL, _tracks(below) * _LEVEL
    y = top + 50 + up  # of the words
    labels = y + 16 if below else y - 17
    elements = [svg_text(_MARGIN, top + 8, drawn.title, "title")] if drawn.title else []
    elements += _arcs(above.tolist(), styles, middles, y - 18 if below else y - 30, -_LEVEL)
    elements += _arcs(below, ["gold"] * len(below), middles, y + 22, _LEVEL)
    for middle, word, relation in zip(middles, gold.words, gold.relations, strict=True):
        elements.append(svg_text(middle, labels, relation, "label"))
        elements.append(svg_text(middle, y, word, "word"))
    width = 2 * _MARGIN + max(sum(widths), _WORD * display_width(drawn.title))
    return elements, width, 72 + up + (down + 22 if below else 0)


def _tracks(parents: Sequence[int]) -> int:
    """Count the tracks of a tree, and one more for its root."""
    return 2 + max((family.track for family in _families(parents).values()), default=-1)


def _arcs(
    parents: Sequence[int], styles: Sequence[str], middles: Sequence[float], y: float, level: int
) -> Iterator[str]:
    """Yield an arc for each word, with an arrow at the word; a root's arc is a vertical line.

    y: of the arrows.
    level: from there to the first track; negative upwards.
    """
    tracks, tip = _families(parents), level / 3
    for child, (parent, style) in enumerate(zip(parents, styles, strict=True)):
        end, left = middles[child], child < parent
        if child == parent:
            line = f"M{end:.1f} {y + level * _tracks(parents):.1f}"
        else:
            start = middles[parent] + (-_STEM if left else _STEM)
            far = y + level * (tracks[parent, left].track + 1)
            line = f"M{start:.1f} {y:.1f}V{far:.1f}H{end:.1f}"
        arrow = f"M{end - 3:.1f} {y + tip:.1f}L{end:.1f} {y:.1f}L{end + 3:.1f} {y + tip:.1f}"
        yield f'<path class="{style}" d="{line}V{y:.1f}{arrow}"/>'
