"""Heat maps: the agreement of each head with parents, and the matrices of one sentence.

In the maps of a sentence, rows are the pieces that attend, columns the pieces attended to. All
panels share one colour scale.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.attention.heads import KINDS, AttentionMap
from synmt.analysis.heads import Head
from synmt.arrays import DoubleArray
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = -10.0
"""Lower end of the scale: with this bias, a weight is already divided by 22,000."""

_UNITS = {
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
    "parents": "probability, 0 to 1",
}
_CELL, _LARGEST = 0.2, 28.0
"""Inches: the size of a cell, and that of all panels side by side, for which cells shrink."""
_MOST_IN_A_ROW = 8
"""Maximum number of panels side by side."""


def draw_agreement(heads: Sequence[Head], shares: Sequence[float], *, system: str) -> Figure:
    """Draw the agreement of all heads in percent, by layer."""
    layers, numbers = max(head.layer for head in heads), max(head.number for head in heads)
    values = np.full((layers, numbers), np.nan)  # (layers, heads)
    for head, share in zip(heads, shares, strict=True):
        values[head.layer - 1, head.number - 1] = 100 * share
    rows = [str(layer) for layer in range(1, layers + 1)]
    columns = [str(number) for number in range(1, numbers + 1)]
    names = "Layer", "Head", "Highest weight on the parent, %"
    return draw_heat_maps(system, {"": values}, (rows, columns), names)


def draw_maps(heat_map: AttentionMap, *, system: str) -> Figure:
    """Draw the matrix of each head, several heads in a grid of layers and heads."""
    kind, heads = KINDS[heat_map.kind], heat_map.panels
    return draw_heat_maps(
        f"{system}: {kind.name}, sentence {heat_map.sentence}, {kind.lines}",
        {head.title: panel for head, panel in heads.items()},
        (list(map(without_breaks, heat_map.rows)), list(map(without_breaks, heat_map.columns))),
        (kind.rows, kind.columns, _UNITS.get(heat_map.content, "weight, 0 to 1")),
        across=min(_MOST_IN_A_ROW, max(Counter(head.layer for head in heads).values())),
    )


def draw_heat_maps(
    heading: str,
    panels: Mapping[str, DoubleArray],
    labels: tuple[Sequence[str], Sequence[str]],
    names: tuple[str, str, str],
    *,
    across: int = 1,
) -> Figure:
    """Draw matrices with one colour scale.

    panels: a matrix for each title, in rows of `across` panels.
    labels: of the rows and of the columns.
    names: of the rows, of the columns, and of the values.
    """
    from matplotlib.figure import Figure

    rows, columns = labels
    down, low = math.ceil(len(panels) / across), max(LEAST, min(map(np.nanmin, panels.values())))
    high = max(map(np.nanmax, panels.values()))
    cell = min(_CELL, _LARGEST / (across * len(columns)), _LARGEST / (down * len(rows)))
    width, height = 3 + across * len(columns) * cell, 2 + down * len(rows) * cell
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes, (title, panel) in zip(grid.flat, panels.items(), strict=False):
        image = axes.imshow(panel, cmap="Blues", vmin=low, vmax=high, aspect="auto")
        axes.grid(visible=False)
        axes.set_title(title, fontsize=8)
        axes.set_yticks(range(len(rows)), rows, fontsize=min(8, 50 * cell))
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=min(8, 50 * cell))
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    figure.suptitle(heading, fontsize=9, wrap=True)
    figure.supylabel(names[0], fontsize=8)
    figure.supxlabel(names[1], fontsize=8)
    figure.colorbar(image, ax=figure.axes, label=names[2])
    return figure
