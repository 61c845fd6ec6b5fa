"""A figure of groups of test sentences: differences with their intervals above, shares of the data below.

After figure 2 of Bugliarello & Okazaki (2020). Without a baseline it shows scores instead of differences; of several
systems it shows both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from synmt.analysis.groups.scores import FEW_SENTENCES, GroupRow, GroupTable
from synmt.analysis.groups.systems_plot import add_names, direction, draw_differences, draw_scores, names_height
from synmt.errors import UsageError
from synmt.reporting.figures import INK, ONE, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_TABLES = 8
"""The highest number of tables in one figure, one below the other."""

_LONGEST = 32
"""Maximum number of letters of a group's name."""


def check_table_count(names: Sequence[str], path: Path) -> None:
    """Raise UsageError for more tables than a figure has room for."""
    if len(names) > MOST_TABLES:
        raise UsageError(
            f"a plot shows at most {MOST_TABLES} tables, not {len(names)} ({', '.join(names)})",
            where=str(path),
            do="Choose fewer, for example with `--by-label --label NAME`",
        )


def draw_groups(tables: Sequence[GroupTable], names: Sequence[str], *, suffix: str = "") -> Figure:
    """Draw the panels of each table, one table below the other.

    names: of the systems, the baseline first if there are several.
    suffix: conditions to add to the axis labels, because a figure is seen without the heading of its table.
    """
    from matplotlib.figure import Figure

    widths = [_width(table) for table in tables]
    heights = [_height(table, names) for table in tables]
    figure = Figure(figsize=(max(widths), sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, hspace=0.05, height_ratios=heights)[:, 0]
    for part, table, own in zip(parts, tables, widths, strict=True):
        # next to a table with many groups, a few groups would be spread far apart
        beside = max(widths) - own
        place = part.subfigures(1, 2, width_ratios=(own, beside))[0] if beside else part
        _draw_table(place, table, names, suffix)
    return figure


def _width(table: GroupTable) -> float:
    groups, systems = len(table.rows), len(table.total.results)
    each = max(0.75 if groups <= 12 else 0.55, 0.16 * systems if table.several else 0)
    return max(4.8, each * groups + 1.0)


def _height(table: GroupTable, names: Sequence[str]) -> float:
    panels = 6.6 if table.several and table.compared else 4.2
    return panels + (names_height(names, _width(table)) if table.several else 0)


def _draw_table(part: SubFigure, table: GroupTable, names: Sequence[str], suffix: str) -> None:
    """Draw scores or differences, or both of several systems, above the shares of the groups."""
    draws: list[Callable[[Axes, GroupTable], None]] = [_draw_differences if table.compared else _draw_scores]
    if table.several:
        draws = [draw_scores, *[partial(draw_differences, baseline=names[0])] * table.compared]
    *panels, below = part.subplots(len(draws) + 1, 1, sharex=True, height_ratios=[2.4] * len(draws) + [1])
    for axes, draw in zip(panels, draws, strict=True):
        draw(axes, table)
        axes.tick_params(axis="x", length=0, labelbottom=False)
        axes.margins(y=0.08 if table.several else 0.2)
    if table.several:
        add_names(panels[0], names, _width(table))
    else:
        panels[0].set_title(fit_text(" − ".join(reversed(names)), _width(table) - 0.8), loc="left", fontsize=9)
    _draw_shares(below, table.rows)
    _name_groups(below, table, suffix)
    part.align_ylabels([*panels, below])


def _name_groups(axes: Axes, table: GroupTable, suffix: str) -> None:
    rows, grouping = table.rows, table.grouping
    # a long value of a label, such as a sentence, would leave no room for the panels
    names = [row.group if len(row.group) <= _LONGEST else f"{row.group[: _LONGEST - 1]}…" for row in rows]
    # about eleven characters of 9 points fit into an inch
    slanted = max((len(name) + 2 for name in names), default=0) * len(rows) > 11 * _width(table)
    axes.set_xticks(range(len(rows)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center")
    by = grouping.by if grouping.exact else grouping.by[:1].upper() + grouping.by[1:]  # a label keeps its own name
    axes.set_xlabel(f"{by} ({grouping.unit}{suffix})" if grouping.unit else by + suffix)
    axes.set_xlim(-0.6, len(rows) - 0.4)


def _draw_differences(axes: Axes, table: GroupTable) -> None:
    """Draw each difference, with its interval unless the group is small."""
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_ylabel(f"Δ {table.metric.title} (points{direction(table)})\n95 % interval")
    few = []
    for x, row in enumerate(table.rows):
        if row.gain is None:
            continue
        value, top = row.gain.score, row.gain.score
        if row.comparison:
            # the interval of the resamples may not contain the difference
            low, top = min(row.comparison.low, value), max(row.comparison.high, value)
            axes.errorbar([x], [value], [[value - low], [top - value]], color=ONE, elinewidth=1.2, capsize=3)
            axes.plot([x], [value], "o", color=ONE, markersize=5.5)
        else:
            few.append((x, value))
        # what rounds to zero has no sign
        _note(axes, x, top, f"{value:+.1f}" if abs(value) >= 0.05 else "0.0")
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
    axes.set_ylabel(f"{table.metric.title} (points{direction(table)})")


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
