"""Trees as SVG: the model's arcs above the words, gold arcs with relations below; or a single tree.

Correct arcs are solid and wrong arcs dashed, so the picture can be read without colour. The colours
are those of Okabe and Ito (2008), lighter on a dark screen. The children on one side of a word hang
on one line, as in a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synmt.analysis.trees.attachment import not_punctuation
from synmt.analysis.trees.drawing import display_width, families
from synmt.arrays import IntArray
from synmt.reporting.svg import svg_document, svg_text
from synmt.syntax.parse import Parse

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
    return 2 + max((family.track for family in families(parents).values()), default=-1)


def _arcs(
    parents: Sequence[int], styles: Sequence[str], middles: Sequence[float], y: float, level: int
) -> Iterator[str]:
    """Yield an arc for each word, with an arrow at the word; a root's arc is a vertical line.

    y: of the arrows.
    level: from there to the first track; negative upwards.
    """
    tracks, tip = families(parents), level / 3
    for child, (parent, style) in enumerate(zip(parents, styles, strict=True)):
        end, left = middles[child], child < parent
        line = f"M{end:.1f} {y + level * _tracks(parents):.1f}"
        if child != parent:
            start = middles[parent] + (-_STEM if left else _STEM)
            far = y + level * (tracks[parent, left].track + 1)
            line = f"M{start:.1f} {y:.1f}V{far:.1f}H{end:.1f}"
        arrow = f"M{end - 3:.1f} {y + tip:.1f}L{end:.1f} {y:.1f}L{end + 3:.1f} {y + tip:.1f}"
        yield f'<path class="{style}" d="{line}V{y:.1f}{arrow}"/>'
