"""A figure of word accuracy: a row for each group, a mark with its interval for each system, and the differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from synmt.analysis.words.rendering import shown_rows
from synmt.analysis.words.table import WordTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_ROW, _SYSTEM, _FRAME, _LOWEST = 0.2, 0.11, 0.9, 1.2
"""Inches for a group, for each of its systems, for titles and axes, and for a panel of few groups."""


def draw_words(tables: Sequence[WordTable], names: Sequence[str]) -> Figure:
    """Draw each table, one below the other: accuracy of all systems, and differences from the first one."""
    from matplotlib.figure import Figure

    width = 8.2 if len(names) > 1 else 5.2
    labels, columns = fit_names(names, width - 0.4)
    legend = 0.17 * sum(label.count("\n") + 1 for label in labels) / columns
    rows = [max(_LOWEST, (_ROW + _SYSTEM * len(names)) * len(shown_rows(table))) for table in tables]
    heights = [_FRAME + legend + one for one in rows]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, table, high in zip(parts, tables, rows, strict=True):
        panel = _draw_table(part, table, names, high)
        handles, _ = panel.get_legend_handles_labels()
        part.legend(handles, labels, frameon=False, loc="outside upper center", ncols=columns)
    return figure


def _draw_table(part: SubFigure, table: WordTable, names: Sequence[str], high: float) -> Axes:
    """Draw a table into a part that is `high` inches high, and return the panel whose marks a legend names."""
    rows = shown_rows(table)
    panels = part.subplots(1, 2 if len(names) > 1 else 1, sharey=True, squeeze=False)[0]
    for number, name in enumerate(names):
        places = [place + 0.7 * ((number + 0.5) / len(names) - 0.5) for place in range(len(rows))]
        found = [row.systems[number][table.shown] for row in rows]
        values = [(place, one.value, one.low, one.high) for place, one in zip(places, found, strict=True)]
        _draw_marks(panels[0], values, number, name)
        if number:
            compared = [(place, one.comparison) for place, one in zip(places, found, strict=True) if one.comparison]
            _draw_marks(
                panels[1], [(place, one.difference, one.low, one.high) for place, one in compared], number, name
            )
    for panel in panels:
        panel.grid(visible=False, axis="y")
        panel.grid(visible=True, axis="x")
    unit = f" ({table.unit})" if table.unit else ""
    panels[0].set_ylabel(fit_text(f"{table.by[:1].upper()}{table.by[1:]}{unit}", high))
    panels[0].set_yticks(range(len(rows)), [row.group for row in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    panels[0].set_xlabel(f"{table.shown[0].upper()}{table.shown[1:]} (%)\n95 % interval")
    if len(names) > 1:
        panels[1].axvline(0, color=INK, linewidth=0.8)
        panels[1].set_xlabel(fit_text(f"Difference from {names[0]} (points)", 3.4) + "\n95 % interval")
    return panels[0]


def _draw_marks(
    axes: Axes, values: Sequence[tuple[float, float | None, float | None, float | None]], number: int, name: str
) -> None:
    """Draw the values of one system: place, value, and the ends of the interval where there is one."""
    style: dict[str, Any] = series_style(number) | {"linestyle": "none"}
    known = [(value, place) for place, value, _, _ in values if value is not None]
    axes.plot([x for x, _ in known], [y for _, y in known], markersize=4.5, label=name, **style)
    for place, _, low, high in values:
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], "-", color=style["color"], linewidth=1.2)
