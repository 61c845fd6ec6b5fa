"""A box plot of sentence scores as SVG: a box for each system (Tukey, 1977).

A box has the middle half of the scores, with a line at the median and a diamond at the mean. Whiskers end at the last
score within 1.5 widths of the box; scores beyond them are circles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10

import numpy as np

from synmt.analysis.trees.drawing import display_width
from synmt.arrays import DoubleArray
from synmt.reporting.svg import svg_document, svg_text

_PLOT, _ROW, _HALF, _LETTER, _MARGIN = 520, 34, 10, 8.6, 14
"""Pixels: width of the plot, height of a row, half the height of a box, width of a letter, margin."""

_STYLE = """
text { font-size: 14px }
.name { text-anchor: end }
.tick { text-anchor: middle; font-size: 12px; fill: #555555 }
.grid { stroke: #dddddd }
.line { stroke: #333333 }
.median { stroke: #333333; stroke-width: 2 }
.box { fill: #d6e6f2; stroke: #333333 }
.mean { fill: #0072b2 }
.far { fill: none; stroke: #8c8c8c }
@media (prefers-color-scheme: dark) {
  .tick { fill: #bbbbbb }
  .grid { stroke: #3a3f45 }
  .line, .median { stroke: #dddddd }
  .box { fill: #1c3a56; stroke: #dddddd }
  .mean { fill: #8fc6ff }
}
"""


def draw_boxes(systems: Sequence[tuple[str, DoubleArray]], title: str) -> str:
    """Draw a box for each system, given its name and the scores of its sentences, (N,).

    title: of the axis.
    """
    ticks = _ticks(min(scores.min() for _, scores in systems), max(scores.max() for _, scores in systems))
    left = _MARGIN + _LETTER * max(display_width(name) for name, _ in systems) + 10
    low, high = ticks[0], ticks[-1]

    def place(score: float) -> float:
        return left + _PLOT * (score - low) / (high - low)

    bottom = _MARGIN + _ROW * len(systems)
    parts = [_line("grid", (place(one), _MARGIN), (place(one), bottom)) for one in ticks]
    parts += [svg_text(place(one), bottom + 18, f"{one:g}", "tick") for one in ticks]
    parts.append(svg_text(left + _PLOT / 2, bottom + 40, title, "tick"))
    for number, (name, scores) in enumerate(systems):
        y = _MARGIN + _ROW * (number + 0.5)
        parts.append(svg_text(left - 10, y + 5, name, "name"))
        summary = box_of(scores)
        parts += _box([place(one) for one in summary], y)
        far = scores[(scores < summary[0]) | (scores > summary[4])]
        parts += [f'<circle class="far" cx="{place(one):.1f}" cy="{y:.1f}" r="1.8"/>' for one in far.tolist()]
        x = place(float(scores.mean()))
        parts.append(f'<path class="mean" d="M{x - 5:.1f} {y:.1f} l5 -5 l5 5 l-5 5 z"/>')
    return svg_document(parts, left + _PLOT + 2 * _MARGIN, bottom + 54, style=_STYLE)


def box_of(scores: DoubleArray) -> list[float]:
    """Find the ends of the whiskers and the quartiles: whisker, quartile, median, quartile, whisker."""
    quartiles = np.quantile(scores, (0.25, 0.5, 0.75))  # (3,)
    reach = 1.5 * (quartiles[2] - quartiles[0])
    inside = scores[(scores >= quartiles[0] - reach) & (scores <= quartiles[2] + reach)]
    return [float(inside.min()), *quartiles.tolist(), float(inside.max())]


def _box(places: Sequence[float], y: float) -> Iterator[str]:
    low, first, middle, third, high = places
    yield _line("line", (low, y), (first, y))
    yield _line("line", (third, y), (high, y))
    for end in (low, high):
        yield _line("line", (end, y - _HALF / 2), (end, y + _HALF / 2))
    size = f'width="{third - first:.1f}" height="{2 * _HALF}"'
    yield f'<rect class="box" x="{first:.1f}" y="{y - _HALF:.1f}" {size}/>'
    yield _line("median", (middle, y - _HALF), (middle, y + _HALF))


def _line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _ticks(lowest: float, highest: float) -> list[float]:
    """Choose about five to ten round numbers that enclose all scores."""
    size = max(highest - lowest, 1e-6) / 6
    power = 10.0 ** floor(log10(size))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= size)
    first, last = floor(lowest / step), ceil(highest / step)
    return [step * number for number in range(first, max(last, first + 1) + 1)]
