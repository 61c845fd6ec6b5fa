"""The panels of several systems: a line of scores for each system, and its differences from the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.groups.group_score import GroupScore
from synmt.analysis.groups.scores import FEW_SENTENCES, GroupRow, GroupTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BETWEEN, _SPREAD = 0.14, 0.64
"""Distance between two marks of a group, and the most that all of them take, of the distance between two groups."""

_HIGH = 2.6
"""Inches: height of a panel."""
_LINE = 0.19
"""Inches: height of a line of the legend."""


def draw_scores(axes: Axes, table: GroupTable) -> None:
    """Draw the scores of each system, with a band or a bar of one standard deviation over its seeds."""
    # labels and relations have no order, so no line joins them
    ordered = bool(table.grouping.unit)
    for index, offset in enumerate(_offsets(len(table.total.results))):
        points = [(x, row.results[index]) for x, row in enumerate(table.rows) if row.results]
        places = np.array([x + (0 if ordered else offset) for x, _ in points])
        scores = np.array([one.score for _, one in points])
        deviations = np.array([one.deviation for _, one in points])
        style = series_style(index)
        if not ordered:
            style["linestyle"] = "none"
        axes.plot(places, scores, markersize=4.5, linewidth=1.2, **style)
        if ordered and deviations.any():
            axes.fill_between(
                places, scores - deviations, scores + deviations, color=style["color"], alpha=0.2, linewidth=0
            )
        elif deviations.any():
            axes.errorbar(places, scores, deviations, fmt="none", ecolor=style["color"], elinewidth=1)
    seeded = any(one.deviation for row in table.rows for one in row.results or ())
    spread = f"\n{'band' if ordered else 'bar'}: standard deviation of seeds" * seeded
    axes.set_ylabel(f"{table.metric.title} (points{direction(table)}){spread}")


def draw_differences(axes: Axes, table: GroupTable, baseline: str) -> None:
    """Draw each system's differences from the baseline, with their intervals; small groups have a hollow mark only."""
    axes.axhline(0, color=INK, linewidth=0.8)
    for index, offset in enumerate(_offsets(len(table.total.results) - 1), start=1):
        style: dict[str, Any] = {**series_style(index), "linestyle": "none"}
        for x, row, result in _compared(table, index):
            assert result.gain is not None
            value, found = result.gain.score, result.gain.comparison
            if found:
                # the interval of the resamples may not contain the difference
                ends = [max(value - found.low, 0)], [max(found.high - value, 0)]
                axes.errorbar([x + offset], [value], ends, ecolor=style["color"], fmt="none", elinewidth=1.1, capsize=2)
            filling = "white" if row.few else style["color"]
            axes.plot([x + offset], [value], markersize=4.5, markerfacecolor=filling, **style)
    few = f"\nhollow: fewer than {FEW_SENTENCES} sentences" * any(row.few and row.count for row in table.rows)
    compared = fit_text(f"from {baseline}", _HIGH) + "\n95 % interval" + few
    axes.set_ylabel(f"Δ {table.metric.title} (points{direction(table)})\n{compared}")


def _compared(table: GroupTable, index: int) -> Iterator[tuple[int, GroupRow, GroupScore]]:
    for x, row in enumerate(table.rows):
        if row.results:
            yield x, row, row.results[index]


def _offsets(systems: int) -> list[float]:
    """Place the marks of a group side by side."""
    half = min(_BETWEEN * (systems - 1), _SPREAD) / 2
    return np.linspace(-half, half, systems).tolist()


def names_height(names: Sequence[str], width: float) -> float:
    """Tell how high the lines of names above a panel are, in inches, apart from the first two."""
    labels, columns = fit_names(names, width - 0.8)
    # a legend fills its columns one after the other
    rows = -(-len(labels) // columns)
    lines = sum(max(label.count("\n") + 1 for label in labels[row::rows]) for row in range(rows))
    return _LINE * max(0, lines - 2)


def add_names(axes: Axes, names: Sequence[str], width: float) -> None:
    """Name the systems above a panel, in as many columns as fit into its width in inches."""
    from matplotlib.lines import Line2D

    labels, columns = fit_names(names, width - 0.8)
    handles: list[Any] = [
        Line2D([], [], markersize=4.5, label=name, **series_style(index)) for index, name in enumerate(labels)
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False)


def direction(table: GroupTable) -> str:
    """Say that lower scores are better, as part of an axis label, where they are."""
    return "" if table.metric.higher_is_better else ", lower is better"
