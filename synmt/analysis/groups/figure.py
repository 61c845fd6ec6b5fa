"""A figure of groups of sentences or words: results, differences with their intervals, and shares
of the data.

After figure 2 of Bugliarello & Okazaki (2020), which has differences and shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synmt.analysis.groups.results import FEW_SENTENCES, LOWER, ResultTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_LONGEST = 32
"""Maximum number of letters of a group's name."""

_BETWEEN, _SPREAD = 0.14, 0.64
"""Distance between two marks of a group, and the most that all of them take, of the distance
between two groups."""

_HIGH, _LINE = 2.6, 0.19
"""Inches: the heights of a panel, and of a line of names."""


def draw_results(tables: Sequence[ResultTable], *, suffix: str = "") -> Figure:
    """Draw the panels of each table, one table below the other.

    suffix: conditions to add to the axis labels, because a figure is seen without the heading of
        its table.
    """
    from matplotlib.figure import Figure

    width = max(map(_width, tables))
    heights = [
        (6.6 if table.compared else 4.2) + _LINE * _lines(table.names, width) for table in tables
    ]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, hspace=0.05, height_ratios=heights)
    for part, table in zip(parts[:, 0], tables, strict=True):
        _draw_table(part, table, width, suffix)
    return figure


def figure_caption(table: ResultTable) -> str:
    """Describe the panels of a table."""
    base, bars = table.names[0], _describe_bars(table)
    above = f"{table.measures[-1].title} of {'each system' if table.compared else base}"
    above += f" ({bars})" if bars else ""
    if table.compared:
        above += f"; in the middle, differences from {base} with 95 % intervals"
    return f"{above}; below, each group's share and number of {table.sizes[0].title}."


def _describe_bars(table: ResultTable) -> str:
    if table.has_intervals:
        return "95 % interval"
    return "bar: standard deviation of seeds" if table.seeded else ""


def _width(table: ResultTable) -> float:
    groups, systems = len(table.rows), len(table.names)
    return max(4.8, max(0.75 if groups <= 12 else 0.55, 0.16 * systems) * groups + 1.0)


def _lines(names: Sequence[str], width: float) -> int:
    """Count the lines of the legend above a panel, apart from the first two."""
    labels, columns = fit_names(names, width - 0.8)
    # a legend fills its columns one after the other
    rows = -(-len(labels) // columns)
    lines = sum(max(label.count("\n") + 1 for label in labels[row::rows]) for row in range(rows))
    return max(0, lines - 2)


def _draw_table(part: SubFigure, table: ResultTable, width: float, suffix: str) -> None:
    from matplotlib.lines import Line2D

    *panels, below = part.subplots(
        2 + table.compared, 1, sharex=True, height_ratios=[2.4] * (1 + table.compared) + [1]
    )
    for axes, differences in zip(panels, (False, True), strict=False):
        _draw_panel(axes, table, differences=differences)
        axes.tick_params(axis="x", length=0, labelbottom=False)
        axes.margins(y=0.08 if table.several else 0.2)
    labels, columns = fit_names(table.names, width - 0.8)
    handles = [
        Line2D([], [], markersize=4.5, label=label, **series_style(index))
        for index, label in enumerate(labels)
    ]
    panels[0].legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False
    )
    _draw_shares(below, table)
    _name_groups(below, table, width, suffix)
    part.align_ylabels([*panels, below])


def _draw_panel(axes: Axes, table: ResultTable, *, differences: bool) -> None:
    """Draw the results of each system, with their intervals or one standard deviation over the
    seeds; or its differences from the baseline, where small groups have a hollow mark only."""
    base, *others = table.names
    measure = table.measures[-1]
    points = "points, lower is better" if measure.about == LOWER else "points"
    label = f"{measure.title[:1].upper()}{measure.title[1:]} ({points})"
    if differences:
        axes.axhline(0, color=INK, linewidth=0.8)
        label = f"Δ {label}\n{fit_text(f'from {base}', _HIGH)}\n95 % interval"
        if any(row.few for row in table.rows):
            label += f"\nhollow: fewer than {FEW_SENTENCES} sentences"
        numbers = "+.1f" if len(others) == 1 else ""
    else:
        label = f"{label}\n{_describe_bars(table)}".strip()
        numbers = "" if table.compared or table.has_intervals else ".1f"
    axes.set_ylabel(label)
    # labels and relations have no order, so no line joins them
    joined = bool(table.unit) and not table.has_intervals and not differences
    for index, name in enumerate(table.names):
        if index or not differences:
            _draw_system(axes, table, name, numbers, differences=differences, joined=joined)


def _draw_system(
    axes: Axes, table: ResultTable, name: str, numbers: str, *, differences: bool, joined: bool
) -> None:
    """Draw the marks of one system next to those of the others.

    numbers: the format of the values as text; empty for none.
    joined: whether a line joins the marks.
    """
    index, others = table.names.index(name), len(table.names) - 1
    style = series_style(index)
    offset = min(_BETWEEN, _SPREAD / max(others, 1)) * (index - others / 2)
    places, values = list[float](), list[float]()
    for place, row, one in table.results(name):
        value = one.difference if differences else one.value
        ends = one.difference_interval if differences else one.interval or one.spread
        if value is None:
            continue
        x, high = place + offset, value
        places.append(x)
        values.append(value)
        if ends:
            # the interval of the resamples may not contain the value
            low, high = min(ends.low, value), max(ends.high, value)
            bar = [value - low], [high - value]
            axes.errorbar(
                [x], [value], bar, ecolor=style["color"], fmt="none", elinewidth=1.2, capsize=2
            )
        filling = "white" if differences and row.few else style["color"]
        axes.plot([x], [value], markersize=4.5, markerfacecolor=filling, **style)
        if numbers:
            # what rounds to zero has no sign
            text = format(value, numbers)
            _note(axes, x, high, text if float(text) else "0.0")
    if joined:
        axes.plot(places, values, style["linestyle"], color=style["color"], zorder=1)


def _draw_shares(axes: Axes, table: ResultTable) -> None:
    counted, share = table.sizes[:2]
    shares = [100 * getattr(row, share.key) for row in table.rows]
    bars = axes.bar(range(len(shares)), shares, width=0.62, color="#8C8C8C")
    counts = [f"{getattr(row, counted.key):,}" for row in table.rows]
    axes.bar_label(bars, counts, padding=2, fontsize=8, color=INK)
    axes.set_ylabel(f"{counted.title.capitalize()} (%)")
    axes.set_ylim(0, 1.18 * max(shares, default=0) or 100)


def _name_groups(axes: Axes, table: ResultTable, width: float, suffix: str) -> None:
    # a long value of a label, such as a sentence, would leave no room for the panels
    groups = [row.group for row in table.rows]
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in groups]
    # about eleven characters of 9 points fit into an inch
    slanted = max((len(name) + 2 for name in names), default=0) * len(names) > 11 * width
    angle, side = (30, "right") if slanted else (0, "center")
    axes.set_xticks(range(len(names)), names, rotation=angle, ha=side)
    # labels, which have exact matches next to the score, keep their own names
    by = table.by if table.measures[0].key == "accuracy" else table.by[:1].upper() + table.by[1:]
    axes.set_xlabel(f"{by} ({table.unit}{suffix})" if table.unit else by + suffix)
    axes.set_xlim(-0.6, len(names) - 0.4)


def _note(axes: Axes, x: float, y: float, text: str) -> None:
    from matplotlib.patheffects import withStroke

    note = axes.annotate(
        text.replace("-", "−"), (x, y), xytext=(0, 5), textcoords="offset points", ha="center"
    )
    # a white outline keeps the numbers legible on top of a line
    note.set(color=INK, fontsize=8.5, path_effects=[withStroke(linewidth=2.5, foreground="white")])
