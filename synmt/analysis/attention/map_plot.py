"""Heat maps of one sentence: a grid of layers and heads, or a single large one.

Rows are the pieces that attend, columns the pieces attended to. All panels share one colour scale. The layout is in
inches: cells are squares of equal size, with space for the labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synmt.analysis.attention.agreement_plot import colour_map, frame, write_values
from synmt.analysis.trees.drawing import display_width
from synmt.data.vocabulary import SPECIALS, is_punctuation
from synmt.errors import UsageError
from synmt.reporting.figures import fit_text
from synmt.syntax.parse import without_breaks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from synmt.analysis.attention.heads import Head
    from synmt.analysis.attention.maps import AttentionMap

LEAST_BIAS = -10.0
"""Lower end of the scale of biases: here a weight is already divided by 22,000."""

_MOST_NUMBERED = 12
"""Maximum number of pieces for which the cells of a single head show their values."""

_UNITS = {
    "weights": "weight, 0 to 1",
    "cross": "weight, 0 to 1",
    "factor": "factor on the score",
    "bias": "bias added to the score, nats",
    "parents": "probability, 0 to 1",
}
_SMALLEST, _GAP, _EDGE, _TOP, _LINE, _BAR = 0.085, 0.3, 0.1, 0.32, 0.15, 1.1
"""Inches: smallest cell of a grid, space between panels, at the edge, at the top, of a line, for the colour bar."""
_LETTER, _TITLE = 0.62, 7.0  # width of a letter in font sizes, and font size of the titles of panels
_WIDEST_GRID, _WIDEST_HEAD = 30.0, 18.0
_MOST_IN_A_ROW, _HEADS_IN_A_ROW = 8, 4
"""Maximum number of heads of a single layer side by side, and heads in a row where there are more."""
_LONGEST = 16
"""Maximum number of letters of a label."""


@dataclass(frozen=True)
class _Sheet:
    """The layout of a figure, in inches; the heading says what it shows, and of which sentence."""

    heat_map: AttentionMap
    heading: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        return len(self.heat_map.panels) > 1

    @cached_property
    def places(self) -> dict[Head, tuple[int, int]]:
        """The column and row of each panel: a row for each layer, several for the many heads of a single layer."""
        heads = {one: (one.layer or 0, one.number or order) for order, one in enumerate(self.heat_map.panels)}
        layers, numbers = (sorted(set(some)) for some in zip(*heads.values(), strict=True))
        if len(layers) == 1 and len(heads) > _MOST_IN_A_ROW:
            return {head: (place % _HEADS_IN_A_ROW, place // _HEADS_IN_A_ROW) for place, head in enumerate(heads)}
        return {head: (numbers.index(number), layers.index(layer)) for head, (layer, number) in heads.items()}

    @cached_property
    def grid(self) -> tuple[int, int]:
        """The number of columns and of rows."""
        return max(column for column, _ in self.places.values()) + 1, max(row for _, row in self.places.values()) + 1

    def is_at_edge(self, head: Head) -> tuple[bool, bool]:
        """Tell whether no panel is to the left of this one, and whether none is below it."""
        column, row = self.places[head]
        others = self.places.values()
        return not any(x < column and y == row for x, y in others), not any(x == column and y > row for x, y in others)

    @cached_property
    def cell(self) -> float:
        columns = len(self.heat_map.columns)
        if self.several:
            # the panels of a short sentence are as wide as their titles, which would run into each other
            titles = _LETTER * _TITLE / 72 * max(len(head.title) for head in self.heat_map.panels)
            return max(_SMALLEST, min(0.25, 1.5 / columns), (titles - _GAP / 2) / columns)
        return 0.36 if max(columns, len(self.heat_map.rows)) <= _MOST_NUMBERED else 0.16

    @property
    def font(self) -> float:
        """Font size of the labels, in points."""
        return min(8.0, 60 * self.cell)

    @property
    def panel(self) -> tuple[float, float]:
        return len(self.heat_map.columns) * self.cell, len(self.heat_map.rows) * self.cell

    @property
    def left(self) -> float:
        return 0.4 + _longest(self.heat_map.rows) * self.font / 72

    @property
    def bottom(self) -> float:
        return 0.4 + _longest(self.heat_map.columns) * self.font / 72

    @property
    def width(self) -> float:
        columns = self.grid[0]
        return max(self.left + columns * self.panel[0] + (columns - 1) * _GAP / 2 + _BAR, 3.4)

    @cached_property
    def lines(self) -> str:
        return "\n".join(fit_text(part, self.width - 2 * _EDGE, size=8) for part in self.heading)

    @property
    def top(self) -> float:
        return _TOP + _LINE * (self.lines.count("\n") + 1)

    @property
    def size(self) -> tuple[float, float]:
        height = self.top + self.grid[1] * (self.panel[1] + _GAP) - _GAP + self.bottom
        return self.width, max(height, 2.4)

    def place(self, head: Head) -> tuple[float, float, float, float]:
        """Compute the left, bottom, width and height of a panel, as fractions of the figure."""
        (wide, high), (width, height) = self.panel, self.size
        column, row = self.places[head]
        x = self.left + column * (wide + _GAP / 2)
        y = height - self.top - high - row * (high + _GAP)
        return x / width, y / height, wide / width, high / height


def _longest(labels: list[str]) -> float:
    """Estimate the length of the longest label, in font sizes."""
    return _LETTER * max(map(display_width, spell(labels)))


def spell(pieces: list[str]) -> list[str]:
    """Spell pieces for people: without the ▁ at the start of a word, with a dot for a piece inside a word.

    Languages without spaces, where few pieces start with ▁, keep their pieces as they are.
    """
    if 2 * sum(piece.startswith("▁") for piece in pieces) < len(pieces) - 2:
        return [_short(piece) for piece in pieces]
    return [_short(piece[1:] or piece if piece.startswith("▁") else _inside_word(piece)) for piece in pieces]


def _inside_word(piece: str) -> str:
    return piece if is_punctuation(piece) or piece in SPECIALS else f"·{piece}"


def _short(label: str) -> str:
    label = without_breaks(label)
    return label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…"


def is_legible(heat_map: AttentionMap) -> bool:
    """Tell whether a figure of reasonable size is large enough to read the pieces."""
    sheet = _Sheet(heat_map)
    return max(sheet.size) <= (_WIDEST_GRID if sheet.several else _WIDEST_HEAD)


def check_legible(heat_map: AttentionMap) -> None:
    """Refuse a figure whose pieces would be too small to read."""
    if is_legible(heat_map):
        return
    pieces, panels = max(len(heat_map.rows), len(heat_map.columns)), len(heat_map.panels)
    several = panels > 1
    raise UsageError(
        f"{pieces} pieces are too many for " + (f"{panels} heat maps side by side" if several else "a heat map"),
        where=f"--sentence {heat_map.sentence}",
        do="Choose a shorter sentence" + ", or one head with `--head LAYER.HEAD`" * several,
    )


def draw_maps(heat_map: AttentionMap, *, system: str) -> Figure:
    """Draw the matrix of each head, several heads in a grid of layers and heads."""
    from matplotlib.figure import Figure

    sheet = _Sheet(heat_map, _heading(heat_map, system))
    figure = Figure(figsize=sheet.size)
    low, high = limits(heat_map)
    options: dict[str, Any] = {"cmap": colour_map(), "vmin": low, "vmax": high, "interpolation": "nearest"}
    drawn = None
    for head, panel in heat_map.panels.items():
        axes = figure.add_axes(sheet.place(head))
        drawn = axes.imshow(panel, aspect="auto", **options)
        frame(axes)
        _label(axes, sheet, head)
        if not sheet.several and sheet.cell > 0.3:
            write_values(axes, panel, (low, high), "{:.2f}")
    _describe(figure, sheet)
    _colour_bar(figure, sheet, drawn)
    return figure


def limits(heat_map: AttentionMap) -> tuple[float, float]:
    """Find the ends of the colour scale that all panels share."""
    low = min(float(panel.min()) for panel in heat_map.panels.values())
    high = max(float(panel.max()) for panel in heat_map.panels.values())
    low = max(low, LEAST_BIAS) if heat_map.content == "bias" else min(low, 0.0)
    return low, high if high > low else low + 1.0


def _label(axes: Axes, sheet: _Sheet, head: Head) -> None:
    """Label a panel, and the pieces at the left and lower edges of the grid."""
    heat_map = sheet.heat_map
    axes.set(xticks=[], yticks=[])
    leftmost, lowest = sheet.is_at_edge(head)
    if leftmost:
        axes.set_yticks(range(len(heat_map.rows)), spell(heat_map.rows), fontsize=sheet.font)
    if lowest:
        labels = spell(heat_map.columns)
        axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=sheet.font)
    axes.tick_params(pad=1.5)
    if sheet.several:
        axes.set_title(head.title, fontsize=_TITLE, pad=2.5)


def _heading(heat_map: AttentionMap, system: str) -> tuple[str, ...]:
    first = next(iter(heat_map.panels))
    only = f", {first.name}" + f", {first.about}" * bool(first.about)
    only = "" if first.is_lstm or len(heat_map.panels) > 1 else only
    edited = f"{heat_map.content} of " if heat_map.content in ("factor", "bias") else ""
    what = f"{system}{only}: {edited}{_names(heat_map)[0]}"
    return what, f"sentence {heat_map.sentence}, {heat_map.text}"


def _describe(figure: Figure, sheet: _Sheet) -> None:
    width, height = sheet.size
    _, rows, columns = _names(sheet.heat_map)
    figure.text(_EDGE / width, 1 - _EDGE / height, sheet.lines, fontsize=8, va="top", linespacing=1.35)
    middle = (sheet.left + (width - _BAR)) / 2
    figure.text(middle / width, 0.08 / height, columns, fontsize=8, ha="center", va="bottom")
    upright = (sheet.bottom + height - sheet.top) / 2
    figure.text(_EDGE / width, upright / height, rows, fontsize=8, va="center", rotation=90)


def _names(heat_map: AttentionMap) -> tuple[str, str, str]:
    """Name the figure, its rows and its columns."""
    if heat_map.kind == "parents":
        flat = all(head.annotations and head.annotations.flat for head in heat_map.panels)
        return "annotations of the source", "piece", "probable parent" + "; on the diagonal: the root" * (not flat)
    if heat_map.kind == "cross":
        return "attention to the source", "piece to be generated", "piece attended to"
    return f"self-attention of the {heat_map.kind}", "piece that attends", "piece attended to"


def _colour_bar(figure: Figure, sheet: _Sheet, drawn: Any) -> None:
    width, height = sheet.size
    tall = min(2.5, max(1.4, height - sheet.top - sheet.bottom))  # no higher than the panels, unless they are tiny
    axes = figure.add_axes(
        ((width - _BAR + 0.2) / width, (height - sheet.top - tall) / height, 0.12 / width, tall / height)
    )
    cut = sheet.heat_map.content == "bias" and min(panel.min() for panel in sheet.heat_map.panels.values()) < LEAST_BIAS
    bar = figure.colorbar(drawn, cax=axes, extend="min" if cut else "neither")
    bar.set_label(_UNITS[sheet.heat_map.content], fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=False)
