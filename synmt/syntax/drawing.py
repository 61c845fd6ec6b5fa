"""Trees as text for a terminal, one word on each line with arcs next to it; and as SVG, with arcs
above the words.

     1 The    <┐    + det
     2 monkey ─┘<┐  + nsubj
     3 eats   *──┤  + root
     4 a      <┐ │  - det of 5 banana
     5 banana ──<┘  + obj

Both have the same tracks. A track is a line that connects a parent with its children on one side.
Tracks that overlap are at different distances from the words; where the line of a word crosses
another track, the other track is drawn on top.

In SVG, wrong arcs are dashed, so the picture can be read without colour. The colours are those of
Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import bidirectional

import numpy as np

from synmt.arrays import IntArray, Texts
from synmt.reporting.figures import for_xml
from synmt.reporting.text import display_width
from synmt.syntax.parse import Parse, without_breaks
from synmt.syntax.trees import not_punctuation

LEGEND = "* root   + correct   ~ reversed   - wrong, with the right parent"


def draw_tree(parents: IntArray, gold: Parse) -> list[str]:
    """Draw a tree (W,) next to the gold relations: one line for each word."""
    words, arcs = list(map(without_breaks, gold.words)), draw_arcs(parents)
    word_width = max(map(display_width, words), default=0)
    lines = []
    for number, (word, arc, remark) in enumerate(
        zip(words, arcs, _remarks(parents, gold), strict=True), 1
    ):
        padded = word + " " * (word_width - display_width(word))
        lines.append(f"{number:{len(str(len(words)))}} {padded} {arc}  {remark}")
    return lines


def _remarks(parents: IntArray, gold: Parse) -> Iterator[str]:
    """Compare each word with gold: a sign, the gold relation and, for a wrong parent, the gold
    parent."""
    for word, counts in enumerate(not_punctuation(gold).tolist()):
        parent, relation = int(gold.parents[word]), gold.relations[word]
        if not counts:
            yield f"  {relation}"
        elif parents[word] == parent:
            yield f"+ {relation}"
        else:
            sign = "~" if parents[parent] == word != parent else "-"
            of = f" of {parent + 1} {without_breaks(gold.words[parent])}" if parent != word else ""
            yield f"{sign} {relation}{of}"


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
    families: dict[tuple[int, bool], _Family] = {}
    for key, (first, last) in sorted(
        spans.items(), key=lambda item: (item[1][1] - item[1][0], item[0])
    ):
        overlapping = [arc for arc in families.values() if arc.first <= last and first <= arc.last]
        # both sides of a parent may share a track
        track = max((arc.track + (arc.parent != key[0]) for arc in overlapping), default=0)
        families[key] = _Family(key[0], first, last, track)
    return families


def draw_arcs(parents: IntArray) -> list[str]:
    """Draw the arcs of a tree: (W,) -> W lines, with two columns for each track."""
    above = parents.tolist()
    families = sorted(_families(above).values(), key=lambda family: -family.track)
    columns = 2 * families[0].track + 2 if families else 1
    grid = [[" "] * columns for _ in above]
    for family in families:
        column = 2 * family.track + 1
        for word in range(family.first, family.last + 1):
            row, is_child = grid[word], above[word] == family.parent != word
            if not is_child and word != family.parent:
                row[column] = "│"
                continue
            corner = "┐" if word == family.first else "┘" if word == family.last else "┤"
            row[column] = corner if row[column] in " ─" else "┤"
            row[:column] = "─" * column
            if is_child:
                row[column - 1] = "<"
    for word, parent in enumerate(above):
        if word == parent:
            grid[word][0] = "*"
    return list(map("".join, grid))


_LETTER = 8.6
"""Estimated width of a letter in pixels, rounded up."""
_GAP, _STEM, _LEVEL = 14, 7, 19
"""Pixels between words, from the middle of a word to the arcs to its children, and between
tracks."""

# no CSS variables: most programs other than browsers do not support them
_STYLE = """
text {
  font-family: system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; font-size: 15px; fill: #222222
}
.ground { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #eeeeee }
  .ground { fill: #16181c }
}
.word, .label { text-anchor: middle }
.label { font-size: 13px; fill: #555555 }
path { fill: none; stroke: #0072b2; stroke-width: 2px; stroke-linejoin: round }
.wrong { stroke: #d55e00; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
  .label { fill: #bbbbbb }
  path { stroke: #56b4e9 }
  .wrong { stroke: #e69f00 }
}
"""


@dataclass(frozen=True, eq=False)
class TreeDrawing:
    """A tree to draw: its title, the parent of each word (W,), the gold tree, which has the words,
    and perhaps a note below each word."""

    title: str
    parents: IntArray
    gold: Parse
    notes: Texts = ()


def draw_parse(parse: Parse) -> str:
    """Draw a parse without a title."""
    return draw_svg([TreeDrawing("", parse.parents, parse)])


def draw_svg(trees: Sequence[TreeDrawing], *, embedded: bool = False) -> str:
    """Draw trees below each other; arcs that are not in the gold tree are dashed.

    A text that is read from right to left is drawn so. Each word is a group, whose `data-word` is
    its number from 0.

    embedded: whether the picture becomes a part of a page, which has its style.
    """
    parts, width, bottom = list[str](), 0.0, 0.0
    for tree in trees:
        drawn, size, bottom = _draw_words(tree, bottom)
        width = max(width, size, 2 * _GAP + _LETTER * display_width(tree.title))
        parts += drawn
    size = f'width="{width:.0f}" height="{bottom:.0f}" viewBox="0 0 {width:.0f} {bottom:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" {size}>'
    ground = '<rect class="ground" width="100%" height="100%"/>'
    style = [] if embedded else [f"<style>{_STYLE}</style>", ground]
    return "\n".join([head, *style, *parts, "</svg>", ""])


def _draw_words(tree: TreeDrawing, top: float) -> tuple[list[str], float, float]:
    """Draw the words and arcs of a tree below `top`; returns them with the width, and the
    bottom."""
    gold, parents, families = tree.gold, tree.parents.tolist(), _families(tree.parents.tolist())
    tracks = 2 + max((family.track for family in families.values()), default=-1)
    y = top + (40 if tree.title else 10) + tracks * _LEVEL  # of the ends of arcs
    rows = [gold.words, gold.relations, *[tree.notes] * bool(tree.notes)]
    columns = list(zip(*rows, strict=True))
    widths = [_GAP + _LETTER * max(map(display_width, column)) for column in columns]
    middles = _GAP + np.cumsum(widths) - np.array(widths) / 2
    width = 2 * _GAP + sum(widths)
    if right_to_left(gold.words):
        middles = width - middles
    parts = [_text(_GAP, top + 24, tree.title)] if tree.title else []
    for child, (x, parent) in enumerate(zip(middles.tolist(), parents, strict=True)):
        line = f"M{x:.1f} {y - tracks * _LEVEL:.1f}"
        if child != parent:
            left = child < parent
            start = middles[parent] + (-_STEM if x < middles[parent] else _STEM)
            far = y - (families[parent, left].track + 1) * _LEVEL
            line = f"M{start:.1f} {y:.1f}V{far:.1f}H{x:.1f}"
        style = "right" if parent == gold.parents[child] else "wrong"
        lines = zip(columns[child], ("word", "label", "label"), strict=False)
        texts = [_text(x, y + 18 + 16 * row, *line) for row, line in enumerate(lines)]
        parts.append(
            f'<g data-word="{child}"><path class="{style}" d="{line}V{y:.1f}l-3 -6m3 6l3 -6"/>'
            f"{''.join(texts)}</g>"
        )
    return parts, width, y + 18 + 16 * len(rows)


def right_to_left(words: Texts) -> bool:
    """Check by the first letter whether a text is read from right to left."""
    kinds = (bidirectional(character) for word in words for character in word)
    return next((kind != "L" for kind in kinds if kind in ("L", "R", "AL")), False)


def _text(x: float, y: float, text: str, style: str = "") -> str:
    """Write text at a position in pixels, with a CSS class; line breaks become spaces."""
    words = escape(for_xml(without_breaks(text)), quote=False)
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{words}</text>'
