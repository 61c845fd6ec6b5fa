"""The figure of the README: each system's difference from its baseline with its interval, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from results_compared import Results
from results_statistics import Difference, Line

_STYLES = {
    "parser": ("#2166ac", "o", "with a parser's trees"),
    "induced": ("#5aaad6", "v", "with induced trees"),
    "none": ("#4d9221", "s", "without trees"),
    "mixture": ("#762a83", "D", "the best mixture"),
    "control": ("#b35806", "^", "with other trees"),
    "repeat": ("#777777", "P", "in another precision"),
}
"""Of each kind of systems the colour, the mark and the name.

Marks distinguish the kinds in grey and for colour-blind readers; a hollow mark may be chance, or is not tested.
"""
_ROW, _WIDTH = 0.2, 5.6
"""Inches from row to row, and of a panel."""
_BETWEEN = 6
"""Rows that the title and the axis of a panel take."""
Shown = list[tuple[Line, Difference]]


def draw(found: Sequence[Results], path: Path) -> None:
    """Draw a panel for each comparison, the largest gain on top; colours show which trees a system has.

    The panel with the most systems has a column of its own, the others are below each other. A comparison that
    has only its baseline yet has no panel; without a panel there is no figure.
    """
    shown = {place: _differences(results) for place, results in enumerate(found)}
    shown = {place: rows for place, rows in shown.items() if rows}
    if not shown:
        return
    longest, *others = sorted(shown, key=lambda place: (-len(shown[place]), place))
    others.sort()
    heights = [len(shown[place]) + _BETWEEN for place in others]
    heights.append(max(len(shown[longest]) + _BETWEEN - sum(heights), 1))
    columns = [[longest, place] for place in (*others, ".")] if others else [[longest]]
    size = (_WIDTH * len(columns[0]), 1 + _ROW * sum(heights))
    figure = Figure(figsize=size, layout="constrained")
    ratios = heights if others else [1]
    panels = figure.subplot_mosaic(columns, height_ratios=ratios)
    for place, rows in shown.items():
        _draw(panels[place], found[place], rows)
    # below the panels, where it hides no interval
    figure.legend(handles=_legend(found, shown), fontsize=7.5, frameon=False, loc="outside lower center", ncols=4)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _differences(results: Results) -> Shown:
    rows = [(line, line.difference) for line in results.lines if line.difference]
    return sorted(rows, key=lambda row: row[1].value)


def _draw(panel: Axes, results: Results, shown: Shown) -> None:
    # a few systems that are far off would leave no room for the others
    ends = sorted(max(abs(found.low), abs(found.high)) for _, found in shown)
    furthest, names = 2 * ends[int(0.8 * (len(ends) - 1))], list[str]()
    for row, (line, found) in enumerate(shown):
        lstm = results.systems.architecture(line.system) == "lstm"
        names.append(f"{line.system} (LSTM)" if lstm else line.system)
        colour, mark, _ = _STYLES[results.systems.kind(line.system)]
        place, where = found.value, panel.transData
        if line.unstable or abs(found.value) > furthest:
            place, where = float(found.value > 0), panel.get_yaxis_transform()
            _write_beside(panel, row, line, found)
        else:
            panel.plot([found.low, found.high], [row, row], color=colour, linewidth=1.6)
        filled = colour if found.is_real else "white"
        panel.plot(
            *([place], [row], mark),
            color=colour,
            markerfacecolor=filled,
            markersize=5,
            transform=where,
            clip_on=False,
        )
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(shown)), names, fontsize=7.5)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    counts = sorted({len(line.scores) for line in results.lines})
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    panel.set_title(f"{results.plan.title}, {seeds} seed{'s' * (seeds != '1')}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the baseline, 95 % interval", fontsize=8.5)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _write_beside(panel: Axes, row: int, line: Line, found: Difference) -> None:
    """Write a difference at the edge of the panel, beyond which it is."""
    side = 1 if found.value > 0 else -1
    seeds = "seeds: " + ", ".join(f"{score:.1f}" for score in line.scores) + " BLEU"
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    panel.annotate(
        f"{found.value:+.2f} ({seeds if line.unstable else interval})".replace("-", "−"),
        (float(side > 0), row),
        xycoords=panel.get_yaxis_transform(),
        xytext=(-8 * side, 0),
        textcoords="offset points",
        ha="right" if side > 0 else "left",
        va="center",
        fontsize=7.5,
    )


def _legend(found: Sequence[Results], shown: dict[int, Shown]) -> list[Line2D]:
    """Make a mark for each kind of systems that is drawn, and one for differences that may be chance."""
    drawn = [(found[place], line) for place, rows in shown.items() for line, _ in rows]
    kinds = {results.systems.kind(line.system) for results, line in drawn}
    styles = [style for kind, style in _STYLES.items() if kind in kinds]
    marks = [Line2D([], [], color=colour, marker=mark, label=name) for colour, mark, name in styles]
    if not all(line.is_real for _, line in drawn):
        hollow = "may be chance, or not tested"
        marks.append(Line2D([], [], color="#555555", marker="o", markerfacecolor="white", label=hollow))
    return marks
