"""A figure of the groups of test sentences: scores with their differences, and the share of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.groups import Row, Table
from synmt.plots import GRID, INK, ONE, OTHER, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_groups_plot(table: Table, path: Path, *, system: str, baseline: str | None = None) -> None:
    """Draw a table and write it as the file's ending says."""
    save_figure(lambda: draw_groups(table, system=system, baseline=baseline), path)


def draw_groups(table: Table, *, system: str, baseline: str | None = None) -> Figure:
    """Draw two panels over the same groups: scores with their differences, and the share of data."""
    from matplotlib.figure import Figure

    rows = table.rows
    figure = Figure(figsize=(max(4.8, 0.75 * len(rows) + 1.0), 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    _draw_scores(above, table, system, baseline)
    _draw_shares(below, rows)
    # about eleven characters of 9 points stand in an inch
    slanted = max(len(row.group) + 2 for row in rows) * len(rows) > 11 * figure.get_figwidth()
    below.set_xticks(
        range(len(rows)),
        [row.group for row in rows],
        rotation=30 if slanted else 0,
        ha="right" if slanted else "center",
    )
    below.set_xlabel(f"{table.by.capitalize()} ({table.unit})" if table.unit else table.by)
    below.set_xlim(-0.6, len(rows) - 0.4)
    figure.align_ylabels()
    return figure


def _draw_scores(axes: Axes, table: Table, system: str, baseline: str | None) -> None:
    rows = [(x, row) for x, row in enumerate(table.rows) if row.system]
    places = [x for x, _ in rows]
    ours = [row.system.score for _, row in rows if row.system]
    theirs = [row.baseline.score for _, row in rows if row.baseline]
    line = "-" if table.unit else "none"  # labels have no order to follow
    if theirs:
        axes.vlines(places, theirs, ours, color=GRID, linewidth=5, zorder=1)
        axes.plot(places, theirs, "s", linestyle=line, color=OTHER, label=baseline, markersize=5, linewidth=1)
    axes.plot(places, ours, "o", linestyle=line, color=ONE, label=system, markersize=5.5, linewidth=1)
    for x, row in rows:
        _write_difference(axes, x, row)
    better = "" if table.metric.higher_is_better else ", lower is better"
    axes.set_ylabel(f"{table.metric.title} (points{better})")
    axes.margins(y=0.2)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    columns = 2 if len(system) + len(baseline or "") < 50 else 1
    axes.legend(frameon=False, ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)


def _write_difference(axes: Axes, x: int, row: Row) -> None:
    from matplotlib.patheffects import withStroke

    assert row.system
    top = max(row.system.score, row.baseline.score) if row.baseline else row.system.score
    text = f"{row.difference.score:+.1f}" if row.difference else f"{row.system.score:.1f}"
    note = axes.annotate(text.replace("-", "−"), (x, top), xytext=(0, 7), textcoords="offset points", ha="center")
    # the white rim keeps the figures legible where a line passes
    note.set(color=INK, fontsize=8.5, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def _draw_shares(axes: Axes, rows: list[Row]) -> None:
    bars = axes.bar(range(len(rows)), [100 * row.share for row in rows], width=0.62, color="#8C8C8C")
    axes.bar_label(bars, [f"{row.count:,}" for row in rows], padding=2, fontsize=8, color=INK)
    axes.set_ylabel("Sentences (%)")
    axes.set_ylim(0, 118 * max(row.share for row in rows))
