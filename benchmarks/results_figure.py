"""The figure of the README: each system's difference from its baseline with its interval, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from results_found import Results
from results_phrases import interval, scores_of, seeds_of, signed
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

Marks tell the kinds apart in grey and for colour-blind readers; a hollow mark may be chance, or is not tested.
"""
_ROW, _WIDTH = 0.2, 3.9
"""Inches from row to row, and of a panel without the names of its systems."""
_BETWEEN = 4
"""Rows that the title and the axis of a panel take."""


def draw(found: Sequence[tuple[Results, list[Line]]], path: Path) -> None:
    """Draw a panel for each comparison, the largest gain on top; colours tell which trees a system has.

    The panel with the most systems has a column of its own, the others are below each other. A comparison that has
    only its baseline yet has no panel; without a panel there is no figure.
    """
    found = [one for one in found if any(line.difference for line in one[1])]
    if not found:
        return
    rows = [sum(line.difference is not None for line in lines) for _, lines in found]
    longest = rows.index(max(rows))
    figure = Figure(figsize=(5.6 * min(2, len(found)), 1.5 + _ROW * rows[longest]), layout="constrained")
    for panel, (results, lines), count in zip(_panels(figure, rows, longest), found, rows, strict=True):
        _draw(panel, results, lines)
        if count < rows[longest]:
            # as far from row to row as in the longest panel
            panel.set_box_aspect(_ROW * count / _WIDTH)
            panel.set_anchor("N")
    # below the panels, where it hides no interval
    figure.legend(handles=_legend(found), fontsize=7.5, frameon=False, loc="outside lower center", ncols=4)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _panels(figure: Figure, rows: Sequence[int], longest: int) -> list[Axes]:
    """Make a panel for each comparison, in their order."""
    columns = figure.add_gridspec(1, min(2, len(rows)))
    own = figure.add_subplot(columns[0])
    if len(rows) == 1:
        return [own]
    others = [count for place, count in enumerate(rows) if place != longest]
    heights = [count + _BETWEEN for count in others]
    rest = max(1, rows[longest] - sum(heights))
    cells = columns[1].subgridspec(len(others) + 1, 1, height_ratios=[*heights, rest])
    panels = [figure.add_subplot(cells[place]) for place in range(len(others))]
    return [*panels[:longest], own, *panels[longest:]]


def _draw(panel: Axes, results: Results, lines: Sequence[Line]) -> None:
    shown = sorted(((line, line.difference) for line in lines if line.difference), key=lambda drawn: drawn[1].value)
    furthest = _furthest([found for _, found in shown])
    for row, (line, found) in enumerate(shown):
        colour, mark, _ = _STYLES[results.systems.kind(line.system)]
        place, where = found.value, panel.transData
        if line.unstable or abs(found.value) > furthest:
            place, where = float(found.value > 0), panel.get_yaxis_transform()
            _write_beside(panel, row, line, found)
        else:
            panel.plot([found.low, found.high], [row, row], color=colour, linewidth=1.6)
        filling = colour if found.is_real else "white"
        panel.plot(
            [place],
            [row],
            mark,
            color=colour,
            markerfacecolor=filling,
            markersize=5,
            transform=where,
            clip_on=False,
        )
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(shown)), [_name(results, line) for line, _ in shown], fontsize=7.5)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    seeds = seeds_of(lines)
    panel.set_title(f"{results.plan.title}, {seeds} seed{'s' * (seeds != '1')}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the baseline, 95 % interval", fontsize=8.5)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _furthest(differences: Sequence[Difference]) -> float:
    """Choose how far the axis goes: a few systems that are far off would leave no room for the others."""
    ends = sorted(max(abs(found.low), abs(found.high)) for found in differences)
    return 2 * ends[int(0.8 * (len(ends) - 1))] if ends else 0.0


def _write_beside(panel: Axes, row: int, line: Line, found: Difference) -> None:
    """Write a difference at the edge of the panel, beyond which it is."""
    side = 1 if found.value > 0 else -1
    panel.annotate(
        f"{signed(found.value)} ({f'seeds: {scores_of(line)} BLEU' if line.unstable else interval(found)})",
        (float(side > 0), row),
        xycoords=panel.get_yaxis_transform(),
        xytext=(-8 * side, 0),
        textcoords="offset points",
        ha="right" if side > 0 else "left",
        va="center",
        fontsize=7.5,
    )


def _legend(found: Sequence[tuple[Results, list[Line]]]) -> list[Line2D]:
    """Make a mark for each kind of systems that is drawn, and one for differences that may be chance."""
    drawn = {results.systems.kind(line.system) for results, lines in found for line in lines if line.difference}
    styles = [style for kind, style in _STYLES.items() if kind in drawn]
    marks = [Line2D([], [], color=colour, marker=mark, label=name) for colour, mark, name in styles]
    if any(not line.difference.is_real for _, lines in found for line in lines if line.difference):
        marks.append(
            Line2D([], [], color="#555555", marker="o", markerfacecolor="white", label="may be chance, or not tested")
        )
    return marks


def _name(results: Results, line: Line) -> str:
    lstm = results.systems.architecture(line.system) == "lstm"
    return f"{line.system} (LSTM)" if lstm else line.system
