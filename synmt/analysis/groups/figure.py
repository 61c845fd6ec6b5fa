"""A figure of groups of sentences or words: results, differences with their intervals, and shares
of the data.

After figure 2 of Bugliarello & Okazaki (2020), which has differences and shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.reporting.figures import INK, series_style
from synmt.reporting.values import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Rows = Sequence[Mapping[str, Any]]
"""The rows of a table, as JSON has them."""

CAPTION = "Results, differences from the first system with 95 % intervals, and shares of the data."
"""What the panels show."""

_BETWEEN = 0.1
"""Distance between the marks of two systems, where that between two groups is 1."""

_LONGEST = 32
"""Maximum number of letters of a group's name."""


def draw_results(tables: Sequence[Table]) -> Figure:
    """Draw the panels of each table of `results_table`, one table below the other."""
    from matplotlib.figure import Figure

    width = max(5.0, *(0.4 * len(table.rows) for table in tables))
    figure = Figure(figsize=(min(width, 30), 6 * len(tables)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False)
    for part, table in zip(parts[:, 0], tables, strict=True):
        _draw_table(part, table)
    return figure


def _draw_table(part: SubFigure, table: Table) -> None:
    group, _, share, *_ = table.columns
    rows = table.as_json()["rows"]
    names = list(dict.fromkeys(row["system"] for row in rows))
    # the last group is all of the data
    rows = rows[: -len(names)]
    panels = part.subplots(3 if len(names) > 1 else 2, 1, sharex=True)
    for index, name in enumerate(names):
        style = series_style(index) | {"linestyle": "none", "label": name}
        own, offset = rows[index :: len(names)], index * _BETWEEN
        _draw_marks(panels[0], own, "value", "value_interval", offset, style)
        if index:
            _draw_marks(panels[1], own, "difference", "interval", offset, style)
    part.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left")
    panels[0].set_ylabel("".join(one.title for one in table.columns if one.name == "value"))
    if len(names) > 1:
        panels[1].axhline(0, color=INK, linewidth=0.8)
        panels[1].set_ylabel("difference")
    groups = rows[:: len(names)]
    shares = [100 * row[share.name] for row in groups]
    panels[-1].bar(range(len(groups)), shares, color="#8C8C8C")
    panels[-1].set_ylabel(f"{share.title} (%)")
    panels[-1].set_xlabel(group.title)
    labels = [row["group"][:_LONGEST] for row in groups]
    panels[-1].set_xticks(range(len(groups)), labels, rotation=30, ha="right")


def _draw_marks(
    axes: Axes, rows: Rows, value: str, interval: str, offset: float, style: Mapping[str, Any]
) -> None:
    """Draw values with their intervals, as far as there are any."""
    values = np.array([row.get(value) for row in rows], dtype=float)  # (G,)
    none = [np.nan, np.nan]
    ends = np.array([row.get(interval) or none for row in rows], dtype=float).reshape(-1, 2)
    # the interval of the resamples may not contain the value
    bars = np.clip([values - ends[:, 0], ends[:, 1] - values], 0, None)  # (2, G)
    axes.errorbar(np.arange(len(rows)) + offset, values, bars, capsize=2, **style)
