"""Heat maps: the agreement of each head with parents, and the matrices of one sentence.

In the maps of a sentence, rows are the pieces that attend, columns the pieces attended to. All
panels share one colour scale, and their cells are squares.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.attention.heads import KINDS, AttentionMap
from synmt.analysis.heads import Head
from synmt.analysis.trees.drawing import display_width
from synmt.arrays import DoubleArray
from synmt.data.vocabulary import SPECIALS, is_punctuation
from synmt.reporting.figures import GRID, INK, OTHER, fit_text
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_BIAS = -10.0
"""Lower end of the scale of biases: here a weight is already divided by 22,000."""

_UNITS = {
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
    "parents": "probability, 0 to 1",
}
_LARGEST = 28.0
"""Inches of all panels side by side; the cells of long sentences shrink."""
_MOST_IN_A_ROW = 8
"""Maximum number of panels side by side."""
_NUMBERED = 0.35
"""Inches of a cell that has room for its value."""
_SHORT, _LONGEST = 2, 16
"""Maximum number of letters of labels that are written from left to right, and of all labels."""
_LETTER, _POINTS = 0.62, 8.0  # width of a letter in font sizes; points of the heading


@dataclass(frozen=True)
class _Sheet:
    """What a figure shows.

    heading: its lines, which are broken where they are too long.
    panels: a matrix for each title, in rows of `across` panels.
    rows, columns: the labels of each matrix.
    names: of the rows, of the columns, and of the values.
    ends: of the colour scale.
    digits: of values that are written into cells.
    """

    heading: Sequence[str]
    panels: Mapping[str, DoubleArray]
    rows: Sequence[str]
    columns: Sequence[str]
    names: tuple[str, str, str]
    ends: tuple[float, float]
    across: int = 1
    digits: int = 2

    @property
    def down(self) -> int:
        """Number of rows of panels."""
        return math.ceil(len(self.panels) / self.across)

    @property
    def cell(self) -> float:
        """Width and height of a cell, in inches; panels of a grid have room for their titles."""
        columns = len(self.columns)
        cell = max(0.16, min(0.36, 5.8 / columns))
        if len(self.panels) > 1:
            cell = max(0.085, 1.8 / columns)
        return min(
            cell, _LARGEST / (self.across * columns), _LARGEST / (self.down * len(self.rows))
        )

    @property
    def font(self) -> float:
        """Size of the labels, in points."""
        return min(_POINTS, 60 * self.cell)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, with room for labels and for the colour bar."""
        letter = _LETTER * self.font / 72
        left = letter * max(map(display_width, self.rows))
        below = letter * max(map(display_width, self.columns))
        width = 1.5 + left + self.across * (len(self.columns) * self.cell + 0.15)
        height = 0.85 + below + self.down * (len(self.rows) * self.cell + 0.3)
        return max(width, 3.4), max(height, 2.4)


def draw_agreement(heads: Sequence[Head], shares: Sequence[float], *, system: str) -> Figure:
    """Draw the agreement of all heads in percent, by layer; heads of variants are framed."""
    from matplotlib.patches import Rectangle

    layers, numbers = max(head.layer for head in heads), max(head.number for head in heads)
    values = np.full((layers, numbers), np.nan)  # (layers, heads)
    for head, share in zip(heads, shares, strict=True):
        values[head.layer - 1, head.number - 1] = 100 * share
    sheet = _Sheet(
        heading=[system],
        panels={"": values},
        rows=[str(layer + 1) for layer in range(layers)],
        columns=[str(number + 1) for number in range(numbers)],
        names=("Layer", "Head", "Highest weight\non the parent, %"),
        ends=(0.0, max(100 * max(shares), 1.0)),
        digits=0,
    )
    figure = _draw(sheet)
    for head in heads:
        if head.variant:
            corner = (head.number - 1.46, head.layer - 1.44)
            frame = Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=OTHER, linewidth=1.8)
            figure.axes[0].add_patch(frame)
    return figure


def draw_maps(heat_map: AttentionMap, *, system: str) -> Figure:
    """Draw the matrix of each head, several heads in a grid of layers and heads."""
    heads, kind = list(heat_map.panels), KINDS[heat_map.kind]
    edited = f"{heat_map.content} of " if heat_map.content in ("factor", "bias") else ""
    only = [heads[0].name, heads[0].about] if len(heads) == 1 and not heads[0].is_lstm else []
    whose = ", ".join(filter(None, [system, *only]))
    sheet = _Sheet(
        heading=[
            f"{whose}: {edited}{kind.name}",
            f"sentence {heat_map.sentence}, {kind.lines}",
        ],
        panels={head.title: panel for head, panel in heat_map.panels.items()},
        rows=spell(heat_map.rows),
        columns=spell(heat_map.columns),
        names=(kind.rows, kind.columns, _UNITS.get(heat_map.content, "weight, 0 to 1")),
        ends=limits(heat_map),
        across=min(_MOST_IN_A_ROW, max(Counter(head.layer for head in heads).values())),
    )
    return _draw(sheet)


def _draw(sheet: _Sheet) -> Figure:
    from matplotlib.figure import Figure

    width, height = sheet.size
    heading = "\n".join(fit_text(line, width - 0.2, size=_POINTS) for line in sheet.heading)
    height += 0.15 * heading.count("\n")
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.add_gridspec(sheet.down, sheet.across)
    upright = max(map(len, sheet.columns)) <= _SHORT
    for place, (title, panel) in enumerate(sheet.panels.items()):
        axes = figure.add_subplot(grid[place])
        _draw_panel(axes, panel, sheet)
        # labels are at the left and lower edges of the grid
        left = [] if place % sheet.across else sheet.rows
        below = [] if place + sheet.across < len(sheet.panels) else sheet.columns
        axes.set_yticks(range(len(left)), left, fontsize=sheet.font)
        turn = 0 if upright else 90
        axes.set_xticks(range(len(below)), below, rotation=turn, fontsize=sheet.font)
        if len(sheet.panels) > 1:
            axes.set_title(title, fontsize=7, pad=2.5)
    figure.suptitle(heading, x=0.1 / width, ha="left", fontsize=_POINTS, linespacing=1.35)
    rows, columns, values = sheet.names
    figure.supylabel(rows, fontsize=_POINTS)
    figure.supxlabel(columns, fontsize=_POINTS)
    # no higher than the panels, unless they are tiny
    shrink = min(1.0, 2.5 / height)
    image = figure.axes[0].images[0]
    extend = "min" if sheet.ends[0] == LEAST_BIAS else "neither"
    bar = figure.colorbar(image, ax=figure.axes, shrink=shrink, anchor=(0, 1), extend=extend)
    bar.set_label(values, fontsize=_POINTS)
    bar.ax.tick_params(labelsize=7)
    return figure


def _draw_panel(axes: Axes, panel: DoubleArray, sheet: _Sheet) -> None:
    """Draw a matrix with a thin line around it, and no grid in it; missing values are grey.

    Large cells have their values, dark on light or light on dark.
    """
    low, high = sheet.ends
    axes.imshow(panel, cmap="Blues", vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    axes.set_facecolor(GRID)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(length=0, pad=1.5)
    if len(sheet.panels) == 1 and sheet.cell > _NUMBERED:
        for (row, column), value in np.ndenumerate(panel):
            if not np.isnan(value):
                colour = "white" if (value - low) / (high - low) > 0.6 else INK
                text = f"{value:.{sheet.digits}f}"
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)


def limits(heat_map: AttentionMap) -> tuple[float, float]:
    """Find the ends of the colour scale that all panels share."""
    values = np.stack(list(heat_map.panels.values()))  # (S, Tq, Tk)
    low, high = float(values.min()), float(values.max())
    low = max(low, LEAST_BIAS) if heat_map.content == "bias" else min(low, 0.0)
    return low, high if high > low else low + 1.0


def spell(pieces: Sequence[str]) -> list[str]:
    """Spell pieces for people: without the ▁ at the start of a word, with a dot for a piece inside
    a word.

    Languages without spaces, where few pieces start with ▁, keep their pieces as they are.
    """
    spaced = 2 * sum(piece.startswith("▁") for piece in pieces) >= len(pieces) - 2
    labels = []
    for piece in pieces:
        if spaced and piece.startswith("▁"):
            piece = piece[1:] or piece
        elif spaced and not (is_punctuation(piece) or piece in SPECIALS):
            piece = f"·{piece}"
        label = without_breaks(piece)
        labels.append(label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…")
    return labels
