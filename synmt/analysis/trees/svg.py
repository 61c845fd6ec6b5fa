"""Trees as SVG: the model's arcs above the words, gold arcs with relations below; or a single tree.

Correct arcs are solid and wrong arcs dashed, so the picture can be read without colour. The colours are those of Okabe
and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.trees.drawing import display_width
from synmt.arrays import IntArray
from synmt.reporting.svg import svg_document, svg_text
from synmt.syntax.parse import Parse

_WORD, _LABEL = 8.6, 7.0
"""Estimated width of a letter at font sizes of 15 and 11 pixels, rounded up."""
_GAP, _SLOT, _LEVEL, _MARGIN, _BEND = 14, 8, 19, 18, 6
"""Pixels between words, arcs at one word, and levels of arcs; around the picture; radius of a bend."""
_KEY = (
    "above: the model's tree, dashed: not in the {0} tree, thin: punctuation, which does not count; below: the {0} tree"
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
    """A sentence to draw: its title, the model's parents (W,) and the gold tree; None draws the gold tree alone."""

    title: str
    parents: IntArray | None
    gold: Parse


@dataclass(frozen=True)
class _Arc:
    """An arc from a parent to a child; a root is its own parent. Level 1 is nearest to the words."""

    child: int
    parent: int
    level: int

    @property
    def ends(self) -> tuple[int, int]:
        return min(self.child, self.parent), max(self.child, self.parent)


def draw_svg(sentences: Sequence[TreeDrawing], heading: str, kind: str = "gold") -> str:
    """Draw sentences below each other.

    kind: the name of the trees that those of the model are compared with.
    """
    parts, key = list[str](), _KEY.format(kind)
    y, width = _MARGIN + 14.0, _MARGIN * 2 + _WORD * display_width(heading)
    parts.append(svg_text(_MARGIN, y, heading, "title"))
    parts.append(svg_text(_MARGIN, y + 18, key, "key"))
    width = max(width, 2 * _MARGIN + 0.9 * _WORD * display_width(key))
    y += 40
    for sentence in sentences:
        drawn = _Layout(sentence)
        parts += drawn.elements(y)
        y, width = y + drawn.height, max(width, drawn.width)
    return svg_document(parts, width, y, style=_STYLE)


def draw_parse(parse: Parse) -> str:
    """Draw one tree, above its words, with its relations."""
    drawn = _Layout(TreeDrawing("", None, parse))
    return svg_document(drawn.elements(0), drawn.width, drawn.height, style=_STYLE)


class _Layout:
    """The layout of one sentence.

    alone: whether there is only the gold tree, drawn above the words.
    centres: horizontal centre of each word.
    slots: (above the words?, child of the arc, word) -> horizontal offset from the word's centre where the arc ends.
    """

    def __init__(self, drawn: TreeDrawing) -> None:
        self.drawn = drawn
        self.words = drawn.gold.words
        gold = _arcs(drawn.gold.parents.tolist())
        self.alone = drawn.parents is None
        self.above, self.below = (gold, []) if drawn.parents is None else (_arcs(drawn.parents.tolist()), gold)
        self.slots = {
            (upper, *place): offset
            for upper, arcs in ((True, self.above), (False, self.below))
            for place, offset in _slots(arcs, len(self.words))
        }
        self.centres = self._centres()
        last = self.centres[-1] + _WORD * display_width(self.words[-1]) / 2 if self.words else 0.0
        self.width = max(last + _MARGIN * 2, 2 * _MARGIN + _WORD * display_width(drawn.title))
        tops = [max((arc.level for arc in arcs), default=0) * _LEVEL + 22 for arcs in (self.above, self.below)]
        self.baseline = 24 + tops[0]
        self.height = self.baseline + tops[1] + (0 if self.alone else 40)

    def _centres(self) -> list[float]:
        """Place words as close together as words, arcs and labels allow."""
        half = [_WORD * display_width(word) / 2 for word in self.words]
        for (*_, word), offset in self.slots.items():
            half[word] = max(half[word], offset + _SLOT / 2)
        centres: list[float] = []
        for word in range(len(self.words)):
            candidates = [centres[-1] + half[word - 1] + half[word] + _GAP] if word else [_MARGIN + half[0]]
            candidates += [centres[first] + room for first, room in self._distances(word)]
            centres.append(max(candidates))
        return centres

    def _distances(self, word: int) -> Iterator[tuple[int, float]]:
        """Yield the earlier words connected to a word, with the minimum distance that the arc and its label need."""
        for upper, arcs in ((True, self.above), (False, self.below)):
            for arc in arcs:
                first, last = arc.ends
                if first < word == last:
                    relation = self.drawn.gold.relations[arc.child] if upper == self.alone else ""
                    shift = self.slots[upper, arc.child, first] - self.slots[upper, arc.child, last]
                    yield first, shift + max(2 * _BEND + 2, _LABEL * display_width(relation) + 2 * _BEND)

    def elements(self, top: float) -> Iterator[str]:
        """Yield the SVG elements: arcs, then labels and words on top of them."""
        y = top + self.baseline
        if self.drawn.title:
            yield svg_text(_MARGIN, top + 8, self.drawn.title, "title")
        for arc in self.below:
            yield self._path(arc, y + 9, 1, "gold")
        for arc, style in zip(self.above, self._styles(), strict=True):
            yield self._path(arc, y - 18, -1, style)
        for arc in self.above if self.alone else self.below:
            # a label is on the inner side of its arc; the root's label is at the end of the line
            far, root = arc.level * _LEVEL, arc.child == arc.parent
            label = y - 18 - far + (-4 if root else 12) if self.alone else y + 9 + far + (13 if root else -4)
            yield svg_text(self._middle(arc), label, self.drawn.gold.relations[arc.child], "label")
        for centre, word in zip(self.centres, self.words, strict=True):
            yield svg_text(centre, y, word, "word")

    def _styles(self) -> list[str]:
        """Return the CSS class of each arc above the words: correct, wrong or not counted."""
        if self.alone:
            return ["gold"] * len(self.above)
        right, counts = self.drawn.parents == self.drawn.gold.parents, not_punctuation(self.drawn.gold)  # (W,) both
        return ["gold" if not counts[arc.child] else "right" if right[arc.child] else "wrong" for arc in self.above]

    def _middle(self, arc: _Arc) -> float:
        """Find the horizontal middle of an arc with a label."""
        return (self._end(arc, arc.child, self.alone) + self._end(arc, arc.parent, self.alone)) / 2

    def _end(self, arc: _Arc, word: int, upper: bool) -> float:
        return self.centres[word] + self.slots[upper, arc.child, word]

    def _path(self, arc: _Arc, y: float, up: int, style: str) -> str:
        """Draw an arc with an arrow at the child; a root's arc is a vertical line."""
        upper, far = up < 0, y + up * arc.level * _LEVEL
        x = self._end(arc, arc.child, upper)
        arrow = f"M{x - 3:.1f} {y + up * 6:.1f}L{x:.1f} {y:.1f}L{x + 3:.1f} {y + up * 6:.1f}"
        if arc.child == arc.parent:
            return f'<path class="{style}" d="M{x:.1f} {y:.1f}V{far:.1f}{arrow}"/>'
        start = self._end(arc, arc.parent, upper)
        bend, turn = (_BEND if x > start else -_BEND), far - up * _BEND
        line = f"M{start:.1f} {y:.1f}V{turn:.1f}Q{start:.1f} {far:.1f} {start + bend:.1f} {far:.1f}"
        line += f"H{x - bend:.1f}Q{x:.1f} {far:.1f} {x:.1f} {turn:.1f}V{y:.1f}"
        return f'<path class="{style}" d="{line}{arrow}"/>'


def _arcs(parents: Sequence[int]) -> list[_Arc]:
    """Assign levels: short arcs inside long ones, the root's arc outermost."""
    arcs: list[_Arc] = []
    pairs = [(child, parent) for child, parent in enumerate(parents) if child != parent]
    for child, parent in sorted(pairs, key=lambda pair: abs(pair[0] - pair[1])):
        first, last = min(child, parent), max(child, parent)
        inside = [arc.level for arc in arcs if arc.ends[0] < last and first < arc.ends[1]]
        arcs.append(_Arc(child, parent, max(inside, default=0) + 1))
    highest = max((arc.level for arc in arcs), default=0)
    roots = [_Arc(word, word, highest + 1) for word, parent in enumerate(parents) if word == parent]
    return arcs + roots


def _slots(arcs: Sequence[_Arc], words: int) -> Iterator[tuple[tuple[int, int], float]]:
    """Order the ends of arcs at each word so that arcs do not cross: ((child of the arc, word), offset)."""
    for word in range(words):
        from_left = [arc for arc in arcs if arc.ends[0] < word == arc.ends[1]]
        from_right = [arc for arc in arcs if arc.ends[0] == word < arc.ends[1]]
        roots = [arc for arc in arcs if arc.ends == (word, word)]
        ordered = [
            *sorted(from_left, key=lambda arc: arc.level),
            *roots,
            *sorted(from_right, key=lambda arc: -arc.level),
        ]
        for place, arc in enumerate(ordered):
            yield (arc.child, word), (place - (len(ordered) - 1) / 2) * _SLOT
