"""A figure of groups of sentences or words: results, differences with their intervals, and shares of the data.

After figure 2 of Bugliarello & Okazaki (2020), where a run and its baseline have differences only. One system has
results only; several systems, and results with intervals of their own, have both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from synmt.analysis.groups.results import FEW_SENTENCES, LOWER, ResultTable
from synmt.reporting.figures import INK, fit_names, fit_text, series_style
from synmt.reporting.values import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_LONGEST = 32
"""Maximum number of letters of a group's name."""

_BETWEEN, _SPREAD = 0.14, 0.64
"""Distance between two marks of a group, and the most that all of them take, of the distance between two groups."""

_HIGH, _LINE = 2.6, 0.19
"""Inches: the heights of a panel, and of a line of names."""


def draw_results(tables: Sequence[ResultTable], *, suffix: str = "") -> Figure:
    """Draw the panels of each table, one table below the other.

    suffix: conditions to add to the axis labels, because a figure is seen without the heading of its table.
    """
    from matplotlib.figure import Figure

    widths, heights = list(map(_width, tables)), list(map(_height, tables))
    figure = Figure(figsize=(max(widths), sum(heights)), layout="constrained")
    parts = figure.subfigures(len(tables), 1, squeeze=False, hspace=0.05, height_ratios=heights)[:, 0]
    for part, table, own in zip(parts, tables, widths, strict=True):
        # next to a table with many groups, a few groups would be spread far apart
        beside = max(widths) - own
        place = part.subfigures(1, 2, width_ratios=(own, beside))[0] if beside else part
        _draw_table(place, table, suffix)
    return figure


def figure_caption(table: ResultTable) -> str:
    """Describe the panels of a table."""
    title, base = table.measures[-1].title, table.names[0]
    if not _has_values(table):
        above = f"{title} of {table.names[1]} minus that of {base}, with 95 % intervals"
    else:
        above = f"{title} of each system" if table.compared else f"{title} of {base}"
        if table.has_intervals:
            above += ", with 95 % intervals"
        elif table.seeded:
            above += ", with one standard deviation over its seeds"
        above += f"; in the middle, differences from {base} with 95 % intervals" * table.compared
    return f"{above}; below, each group's share and number of {table.sizes[0].title}."


def _has_values(table: ResultTable) -> bool:
    return table.several or not table.compared or table.has_intervals


def _width(table: ResultTable) -> float:
    groups = len(table.rows)
    each = max(0.75 if groups <= 12 else 0.55, 0.16 * len(table.names) if _has_values(table) else 0)
    return max(4.8, each * groups + 1.0)


def _height(table: ResultTable) -> float:
    panels = 6.6 if _has_values(table) and table.compared else 4.2
    return panels + names_height(table.names, _width(table))


def _draw_table(part: SubFigure, table: ResultTable, suffix: str) -> None:
    draws: list[Callable[[Axes, ResultTable], None]] = [_draw_values] * _has_values(table)
    draws += [_draw_differences] * table.compared
    *panels, below = part.subplots(len(draws) + 1, 1, sharex=True, height_ratios=[2.4] * len(draws) + [1])
    for axes, draw in zip(panels, draws, strict=True):
        draw(axes, table)
        axes.tick_params(axis="x", length=0, labelbottom=False)
        axes.margins(y=0.2 if _is_numbered(table) else 0.08)
    if len(draws) < 2:
        heading = fit_text(" − ".join(reversed(table.names)), _width(table) - 0.8)
        panels[0].set_title(heading, loc="left", fontsize=9)
    else:
        _add_names(panels[0], table.names, _width(table))
    _draw_shares(below, table)
    _name_groups(below, table, suffix)
    part.align_ylabels([*panels, below])


def _draw_values(axes: Axes, table: ResultTable) -> None:
    """Draw the results of each system, with their intervals or one standard deviation over the seeds, as a band."""
    # labels and relations have no order, so no line joins them
    ordered = bool(table.unit) and not table.has_intervals
    spread = 0.0
    for index, (name, offset) in enumerate(zip(table.names, _offsets(len(table.names)), strict=True)):
        found = [(place, one, one.value) for place, _, one in table.results(name) if one.value is not None]
        places = np.array([place + (0 if ordered else offset) for place, _, _ in found])
        values = np.array([value for _, _, value in found])
        ends = [one.interval or Interval(value - one.deviation, value + one.deviation) for _, one, value in found]
        low, high = np.array([end.low for end in ends]), np.array([end.high for end in ends])
        style = _style(table, index, joined=ordered)
        axes.plot(places, values, markersize=4.5, linewidth=1.2, **style)
        spread += (high - low).sum()
        if ordered and (high > low).any():
            axes.fill_between(places, low, high, color=style["color"], alpha=0.2, linewidth=0)
        elif (high > low).any():
            lengths = np.maximum([values - low, high - values], 0)
            axes.errorbar(places, values, lengths, fmt="none", ecolor=style["color"], elinewidth=1)
        if _is_numbered(table):
            for place, value in zip(places, values, strict=True):
                _note(axes, place, value, f"{value:.1f}")
    seeds = f"{'band' if ordered else 'bar'}: standard deviation of seeds"
    below = "95 % interval" if table.has_intervals else seeds * bool(spread)
    axes.set_ylabel("\n".join(filter(None, [_points(table), below])))


def _draw_differences(axes: Axes, table: ResultTable) -> None:
    """Draw each system's differences from the baseline, with their intervals; small groups have a hollow mark only."""
    axes.axhline(0, color=INK, linewidth=0.8)
    base, *others = table.names
    for index, (name, offset) in enumerate(zip(others, _offsets(len(others)), strict=True), start=1):
        style = _style(table, index, joined=False)
        for place, row, one in table.results(name):
            if one.difference is None:
                continue
            value = top = one.difference
            if found := one.comparison:
                # the interval of the resamples may not contain the difference
                top = max(found.high, value)
                ends = [max(value - found.low, 0)], [top - value]
                axes.errorbar([place + offset], [value], ends, ecolor=style["color"], fmt="none", capsize=2)
            filling = "white" if row.few else style["color"]
            axes.plot([place + offset], [value], markersize=4.5, markerfacecolor=filling, **style)
            if _is_numbered(table):
                # what rounds to zero has no sign
                _note(axes, place, top, f"{value:+.1f}" if abs(value) >= 0.05 else "0.0")
    compared = (fit_text(f"from {base}", _HIGH) + "\n") * _has_values(table) + "95 % interval"
    few = f"\nhollow: fewer than {FEW_SENTENCES} sentences" * any(row.few for row in table.rows)
    axes.set_ylabel(f"Δ {_points(table)}\n{compared}{few}")


def _is_numbered(table: ResultTable) -> bool:
    """Tell whether there is room for the values as numbers."""
    return not table.several and not table.has_intervals


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
    axes.set_xticks(range(len(names)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center")
    # labels, which have exact matches next to the score, keep their own names
    by = table.by if table.measures[0].key == "accuracy" else table.by[:1].upper() + table.by[1:]
    axes.set_xlabel(f"{by} ({table.unit}{suffix})" if table.unit else by + suffix)
    axes.set_xlim(-0.6, len(names) - 0.4)


def _points(table: ResultTable) -> str:
    measure = table.measures[-1]
    lower = ", lower is better" * (measure.about == LOWER)
    return f"{measure.title[:1].upper()}{measure.title[1:]} (points{lower})"


def _style(table: ResultTable, index: int, *, joined: bool) -> dict[str, Any]:
    """Choose the mark of a system; without others beside it, it has a colour."""
    return series_style(index if table.several or table.compared else 1) | ({} if joined else {"linestyle": "none"})


def _offsets(systems: int) -> list[float]:
    """Place the marks of a group side by side."""
    half = min(_BETWEEN * (systems - 1), _SPREAD) / 2
    return np.linspace(-half, half, systems).tolist()


def _note(axes: Axes, x: float, y: float, text: str) -> None:
    from matplotlib.patheffects import withStroke

    note = axes.annotate(text.replace("-", "−"), (x, y), xytext=(0, 5), textcoords="offset points", ha="center")
    # a white outline keeps the numbers legible on top of a line
    note.set(color=INK, fontsize=8.5, path_effects=[withStroke(linewidth=2.5, foreground="white")])


def names_height(names: Sequence[str], width: float) -> float:
    """Return the height of the lines of names above a panel, in inches, apart from the first two."""
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
        Line2D([], [], markersize=4.5, label=name, **series_style(index)) for index, name in enumerate(labels)
    ]
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False)
