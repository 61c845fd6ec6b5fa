"""A figure of groups of test sentences: differences with their intervals above, shares of the data below.

After figure 2 of Bugliarello & Okazaki (2020). Without a baseline it shows scores instead of differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.groups.scores import FEW_SENTENCES, GroupRow, GroupTable
from synmt.analysis.plots import INK, ONE
from synmt.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_TABLES = 8
"""The highest number of tables in one figure, one below the other."""


def check_table_count(names: Sequence[str], path: Path) -> None:
    """Raise UsageError for more tables than a figure has room for."""
    if len(names) > MOST_TABLES:
        raise UsageError(
            f"a plot shows at most {MOST_TABLES} tables, not {len(names)} ({', '.join(names)})",
            where=str(path),
            do="Choose fewer, for example with `--by-label --label NAME`",
        )


def draw_groups(tables: Sequence[GroupTable], *, system: str, baseline: str | None = None, suffix: str = "") -> Figure:
    """Draw two panels for each table, one table below the other.

    suffix: conditions to add to the axis labels, because a figure is seen without the heading of its table.
    """
    from matplotlib.figure import Figure

    width = max(_width(len(table.rows)) for table in tables)
    figure = Figure(figsize=(width, 4.2 * len(tables)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, hspace=0.05)[:, 0]
    for part, table in zip(parts, tables, strict=True):
        own = _width(len(table.rows))
        # next to a table with many groups, a few groups would be spread far apart
        place = part.subfigures(1, 2, width_ratios=(own, width - own))[0] if own < width else part
        _draw_table(place, table, own, f"{system} − {baseline}" if baseline else system, suffix)
    return figure


def _width(groups: int) -> float:
    return max(4.8, (0.75 if groups <= 12 else 0.55) * groups + 1.0)


def _draw_table(part: SubFigure, table: GroupTable, width: float, name: str, suffix: str) -> None:
    rows, grouping = table.rows, table.grouping
    above, below = part.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    if table.total.baseline:
        _draw_differences(above, table)
    else:
        _draw_scores(above, table)
    above.set_title(name, loc="left", fontsize=9)
    above.tick_params(axis="x", length=0, labelbottom=False)
    above.margins(y=0.2)
    _draw_shares(below, rows)
    # about eleven characters of 9 points fit into an inch
    slanted = max((len(row.group) + 2 for row in rows), default=0) * len(rows) > 11 * width
    below.set_xticks(
        range(len(rows)),
        [row.group for row in rows],
        rotation=30 if slanted else 0,
        ha="right" if slanted else "center",
    )
    by = grouping.by if grouping.exact else grouping.by[:1].upper() + grouping.by[1:]  # a label keeps its own name
    below.set_xlabel(f"{by} ({grouping.unit}{suffix})" if grouping.unit else by + suffix)
    below.set_xlim(-0.6, len(rows) - 0.4)
    part.align_ylabels([above, below])


def _draw_differences(axes: Axes, table: GroupTable) -> None:
    """Draw each difference, with its interval unless the group is small."""
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_ylabel(f"Δ {table.metric.title} (points{_direction(table)})")
    few = []
    for x, row in enumerate(table.rows):
        if row.difference is None:
            continue
        value, top = row.difference.score, row.difference.score
        if row.comparison:
            # the interval of the resamples may not contain the difference
            low, top = min(row.comparison.low, value), max(row.comparison.high, value)
            axes.errorbar([x], [value], [[value - low], [top - value]], color=ONE, elinewidth=1.2, capsize=3)
            axes.plot([x], [value], "o", color=ONE, markersize=5.5)
        else:
            few.append((x, value))
        _note(axes, x, top, f"{value:+.1f}")
    if few:
        places, values = [x for x, _ in few], [value for _, value in few]
        name = f"fewer than {FEW_SENTENCES} sentences"
        axes.plot(places, values, "o", color=ONE, markerfacecolor="white", markersize=5.5, label=name)
        axes.legend(frameon=False, loc="best")


def _draw_scores(axes: Axes, table: GroupTable) -> None:
    points = [(x, row.system.score) for x, row in enumerate(table.rows) if row.system]
    line = "-" if table.grouping.unit else "none"  # labels have no order
    places, scores = [x for x, _ in points], [score for _, score in points]
    axes.plot(places, scores, "o", linestyle=line, color=ONE, markersize=5.5, linewidth=1)
    for x, score in points:
        _note(axes, x, score, f"{score:.1f}")
    axes.set_ylabel(f"{table.metric.title} (points{_direction(table)})")


def _direction(table: GroupTable) -> str:
    return "" if table.metric.higher_is_better else ", lower is better"


def _note(axes: Axes, x: int, y: float, text: str) -> None:
    from matplotlib.patheffects import withStroke

    note = axes.annotate(text.replace("-", "−"), (x, y), xytext=(0, 5), textcoords="offset points", ha="center")
    # a white outline keeps the numbers legible on top of a line
    note.set(color=INK, fontsize=8.5, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def _draw_shares(axes: Axes, rows: list[GroupRow]) -> None:
    bars = axes.bar(range(len(rows)), [100 * row.share for row in rows], width=0.62, color="#8C8C8C")
    axes.bar_label(bars, [f"{row.count:,}" for row in rows], padding=2, fontsize=8, color=INK)
    axes.set_ylabel("Sentences (%)")
    axes.set_ylim(0, 118 * max((row.share for row in rows), default=0) or 100)
