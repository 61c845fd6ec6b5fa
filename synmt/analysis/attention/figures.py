"""Heat maps: the agreement of each head with parents, and the matrices of one sentence.

In the maps of a sentence, rows are the pieces that attend, columns the pieces attended to. All panels share one colour
scale, and their cells are squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from synmt.analysis.attention.heads import KINDS, Head
from synmt.analysis.attention.maps import AttentionMap
from synmt.analysis.trees.drawing import display_width
from synmt.arrays import DoubleArray
from synmt.data.vocabulary import SPECIALS, is_punctuation
from synmt.errors import UsageError
from synmt.reporting.figures import GRID, INK, OTHER, fit_text
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

COLOURS = (
    *("#fcfcfc", "#d9e7fa", "#b3d2f8", "#8cbef4", "#61aaeb", "#3c95da"),
    *("#2580c1", "#186ca4", "#0a5889", "#06456d", "#033352"),
)
"""From the lowest to the highest value: one hue whose lightness (CIELAB) falls from 99 to 20 in equal steps, so that
equal differences look equal, also to colour-blind readers and in greyscale."""

LEAST_BIAS = -10.0
"""Lower end of the scale of biases: here a weight is already divided by 22,000."""

_UNITS = {
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
    "parents": "probability, 0 to 1",
}
_WIDEST_GRID, _WIDEST_HEAD = 30.0, 18.0
"""Inches of the largest figure whose pieces can be read, of several heads and of one."""
_MOST_IN_A_ROW, _HEADS_IN_A_ROW = 8, 4
"""Maximum number of heads of a single layer side by side, and heads in a row where there are more."""
_MOST_NUMBERED = 12
"""Maximum number of pieces for which the cells of a single head show their values."""
_LONGEST = 16
"""Maximum number of letters of a label."""
_LETTER, _POINTS = 0.62, 8.0  # width of a letter in font sizes; points of the heading


def draw_agreement(heads: Sequence[Head], shares: Sequence[float], *, system: str) -> Figure:
    """Draw the agreement of all heads in percent, by layer; heads of variants are framed."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    layers, numbers = max(head.layer for head in heads), max(head.number for head in heads)
    values = np.full((layers, numbers), np.nan)  # (layers, heads)
    for head, share in zip(heads, shares, strict=True):
        values[head.layer - 1, head.number - 1] = 100 * share
    highest = max(float(np.nanmax(values)), 1.0)
    width = max(3.6, numbers * 0.46 + 1.6)
    title = fit_text(system, width - 0.6)
    # one layer needs room beside it for the name of the colours, in two lines
    height = max(1.9, layers * 0.3 + 1.1) + 0.15 * title.count("\n")
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    drawn = _draw(axes, values, 0.0, highest)
    axes.set_xticks(range(numbers), map(str, range(1, numbers + 1)))
    axes.set_yticks(range(layers), map(str, range(1, layers + 1)))
    axes.set(xlabel="Head", ylabel="Layer")
    _write_values(axes, values, (0.0, highest), "{:.0f}")
    for head in (head for head in heads if head.variant):
        corner = (head.number - 1.46, head.layer - 1.44)
        axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=OTHER, linewidth=1.8))
    figure.colorbar(drawn, ax=axes, label="Highest weight\non the parent, %")
    axes.set_title(title, x=0, loc="left", fontsize=9)
    return figure


def _draw(axes: Axes, values: DoubleArray, low: float, high: float) -> AxesImage:
    """Draw a heat map with a thin line around it, and no grid in it; missing values are grey."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("synmt", COLOURS).with_extremes(bad=GRID)
    drawn = axes.imshow(values, cmap=colours, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, color=GRID, linewidth=0.6)
    axes.tick_params(length=0)
    return drawn


def _write_values(axes: Axes, values: DoubleArray, ends: tuple[float, float], form: str) -> None:
    """Write the values (rows, columns) into the cells, dark on light or light on dark; `ends` of the colour scale."""
    low, high = ends
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "white" if (value - low) / (high - low) > 0.5 else INK
            axes.text(column, row, form.format(value), ha="center", va="center", color=colour, fontsize=7)


def draw_maps(heat_map: AttentionMap, *, system: str) -> Figure:
    """Draw the matrix of each head, several heads in a grid of layers and heads."""
    from matplotlib.figure import Figure

    width, height = _size(heat_map)
    heading = "\n".join(fit_text(part, width - 0.2, size=_POINTS) for part in _heading(heat_map, system))
    height += 0.15 * heading.count("\n")
    figure = Figure(figsize=(width, height), layout="constrained")
    places, (low, high) = grid_places(heat_map), limits(heat_map)
    grid, font = figure.add_gridspec(*_grid(places)), _font(heat_map)
    for head, panel in heat_map.panels.items():
        row, column = places[head]
        axes = figure.add_subplot(grid[row, column])
        _draw(axes, panel, low, high)
        # pieces are written where no panel is to the left or below
        left = [] if (row, column - 1) in places.values() else spell(heat_map.rows)
        below = [] if (row + 1, column) in places.values() else spell(heat_map.columns)
        axes.set_yticks(range(len(left)), left, fontsize=font)
        axes.set_xticks(range(len(below)), below, rotation=90, fontsize=font)
        axes.tick_params(pad=1.5)
        if len(places) > 1:
            axes.set_title(head.title, fontsize=7, pad=2.5)
        elif max(panel.shape) <= _MOST_NUMBERED:
            _write_values(axes, panel, (low, high), "{:.2f}")
    figure.suptitle(heading, x=0.1 / width, ha="left", fontsize=_POINTS, linespacing=1.35)
    figure.supxlabel(KINDS[heat_map.kind].columns, fontsize=_POINTS)
    figure.supylabel(KINDS[heat_map.kind].rows, fontsize=_POINTS)
    cut = heat_map.content == "bias" and min(panel.min() for panel in heat_map.panels.values()) < LEAST_BIAS
    # no higher than the panels, unless they are tiny
    shrink, extend = min(1.0, 2.5 / height), "min" if cut else "neither"
    bar = figure.colorbar(figure.axes[0].images[0], ax=figure.axes, shrink=shrink, anchor=(0, 1), extend=extend)
    bar.set_label(_UNITS.get(heat_map.content, "weight, 0 to 1"), fontsize=_POINTS)
    bar.ax.tick_params(labelsize=7)
    return figure


def limits(heat_map: AttentionMap) -> tuple[float, float]:
    """Find the ends of the colour scale that all panels share."""
    low = min(float(panel.min()) for panel in heat_map.panels.values())
    high = max(float(panel.max()) for panel in heat_map.panels.values())
    low = max(low, LEAST_BIAS) if heat_map.content == "bias" else min(low, 0.0)
    return low, high if high > low else low + 1.0


def _heading(heat_map: AttentionMap, system: str) -> tuple[str, str]:
    first, kind = next(iter(heat_map.panels)), KINDS[heat_map.kind]
    only = (
        "" if first.is_lstm or len(heat_map.panels) > 1 else f", {first.name}" + f", {first.about}" * bool(first.about)
    )
    edited = f"{heat_map.content} of " if heat_map.content in ("factor", "bias") else ""
    return f"{system}{only}: {edited}{kind.name}", f"sentence {heat_map.sentence}, {kind.lines}"


def grid_places(heat_map: AttentionMap) -> dict[Head, tuple[int, int]]:
    """Choose the row and column of each panel: a row for each layer, several for the many heads of a single layer."""
    heads = list(heat_map.panels)
    layers, numbers = sorted({head.layer for head in heads}), sorted({head.number for head in heads})
    if len(layers) == 1 and len(heads) > _MOST_IN_A_ROW:
        return {head: divmod(place, _HEADS_IN_A_ROW) for place, head in enumerate(heads)}
    if not layers[-1]:
        # annotations have neither layers nor numbers
        return {head: (0, place) for place, head in enumerate(heads)}
    return {head: (layers.index(head.layer), numbers.index(head.number)) for head in heads}


def _grid(places: dict[Head, tuple[int, int]]) -> tuple[int, int]:
    """Count the rows and columns of a grid."""
    return max(row for row, _ in places.values()) + 1, max(column for _, column in places.values()) + 1


def _cell(heat_map: AttentionMap) -> float:
    """Choose the width and height of a cell, in inches; panels of a grid have room for their titles."""
    columns = len(heat_map.columns)
    return max(0.085, 1.8 / columns) if len(heat_map.panels) > 1 else max(0.16, min(0.36, 4.3 / columns))


def _font(heat_map: AttentionMap) -> float:
    """Choose the size of the labels, in points."""
    return min(8.0, 60 * _cell(heat_map))


def _size(heat_map: AttentionMap) -> tuple[float, float]:
    """Estimate the width and height of the figure in inches, with room for labels and for the colour bar."""
    cell, (rows, columns) = _cell(heat_map), _grid(grid_places(heat_map))
    letter = _LETTER * _font(heat_map) / 72
    left, below = (max(map(display_width, spell(one))) for one in (heat_map.rows, heat_map.columns))
    width = 1.5 + left * letter + columns * (len(heat_map.columns) * cell + 0.15)
    height = 0.85 + below * letter + rows * (len(heat_map.rows) * cell + 0.3)
    return max(width, 3.4), max(height, 2.4)


def is_legible(heat_map: AttentionMap) -> bool:
    """Tell whether a figure of reasonable size is large enough to read the pieces."""
    return max(_size(heat_map)) <= (_WIDEST_GRID if len(heat_map.panels) > 1 else _WIDEST_HEAD)


def check_legible(heat_map: AttentionMap) -> None:
    """Refuse a figure whose pieces would be too small to read."""
    if not is_legible(heat_map):
        pieces, panels = max(len(heat_map.rows), len(heat_map.columns)), len(heat_map.panels)
        raise UsageError(
            f"{pieces} pieces are too many for " + (f"{panels} heat maps side by side" if panels > 1 else "a heat map"),
            where=f"--sentence {heat_map.sentence}",
            do="Choose a shorter sentence" + ", or one head with `--head LAYER.HEAD`" * (panels > 1),
        )


def spell(pieces: Sequence[str]) -> list[str]:
    """Spell pieces for people: without the ▁ at the start of a word, with a dot for a piece inside a word.

    Languages without spaces, where few pieces start with ▁, keep their pieces as they are.
    """
    spaced = 2 * sum(piece.startswith("▁") for piece in pieces) >= len(pieces) - 2
    return [_label(piece, spaced=spaced) for piece in pieces]


def _label(piece: str, *, spaced: bool) -> str:
    if spaced and piece.startswith("▁"):
        piece = piece[1:] or piece
    elif spaced and not (is_punctuation(piece) or piece in SPECIALS):
        piece = f"·{piece}"
    label = without_breaks(piece)
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"
