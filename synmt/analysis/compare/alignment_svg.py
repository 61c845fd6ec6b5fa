"""Word alignments as SVG: the source between two translations, with a line for each attention weight.

The line to the source word with the highest weight is solid, the others are dashed; thicker lines have higher weights.
The colours are those of Okabe and Ito (2008), lighter on a dark screen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from synmt.analysis.trees.drawing import display_width
from synmt.arrays import DoubleArray
from synmt.reporting.svg import svg_document, svg_text

MIN_WEIGHT = 0.1
"""Lower weights are not drawn, unless they are the highest of the word."""

_LETTER, _GAP, _MARGIN, _ROW = 8.6, 16, 14, 84
"""Pixels: width of a letter, space between words, margin, distance between rows of words."""

_STYLE = """
text { text-anchor: middle }
.key { font-size: 12px; text-anchor: start; fill: #555555 }
.differs { font-weight: bold; text-decoration: underline }
line { stroke: #777777; stroke-dasharray: 4 3 }
.best { stroke: #0072b2; stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  .key { fill: #bbbbbb }
  line { stroke: #999999 }
  .best { stroke: #56b4e9 }
}
"""


@dataclass(frozen=True, eq=False)
class AlignedTranslation:
    """A translation with its alignment to the source.

    name: name of the system.
    words: V words.
    differs: for each of the V words, whether the other translation does not have it.
    weights: (V, W) attention of each word to each source word.
    """

    name: str
    words: Sequence[str]
    differs: Sequence[bool]
    weights: DoubleArray


def draw_alignments(source: Sequence[str], above: AlignedTranslation | None, below: AlignedTranslation | None) -> str:
    """Draw a source between two translations, or next to a single one."""
    rows = [one.words if one else [] for one in (above, below)]
    width = max(sum(map(_width, words)) + _GAP * (len(words) - 1) for words in (source, *rows)) + 2 * _MARGIN
    middle = 42 + _ROW if above else 28
    height = middle + (_ROW + 32 if below else 14)
    places = _centres(source, width)
    parts = [
        part for one, down in ((above, -1), (below, 1)) if one for part in _system(one, places, width, middle, down)
    ]
    parts += [svg_text(x, middle, word) for x, word in zip(places, source, strict=True)]
    return svg_document(parts, width, height, style=_STYLE)


def _system(one: AlignedTranslation, source: Sequence[float], width: float, middle: float, down: int) -> Iterator[str]:
    """Draw a translation above the source, with `down` -1, or below it, with 1."""
    if one is None:
        return
    baseline = middle + down * _ROW
    near, far = (middle + 6, baseline - 16) if down > 0 else (middle - 16, baseline + 6)
    centres = _centres(one.words, width)
    for x, weights in zip(centres, one.weights.tolist(), strict=True):
        best = max(weights, default=0.0)
        for place, weight in zip(source, weights, strict=True):
            if weight >= MIN_WEIGHT or weight == best > 0:
                kind = ' class="best"' if weight == best else ""
                strength = f'stroke-width="{0.7 + 3 * weight:.1f}" stroke-opacity="{0.3 + 0.7 * min(weight, 1):.2f}"'
                ends = f'x1="{place:.1f}" y1="{near:.1f}" x2="{x:.1f}" y2="{far:.1f}"'
                yield f"<line{kind} {ends} {strength}/>"
    for x, word, differs in zip(centres, one.words, one.differs, strict=True):
        yield svg_text(x, baseline, word, "differs" if differs else "")
    yield svg_text(_MARGIN, baseline + (22 if down > 0 else -24), one.name, "key")


def _centres(words: Sequence[str], width: float) -> list[float]:
    """Spread words over the width, and return the centre of each."""
    widths = [_width(word) for word in words]
    gap = (width - 2 * _MARGIN - sum(widths)) / max(len(words) - 1, 1)
    ends = accumulate(wide + gap for wide in widths)
    return [_MARGIN + end - gap - wide / 2 for end, wide in zip(ends, widths, strict=True)]


def _width(word: str) -> float:
    return _LETTER * display_width(word)
