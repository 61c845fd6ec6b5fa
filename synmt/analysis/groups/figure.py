"""A figure of groups of sentences or words: results, differences with their intervals, and shares
of the data.

After figure 2 of Bugliarello & Okazaki (2020), which has differences and shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from synmt.analysis.groups.results import FEW_SENTENCES, LOWER, ResultTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style
from synmt.reporting.values import Interval

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

    widths = list(map(_width, tables))
    heights = [
        (6.6 if table.compared else 4.2) + names_height(table.names, width)
        for table, width in zip(tables, widths, strict=True)
    ]
    figure = Figure(figsize=(max(widths), sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, hspace=0.05, height_ratios=heights)[
        :, 0
    ]
    for part, table, own in zip(parts, tables, widths, strict=True):
        # next to a table with many groups, a few groups would be spread far apart
        beside = max(widths) - own
        place = part.subfigures(1, 2, width_ratios=(own, beside))[0] if beside else part
        _draw_table(place, table, suffix)
    return figure


def figure_caption(table: ResultTable) -> str:
    """Describe the panels of a table."""
    base = table.names[0]
    bars = _describe_bars(table)
    above = (
        f"{table.measures[-1].title} of "
        f"{'each system' if table.compared else base}{f' ({bars})' if bars else ''}"
    )
    differences = f"; in the middle, differences from {base} with 95 % intervals" * table.compared
    return f"{above}{differences}; below, each group's share and number of {table.sizes[0].title}."


def _describe_bars(table: ResultTable) -> str:
    return (
        "95 % interval"
        if table.has_intervals
        else "bar: standard deviation of seeds" * table.seeded
    )


def _width(table: ResultTable) -> float:
    groups, systems = len(table.rows), len(table.names)
    return max(4.8, max(0.75 if groups <= 12 else 0.55, 0.16 * systems) * groups + 1.0)


def _draw_table(part: SubFigure, table: ResultTable, suffix: str) -> None:
    draws = [_draw_values, *[_draw_differences] * table.compared]
    *panels, below = part.subplots(
        len(draws) + 1, 1, sharex=True, height_ratios=[2.4] * len(draws) + [1]
    )
    for axes, draw in zip(panels, draws, strict=True):
        draw(axes, table)
        axes.tick_params(axis="x", length=0, labelbottom=False)
        axes.margins(y=0.08 if table.several else 0.2)
    _add_names(panels[0], table.names, _width(table))
    _draw_shares(below, table)
    _name_groups(below, table, suffix)
    part.align_ylabels([*panels, below])


def _draw_values(axes: Axes, table: ResultTable) -> None:
    """Draw the results of each system, with their intervals or one standard deviation over the
    seeds."""
    # labels and relations have no order, so no line joins them
    joined, numbers = (
        bool(table.unit) and not table.has_intervals,
        "" if table.compared or table.has_intervals else ".1f",
    )
    for index, name in enumerate(table.names):
        marks = [
            _Mark(place, one.value, one.interval or one.spread)
            for place, _, one in table.results(name)
        ]
        _draw_marks(axes, table, index, marks, joined=joined, numbers=numbers)
    axes.set_ylabel(f"{_points(table)}\n{_describe_bars(table)}".strip())


def _draw_differences(axes: Axes, table: ResultTable) -> None:
    """Draw each system's differences from the baseline, with their intervals; small groups have a
    hollow mark only."""
    axes.axhline(0, color=INK, linewidth=0.8)
    base, *others = table.names
    for index, name in enumerate(others, start=1):
        marks = [
            _Mark(place, one.difference, one.difference_interval, hollow=row.few)
            for place, row, one in table.results(name)
        ]
        _draw_marks(axes, table, index, marks, numbers="+.1f" if len(others) == 1 else "")
    few = f"\nhollow: fewer than {FEW_SENTENCES} sentences" * any(row.few for row in table.rows)
    axes.set_ylabel(f"Δ {_points(table)}\n{fit_text(f'from {base}', _HIGH)}\n95 % interval{few}")


@dataclass(frozen=True)
class _Mark:
    """A value of a group, which may be unknown, and the ends of its bar, if it has one."""

    place: int
    value: float | None
    ends: Interval | None
    hollow: bool = False


def _draw_marks(
    axes: Axes,
    table: ResultTable,
    index: int,
    marks: Sequence[_Mark],
    *,
    joined: bool = False,
    numbers: str = "",
) -> None:
    """Draw the marks of one system next to those of the others.

    joined: whether a line joins them.
    numbers: the format of the values as text; empty for none.
    """
    style, others = series_style(index), len(table.names) - 1
    offset = min(_BETWEEN, _SPREAD / max(others, 1)) * (index - others / 2)
    known = [(mark.place + offset, mark.value, mark) for mark in marks if mark.value is not None]
    if joined:
        axes.plot(
            [x for x, _, _ in known],
            [y for _, y, _ in known],
            style["linestyle"],
            color=style["color"],
        )
    for x, value, mark in known:
        # the interval of the resamples may not contain the value
        low, high = (
            (min(mark.ends.low, value), max(mark.ends.high, value)) if mark.ends else (value, value)
        )
        if mark.ends:
            bar = [value - low], [high - value]
            axes.errorbar(
                [x], [value], bar, ecolor=style["color"], fmt="none", elinewidth=1.2, capsize=2
            )
        filling = "white" if mark.hollow else style["color"]
        axes.plot([x], [value], markersize=4.5, markerfacecolor=filling, **style)
        if numbers:
            # what rounds to zero has no sign
            text = format(value, numbers)
            _note(axes, x, high, text if float(text) else "0.0")


def _draw_shares(axes: Axes, table: ResultTable) -> None:
    counted, share = (column.key for column in table.sizes[:2])
    counts, shares = ([getattr(row, key) for row in table.rows] for key in (counted, share))
    bars = axes.bar(range(len(shares)), [100 * one for one in shares], width=0.62, color="#8C8C8C")
    axes.bar_label(bars, [f"{one:,}" for one in counts], padding=2, fontsize=8, color=INK)
    axes.set_ylabel(f"{table.sizes[0].title.capitalize()} (%)")
    axes.set_ylim(0, 118 * max(shares, default=0) or 100)


def _name_groups(axes: Axes, table: ResultTable, suffix: str) -> None:
    # a long value of a label, such as a sentence, would leave no room for the panels
    groups = [row.group for row in table.rows]
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in groups]
    # about eleven characters of 9 points fit into an inch
    slanted = max((len(name) + 2 for name in names), default=0) * len(names) > 11 * _width(table)
    axes.set_xticks(
        range(len(names)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center"
    )
    # labels, which have exact matches next to the score, keep their own names
    by = table.by if table.measures[0].key == "accuracy" else table.by[:1].upper() + table.by[1:]
    axes.set_xlabel(f"{by} ({table.unit}{suffix})" if table.unit else by + suffix)
    axes.set_xlim(-0.6, len(names) - 0.4)


def _points(table: ResultTable) -> str:
    measure = table.measures[-1]
    lower = ", lower is better" * (measure.about == LOWER)
    return f"{measure.title[:1].upper()}{measure.title[1:]} (points{lower})"


def _note(axes: Axes, x: float, y: float, text: str) -> None:
    from matplotlib.patheffects import withStroke

    note = axes.annotate(
        text.replace("-", "−"), (x, y), xytext=(0, 5), textcoords="offset points", ha="center"
    )
    # a white outline keeps the numbers legible on top of a line
    note.set(color=INK, fontsize=8.5, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def names_height(names: Sequence[str], width: float) -> float:
    """Return the height of the lines of names above a panel, in inches, apart from the first
    two."""
    labels, columns = fit_names(names, width - 0.8)
    # a legend fills its columns one after the other
    rows = -(-len(labels) // columns)
    lines = sum(max(label.count("\n") + 1 for label in labels[row::rows]) for row in range(rows))
    return _LINE * max(0, lines - 2)


def _add_names(axes: Axes, names: Sequence[str], width: float) -> None:
    """Name the systems above a panel, in as many columns as fit into its width in inches."""
    from matplotlib.lines import Line2D

    labels, columns = fit_names(names, width - 0.8)
    handles: list[Any] = [
        Line2D([], [], markersize=4.5, label=name, **series_style(index))
        for index, name in enumerate(labels)
    ]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False
    )
