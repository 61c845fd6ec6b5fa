"""Two alignments as a picture: the source between two translations, and lines as strong as attention.

The line of each translated word to the source word that it looks at most is drawn through, weaker ones are dashed.
Colours are Okabe and Ito's (2008), lighter ones where the reader's screen is dark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synmt.analysis.svg import svg_document, svg_text
from synmt.analysis.trees.drawing import columns
from synmt.arrays import DoubleArray

LEAST = 0.1
"""Weaker weights are not drawn, unless they are the strongest of the word."""

_LETTER, _GAP, _MARGIN, _ROW = 8.6, 16, 14, 84
"""Pixels of a letter, between words, around everything, and from one row of words to the next."""

_STYLE = """
text { font-family: system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; font-size: 15px; fill: #222222;
  text-anchor: middle }
.key { font-size: 12px; text-anchor: start; fill: #555555 }
.differs { font-weight: bold; text-decoration: underline }
.ground { fill: #ffffff }
line { stroke: #777777; stroke-dasharray: 4 3 }
.best { stroke: #0072b2; stroke-dasharray: none }
@media (prefers-color-scheme: dark) {
  text { fill: #eeeeee }
  .key { fill: #bbbbbb }
  .ground { fill: #16181c }
  line { stroke: #999999 }
  .best { stroke: #56b4e9 }
}
"""


@dataclass(frozen=True, eq=False)
class Aligned:
    """A translation beside its source.

    name: of the system.
    words: V words.
    differs: V, whether the other translation lacks the word.
    weights: (V, W) how strongly each word looks at each source word.
    """

    name: str
    words: Sequence[str]
    differs: Sequence[bool]
    weights: DoubleArray


def draw_alignments(source: Sequence[str], above: Aligned | None, below: Aligned | None) -> str:
    """Draw a source between two translations, or beside one."""
    rows = [one.words if one else [] for one in (above, below)]
    width = max(sum(map(_width, words)) + _GAP * (len(words) - 1) for words in (source, *rows)) + 2 * _MARGIN
    middle = 42 + _ROW if above else 28
    height = middle + (_ROW + 32 if below else 14)
    there = _centres(source, width)
    parts = [*_system(above, there, width, middle, up=True), *_system(below, there, width, middle, up=False)]
    parts += [svg_text(x, middle, word, "") for x, word in zip(there, source, strict=True)]
    return svg_document(parts, width, height, style=_STYLE)


def _system(one: Aligned | None, there: Sequence[float], width: float, middle: float, *, up: bool) -> Iterator[str]:
    if one is None:
        return
    here = _centres(one.words, width)
    baseline = middle - _ROW if up else middle + _ROW
    near, far = (middle - 16, baseline + 6) if up else (middle + 6, baseline - 16)
    for x, weights in zip(here, one.weights, strict=True):
        best = int(weights.argmax()) if len(weights) else -1
        for word, weight in enumerate(weights.tolist()):
            if weight >= LEAST or (word == best and weight > 0):
                kind = ' class="best"' if word == best else ""
                strength = f'stroke-width="{0.7 + 3 * weight:.1f}" stroke-opacity="{0.3 + 0.7 * min(weight, 1):.2f}"'
                yield f'<line{kind} x1="{there[word]:.1f}" y1="{near:.1f}" x2="{x:.1f}" y2="{far:.1f}" {strength}/>'
    for x, word, differs in zip(here, one.words, one.differs, strict=True):
        yield svg_text(x, baseline, word, "differs" if differs else "")
    yield svg_text(_MARGIN, baseline - 24 if up else baseline + 22, one.name, "key")


def _centres(words: Sequence[str], width: float) -> list[float]:
    """Spread words over the width: the middle of each."""
    widths = [_width(word) for word in words]
    free = width - 2 * _MARGIN - sum(widths)
    gap = free / (len(words) - 1) if len(words) > 1 else 0.0
    centres, x = [], float(_MARGIN)
    for wide in widths:
        centres.append(x + wide / 2)
        x += wide + gap
    return centres


def _width(word: str) -> float:
    return _LETTER * columns(word)
