"""Trees as SVG: the model's arcs above the words, gold arcs with relations below; or a single tree.

Correct arcs are solid and wrong arcs dashed, so the picture can be read without colour. The colours
are those of Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.trees.drawing import display_width
from synmt.arrays import IntArray
from synmt.reporting.svg import svg_document, svg_text
from synmt.syntax.parse import Parse

_WORD, _LABEL = 8.6, 7.0
"""Estimated width of a letter at font sizes of 15 and 11 pixels, rounded up."""
_GAP, _SLOT, _LEVEL, _MARGIN, _BEND = 14, 8, 19, 18, 6
"""Pixels between words, arcs at one word, and levels of arcs; around the picture; radius of a
bend."""
_KEY = (
    "above: the model's tree, dashed: not in the {0} tree, thin: punctuation, which does not "
    "count; below: the {0} tree"
)

_STYLE = """
.title { font-weight: bold }
.title, .key { font-size: 13px }
.word, .label { text-anchor: middle }
.label { font-size: 11px; fill: #555555 }
path { fill: none }
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


@dataclass(frozen=True)
class _Arc:
    """An arc from a parent to a child; a root is its own parent.

    level: 1 is nearest to the words.
    start, end: horizontal distances of its ends from the centres of the parent and of the child.
    """

    child: int
    parent: int
    level: int
    start: float
    end: float


@dataclass(frozen=True)
class _Half:
    """The arcs above the words, with `down` -1, or below them, with 1; with the style and perhaps a
    label of each."""

    down: int
    arcs: list[_Arc]
    styles: list[str]
    labels: Sequence[str]


def _sentence(drawn: TreeDrawing, top: float) -> tuple[list[str], float, float]:
    """Draw a sentence: its SVG elements, its width and its height."""
    words, gold = drawn.gold.words, _arcs(drawn.gold.parents.tolist())
    plain = ["gold"] * len(gold)
    halves = [_Half(-1, gold, plain, drawn.gold.relations)]
    if drawn.parents is not None:
        right, counts = (
            drawn.parents == drawn.gold.parents,
            not_punctuation(drawn.gold),
        )  # (W,) both
        styles = np.where(counts, np.where(right, "right", "wrong"), "gold").tolist()
        halves = [_Half(-1, _arcs(drawn.parents.tolist()), styles, [""] * len(gold))]
        halves.append(_Half(1, gold, plain, drawn.gold.relations))
    centres = _centres(words, halves)
    heights = [max((arc.level for arc in half.arcs), default=0) * _LEVEL + 22 for half in halves]
    y = top + 24 + heights[0]
    elements = [svg_text(_MARGIN, top + 8, drawn.title, "title")] if drawn.title else []
    for half in halves:
        elements += _draw_half(half, centres, y)
    elements += [
        svg_text(centre, y, word, "word") for centre, word in zip(centres, words, strict=True)
    ]
    last = centres[-1] + _WORD * display_width(words[-1]) / 2 if words else 0.0
    width = 2 * _MARGIN + max(last, _WORD * display_width(drawn.title))
    return elements, width, 24 + sum(heights) + (22 if len(halves) == 1 else 40)


def _arcs(parents: Sequence[int]) -> list[_Arc]:
    """Give each word the arc from its parent: short arcs inside long ones, the root's outermost,
    without crossings."""
    ends = [(min(pair), max(pair)) for pair in enumerate(parents)]
    levels = {}
    for child, (first, last) in sorted(enumerate(ends), key=lambda one: one[1][1] - one[1][0]):
        if first != last:
            inside = [
                level
                for other, level in levels.items()
                if ends[other][0] < last and first < ends[other][1]
            ]
            levels[child] = max(inside, default=0) + 1
    highest = max(levels.values(), default=0) + 1
    offsets = {}
    for word in range(len(parents)):
        # from left to right: arcs to the left, the short ones first, the root's, arcs to the right,
        # the long ones first
        sides = {
            child: sum(ends[child]) - 2 * word
            for child in range(len(parents))
            if word in ends[child]
        }
        ordered = sorted(
            sides, key=lambda child: ((sides[child] > 0) - (sides[child] < 0), -sides[child])
        )
        offsets |= {
            (child, word): (place - (len(ordered) - 1) / 2) * _SLOT
            for place, child in enumerate(ordered)
        }
    return [
        _Arc(
            child, parent, levels.get(child, highest), offsets[child, parent], offsets[child, child]
        )
        for child, parent in enumerate(parents)
    ]


def _centres(words: Sequence[str], halves: Sequence[_Half]) -> list[float]:
    """Place words as close together as words, arcs and labels allow."""
    room = [_WORD * display_width(word) / 2 for word in words]
    apart: list[list[tuple[int, float]]] = [[] for _ in words]
    for half in halves:
        for arc, label in zip(half.arcs, half.labels, strict=True):
            for word, offset in ((arc.parent, arc.start), (arc.child, arc.end)):
                room[word] = max(room[word], offset + _SLOT / 2)
            if arc.child != arc.parent:
                long = max(2 * _BEND + 2, _LABEL * display_width(label) + 2 * _BEND)
                shift = (arc.start - arc.end) * (1 if arc.parent < arc.child else -1)
                apart[max(arc.child, arc.parent)].append((min(arc.child, arc.parent), long + shift))
    centres = []
    for word, half_width in enumerate(room):
        beside = centres[-1] + room[word - 1] + half_width + _GAP if word else _MARGIN + half_width
        centres.append(
            max(beside, *(centres[first] + distance for first, distance in apart[word]), 0)
        )
    return centres


def _draw_half(half: _Half, centres: Sequence[float], y: float) -> Iterator[str]:
    """Yield arcs, each with an arrow at the child, then labels on top of them; a root's arc is a
    vertical line."""
    down, near = half.down, y + (9 if half.down > 0 else -18)
    labels = []
    for arc, style, label in zip(half.arcs, half.styles, half.labels, strict=True):
        start, end = centres[arc.parent] + arc.start, centres[arc.child] + arc.end
        far, root = near + down * arc.level * _LEVEL, arc.child == arc.parent
        arrow = (
            f"M{end - 3:.1f} {near + down * 6:.1f}L{end:.1f} {near:.1f}L{end + 3:.1f} "
            f"{near + down * 6:.1f}"
        )
        line = f"M{end:.1f} {near:.1f}V{far:.1f}"
        if not root:
            bend, turn = _BEND if end > start else -_BEND, far - down * _BEND
            line = (
                f"M{start:.1f} {near:.1f}V{turn:.1f}Q{start:.1f} {far:.1f} {start + bend:.1f} "
                f"{far:.1f}"
            )
            line += f"H{end - bend:.1f}Q{end:.1f} {far:.1f} {end:.1f} {turn:.1f}V{near:.1f}"
        yield f'<path class="{style}" d="{line}{arrow}"/>'
        # a label is on the inner side of its arc; the root's label is at the end of the line
        beside = (13 if root else -4) if down > 0 else (-4 if root else 12)
        labels += [svg_text((start + end) / 2, far + beside, label, "label")] if label else []
    yield from labels
