"""Trees as a picture: the arcs of the model above the words, those of gold below, with their relations; or one tree.

What is right is drawn through and wrong ones are dashed, so that no one has to tell colours apart; the colours are
Okabe and Ito's (2008), lighter ones where the reader's screen is dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synmt.analysis.svg import svg_document, svg_text
from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.trees.drawing import columns
from synmt.arrays import IntArray
from synmt.syntax.parse import Parse

_WORD, _LABEL = 8.6, 7.0
"""Pixels that a letter takes at sizes of 15 and of 11 pixels, a little more than most."""
_GAP, _SLOT, _LEVEL, _MARGIN, _BEND = 14, 8, 19, 18, 6
"""Pixels between words, between arcs that meet at a word, between arcs above each other, around everything, and of a
bend."""
_KEY = "above: the model's tree, dashed where gold differs, thin at punctuation, which does not count; below: gold"

# without variables, which few programs but browsers know
_STYLE = """
text { font-family: system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; font-size: 15px; fill: #222222 }
.title { font-weight: bold }
.title, .key { font-size: 13px }
.word, .label { text-anchor: middle }
.label { font-size: 11px; fill: #555555 }
.ground { fill: #ffffff }
path { fill: none }
.gold { stroke: #777777; stroke-width: 1.2px }
.right { stroke: #0072b2; stroke-width: 2px }
.wrong { stroke: #d55e00; stroke-width: 1.6px; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #eeeeee }
  .label { fill: #bbbbbb }
  .ground { fill: #16181c }
  .gold { stroke: #999999 }
  .right { stroke: #56b4e9 }
  .wrong { stroke: #e69f00 }
}
"""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sentence to draw: what stands above it, the model's tree (W,) and the gold one; None draws that one alone."""

    title: str
    parents: IntArray | None
    gold: Parse


@dataclass(frozen=True)
class _Arc:
    """An arc from a parent to a child, and its height: 1 is nearest to the words; a root is its own parent."""

    child: int
    parent: int
    level: int

    @property
    def ends(self) -> tuple[int, int]:
        return min(self.child, self.parent), max(self.child, self.parent)


def draw_svg(sentences: Sequence[Drawn], heading: str) -> str:
    """Draw sentences one below the other."""
    parts: list[str] = []
    y, width = _MARGIN + 14.0, _MARGIN * 2 + _WORD * columns(heading)
    parts.append(svg_text(_MARGIN, y, heading, "title"))
    parts.append(svg_text(_MARGIN, y + 18, _KEY, "key"))
    width = max(width, 2 * _MARGIN + 0.9 * _WORD * columns(_KEY))
    y += 40
    for sentence in sentences:
        drawn = _Sentence(sentence)
        parts += drawn.elements(y)
        y, width = y + drawn.height, max(width, drawn.width)
    return svg_document(parts, width, y, style=_STYLE)


def draw_parse(parse: Parse) -> str:
    """Draw one tree, above its words, with its relations."""
    drawn = _Sentence(Drawn("", None, parse))
    return svg_document(drawn.elements(0), drawn.width, drawn.height, style=_STYLE)


class _Sentence:
    """Where everything of one sentence stands.

    alone: whether the gold tree is the only one, and stands above.
    centres: the middle of each word.
    slots: where an arc leaves a word, beside its middle, by whether it stands above, the arc's child, and the word.
    """

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.words = drawn.gold.words
        gold = _arcs(drawn.gold.parents.tolist())
        self.alone = drawn.parents is None
        self.above, self.below = (gold, []) if drawn.parents is None else (_arcs(drawn.parents.tolist()), gold)
        self.slots = {
            (upper, *place): beside
            for upper, arcs in ((True, self.above), (False, self.below))
            for place, beside in _slots(arcs, len(self.words))
        }
        self.centres = self._centres()
        last = self.centres[-1] + _WORD * columns(self.words[-1]) / 2 if self.words else 0.0
        self.width = max(last + _MARGIN * 2, 2 * _MARGIN + _WORD * columns(drawn.title))
        tops = [max((arc.level for arc in arcs), default=0) * _LEVEL + 22 for arcs in (self.above, self.below)]
        self.baseline = 24 + tops[0]
        self.height = self.baseline + tops[1] + (0 if self.alone else 40)

    def _centres(self) -> list[float]:
        """Put words as near to each other as words, arcs and labels allow."""
        half = [_WORD * columns(word) / 2 for word in self.words]
        for (*_, word), beside in self.slots.items():
            half[word] = max(half[word], beside + _SLOT / 2)
        centres: list[float] = []
        for word in range(len(self.words)):
            least = [centres[-1] + half[word - 1] + half[word] + _GAP] if word else [_MARGIN + half[0]]
            least += [centres[first] + room for first, room in self._rooms(word)]
            centres.append(max(least))
        return centres

    def _rooms(self, word: int) -> Iterator[tuple[int, float]]:
        """Yield the words before a word that arcs join it with, and how far from it they have to stay."""
        for upper, arcs in ((True, self.above), (False, self.below)):
            for arc in arcs:
                first, last = arc.ends
                if first < word == last:
                    relation = self.drawn.gold.relations[arc.child] if upper == self.alone else ""
                    shift = self.slots[upper, arc.child, first] - self.slots[upper, arc.child, last]
                    yield first, shift + max(2 * _BEND + 2, _LABEL * columns(relation) + 2 * _BEND)

    def elements(self, top: float) -> Iterator[str]:
        """Yield the elements, arcs before labels and words."""
        y = top + self.baseline
        if self.drawn.title:
            yield svg_text(_MARGIN, top + 8, self.drawn.title, "title")
        for arc in self.below:
            yield self._path(arc, y + 9, 1, "gold")
        for arc, style in zip(self.above, self._styles(), strict=True):
            yield self._path(arc, y - 18, -1, style)
        for arc in self.above if self.alone else self.below:
            # a label stands between its own line and the one nearer to the words; that of the root at the line's end
            far, root = arc.level * _LEVEL, arc.child == arc.parent
            label = y - 18 - far + (-4 if root else 12) if self.alone else y + 9 + far + (13 if root else -4)
            yield svg_text(self._middle(arc), label, self.drawn.gold.relations[arc.child], "label")
        for centre, word in zip(self.centres, self.words, strict=True):
            yield svg_text(centre, y, word, "word")

    def _styles(self) -> list[str]:
        """Say of each arc above whether it is the gold one."""
        if self.alone:
            return ["gold"] * len(self.above)
        right, counts = self.drawn.parents == self.drawn.gold.parents, not_punctuation(self.drawn.gold)  # (W,) both
        return ["gold" if not counts[arc.child] else "right" if right[arc.child] else "wrong" for arc in self.above]

    def _middle(self, arc: _Arc) -> float:
        """Find the middle of an arc that has a label."""
        return (self._end(arc, arc.child, self.alone) + self._end(arc, arc.parent, self.alone)) / 2

    def _end(self, arc: _Arc, word: int, upper: bool) -> float:
        return self.centres[word] + self.slots[upper, arc.child, word]

    def _path(self, arc: _Arc, y: float, up: int, style: str) -> str:
        """Draw an arc with an arrow at the child; that of a root comes from far."""
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
    """Put short arcs below long ones; that of the root stands highest."""
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
    """Place the ends of arcs side by side at each word so that they do not cross: ((child, word), beside)."""
    for word in range(words):
        leftwards = [arc for arc in arcs if arc.ends[0] < word == arc.ends[1]]
        rightwards = [arc for arc in arcs if arc.ends[0] == word < arc.ends[1]]
        roots = [arc for arc in arcs if arc.ends == (word, word)]
        ordered = [
            *sorted(leftwards, key=lambda arc: arc.level),
            *roots,
            *sorted(rightwards, key=lambda arc: -arc.level),
        ]
        for place, arc in enumerate(ordered):
            yield (arc.child, word), (place - (len(ordered) - 1) / 2) * _SLOT
