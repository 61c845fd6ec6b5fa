"""A figure of word accuracy: a row for each group, a mark with its interval for each system, and the differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from synmt.analysis.groups.results import ResultTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style
from synmt.reporting.values import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_ROW, _SYSTEM, _FRAME, _LOWEST = 0.2, 0.11, 0.9, 1.2
"""Inches for a group, for each of its systems, for titles and axes, and for a panel of few groups."""


def draw_words(tables: Sequence[ResultTable]) -> Figure:
    """Draw each table, one below the other: accuracy of all systems, and differences from the first one."""
    from matplotlib.figure import Figure

    names = tables[0].names
    width = 8.2 if len(names) > 1 else 5.2
    labels, columns = fit_names(names, width - 0.4)
    legend = 0.17 * sum(label.count("\n") + 1 for label in labels) / columns
    rows = [max(_LOWEST, (_ROW + _SYSTEM * len(names)) * len(table.rows)) for table in tables]
    heights = [_FRAME + legend + one for one in rows]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
    for part, table, high in zip(parts, tables, rows, strict=True):
        panel = _draw_table(part, table, high)
        handles, _ = panel.get_legend_handles_labels()
        part.legend(handles, labels, frameon=False, loc="outside upper center", ncols=columns)
    return figure


def figure_caption(table: ResultTable) -> str:
    """Describe the panels of a figure."""
    right = f"; on the right, differences from {table.names[0]}" * table.compared
    return f"{_measure(table)} by {table.by}, with 95 % intervals{right}."


def _draw_table(part: SubFigure, table: ResultTable, high: float) -> Axes:
    """Draw a table into a part that is `high` inches high, and return the panel whose marks a legend names."""
    panels = part.subplots(1, 1 + table.compared, sharey=True, squeeze=False)[0]
    count = len(table.names)
    for number, name in enumerate(table.names):
        found = [(row + 0.7 * ((number + 0.5) / count - 0.5), one) for row, _, one in table.results(name)]
        _draw_marks(panels[0], number, name, ((place, one.value, one.interval) for place, one in found))
        if number:
            compared = [(place, one.comparison) for place, one in found if one.comparison]
            differences = ((place, one.difference, Interval(one.low, one.high)) for place, one in compared)
            _draw_marks(panels[1], number, name, differences)
    for panel in panels:
        panel.grid(visible=False, axis="y")
        panel.grid(visible=True, axis="x")
    unit = f" ({table.unit})" if table.unit else ""
    panels[0].set_ylabel(fit_text(f"{table.by[:1].upper()}{table.by[1:]}{unit}", high))
    panels[0].set_yticks(range(len(table.rows)), [row.group for row in table.rows])
    panels[0].set_ylim(len(table.rows) - 0.4, -0.6)
    panels[0].set_xlabel(f"{_measure(table)} (%)\n95 % interval")
    if table.compared:
        panels[1].axvline(0, color=INK, linewidth=0.8)
        panels[1].set_xlabel(fit_text(f"Difference from {table.names[0]} (points)", 3.4) + "\n95 % interval")
    return panels[0]


def _measure(table: ResultTable) -> str:
    title = table.measures[-1].title
    return title[:1].upper() + title[1:]


def _draw_marks(
    axes: Axes, number: int, name: str, values: Iterable[tuple[float, float | None, Interval | None]]
) -> None:
    """Draw the values of one system: place, value, and the interval where there is one."""
    style: dict[str, Any] = series_style(number) | {"linestyle": "none"}
    known = [(place, value, ends) for place, value, ends in values if value is not None]
    places, xs = [place for place, _, _ in known], [value for _, value, _ in known]
    axes.plot(xs, places, markersize=4.5, label=name, **style)
    for place, _, ends in known:
        if ends:
            axes.plot([ends.low, ends.high], [place, place], "-", color=style["color"], linewidth=1.2)
