"""A figure of the agreement of each head with parents, and the colour scale of all heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.reporting.figures import GRID, INK, OTHER, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from synmt.analysis.attention.summary import AttentionSummary, HeadRow
    from synmt.arrays import DoubleArray

COLOURS = (
    *("#fcfcfc", "#d9e7fa", "#b3d2f8", "#8cbef4", "#61aaeb", "#3c95da"),
    *("#2580c1", "#186ca4", "#0a5889", "#06456d", "#033352"),
)
"""From the lowest to the highest value: one hue whose lightness (CIELAB) falls from 99 to 20 in equal steps, so that
equal differences look equal, also to colour-blind readers and in greyscale."""

_CELL = (0.46, 0.3)
"""Width and height of a cell, in inches."""


def colour_map() -> Colormap:
    """Make a colour map; missing values are grey."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("synmt", COLOURS).with_extremes(bad=GRID)


def draw_agreement(summary: AttentionSummary) -> Figure:
    """Draw the agreement of all heads in percent, by layer; heads of variants are framed."""
    from matplotlib.figure import Figure

    layers, heads = map(max, zip(*(row.head.place for row in summary.rows), strict=True))
    values = np.full((layers, heads), np.nan)  # (layers, heads)
    for row in summary.rows:
        assert row.parent is not None
        layer, head = row.head.place
        values[layer - 1, head - 1] = 100 * row.parent.value
    highest = max(float(np.nanmax(values)), 1.0)
    width = max(3.6, heads * _CELL[0] + 1.6)
    title = fit_text(summary.context.system, width - 0.6)
    # one layer needs room beside it for the name of the colours, in two lines
    height = max(1.9, layers * _CELL[1] + 1.1) + 0.15 * title.count("\n")
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    drawn = axes.imshow(values, cmap=colour_map(), vmin=0, vmax=highest, aspect="auto", interpolation="nearest")
    frame(axes)
    axes.set_xticks(range(heads), [str(number) for number in range(1, heads + 1)])
    axes.set_yticks(range(layers), [str(number) for number in range(1, layers + 1)])
    axes.set_xlabel("Head")
    axes.set_ylabel("Layer")
    write_values(axes, values, (0.0, highest), "{:.0f}")
    for row in summary.rows:
        _frame_owned(axes, row)
    figure.colorbar(drawn, ax=axes, label="Highest weight\non the parent, %")
    axes.set_title(title, x=0, loc="left", fontsize=9)
    return figure


def _frame_owned(axes: Axes, row: HeadRow) -> None:
    from matplotlib.patches import Rectangle

    if row.head.variant:
        layer, head = row.head.place
        corner = (head - 1.46, layer - 1.44)
        axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=OTHER, linewidth=1.8))


def frame(axes: Axes) -> None:
    """Put a thin line around a heat map, and no grid into it."""
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(length=0)


def write_values(axes: Axes, values: DoubleArray, ends: tuple[float, float], form: str) -> None:
    """Write the values (rows, columns) into the cells, dark on light or light on dark; `ends` of the colour scale."""
    low, high = ends
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            dark = (value - low) / (high - low) > 0.5
            options: dict[str, Any] = {"color": "white" if dark else INK, "fontsize": 7}
            axes.text(column, row, form.format(value), ha="center", va="center", **options)
