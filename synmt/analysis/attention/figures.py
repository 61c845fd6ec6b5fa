"""Heat maps of one sentence: rows are the pieces that attend, columns the pieces attended to. All
panels share one colour scale.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.attention.heads import KINDS, AttentionMap
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = -10.0
"""Lower end of the scale: with this bias, a weight is already divided by 22,000."""

_UNITS = {
    "weights": "weight, 0 to 1",
    "cross": "weight, 0 to 1",
    "parents": "probability of a parent; on the diagonal: of the root",
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
}
_CELL, _LARGEST = 0.2, 28.0
"""Inches: the size of a cell, and that of all panels side by side, for which cells shrink."""
_MOST_IN_A_ROW = 8
"""Maximum number of panels side by side."""


def draw_maps(heat_map: AttentionMap, *, system: str) -> Figure:
    """Draw the matrix of each head, several heads in a grid of layers and heads."""
    from matplotlib.figure import Figure

    kind, panels = KINDS[heat_map.kind], heat_map.panels
    rows, columns = (
        [without_breaks(piece) for piece in pieces] for pieces in (heat_map.rows, heat_map.columns)
    )
    across = min(_MOST_IN_A_ROW, max(Counter(head.layer for head in panels).values()))
    down = math.ceil(len(panels) / across)
    values = np.stack(list(panels.values()))  # (S, Tq, Tk)
    low, high = max(LEAST, values.min()), values.max()
    cell = min(_CELL, _LARGEST / (across * len(columns)), _LARGEST / (down * len(rows)))
    size = 3 + across * len(columns) * cell, 2 + down * len(rows) * cell
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes, (head, panel) in zip(grid.flat, panels.items(), strict=False):
        axes.imshow(panel, cmap="Blues", vmin=low, vmax=high, aspect="auto")
        axes.grid(visible=False)
        axes.set_title(head.title, fontsize=8)
        axes.set_yticks(range(len(rows)), rows, fontsize=min(8, 50 * cell))
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=min(8, 50 * cell))
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    title = f"{system}: {kind.name}, sentence {heat_map.sentence}, {kind.lines}"
    figure.suptitle(title, fontsize=9, wrap=True)
    figure.supylabel("Piece that attends", fontsize=8)
    figure.supxlabel("Piece attended to", fontsize=8)
    figure.colorbar(grid[0, 0].images[0], ax=figure.axes, label=_UNITS[heat_map.content])
    return figure
