"""The figure of the README: each system's difference from its baseline with its interval, a row
each."""

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
    "chance": ("#555555", "$\\circ$", "hollow: may be chance, or not tested"),
}
"""Of each kind of systems the colour, the mark and the name.

Marks distinguish the kinds in grey and for colour-blind readers.
"""
_ROW, _WIDTH = 0.2, 5.6
"""Inches from row to row, and of a panel."""
_BETWEEN = 6
"""Rows that the title and the axis of a panel take."""


def draw(found: Sequence[Results], path: Path) -> None:
    """Draw a panel for each comparison, the largest gain on top; colours show which trees a system
    has.

    The panel with the most systems has a column of its own, the others are below each other. A
    comparison that has only its baseline yet has no panel; without a panel there is no figure.
    """
    rows = [sum(line.difference is not None for line in results.lines) for results in found]
    drawn = sorted(
        (place for place, count in enumerate(rows) if count), key=lambda place: -rows[place]
    )
    if not drawn:
        return
    longest, others = drawn[0], sorted(drawn[1:])
    heights = [rows[place] + _BETWEEN for place in others]
    heights.append(max(rows[longest] + _BETWEEN - sum(heights), 1))
    columns = [[longest, place] for place in (*others, ".")] if others else [[longest]]
    figure = Figure(
        figsize=(_WIDTH * len(columns[0]), 1 + _ROW * sum(heights)), layout="constrained"
    )
    panels = figure.subplot_mosaic(columns, height_ratios=heights[-len(columns) :])
    kinds = set[str]()
    for place, panel in panels.items():
        kinds |= _draw(panel, found[place])
    styles = [style for kind, style in _STYLES.items() if kind in kinds]
    marks = [Line2D([], [], color=colour, marker=mark, label=name) for colour, mark, name in styles]
    # below the panels, where it hides no interval
    figure.legend(handles=marks, fontsize=7.5, frameon=False, loc="outside lower center", ncols=4)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw(panel: Axes, results: Results) -> set[str]:
    """Draw the differences of a comparison; returns the styles that are used."""
    pairs = [(line, line.difference) for line in results.lines if line.difference]
    pairs.sort(key=lambda pair: pair[1].value)
    # a few systems that are far off would leave no room for the others
    ends = sorted(max(abs(found.low), abs(found.high)) for _, found in pairs)
    furthest, names, kinds = 2 * ends[int(0.8 * (len(ends) - 1))], list[str](), set[str]()
    for row, (line, found) in enumerate(pairs):
        lstm = results.systems.architecture(line.system) == "lstm"
        names.append(f"{line.system} (LSTM)" if lstm else line.system)
        kind, side = results.systems.kind(line.system), 1 if found.value > 0 else -1
        kinds |= {kind} if found.is_real else {kind, "chance"}
        place, width = found.value, found.high - found.value
        if line.unstable or abs(place) > furthest:
            place, width = side * furthest, 0
            _write_beside(panel, (place, row), line, found)
        colour, mark, _ = _STYLES[kind]
        filled = colour if found.is_real else "white"
        panel.errorbar(
            [place],
            [row],
            xerr=width,
            fmt=mark,
            color=colour,
            markerfacecolor=filled,
            markersize=5,
            linewidth=1.6,
        )
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(pairs)), names, fontsize=7.5)
    panel.set_ylim(-0.7, len(pairs) - 0.3)
    seeds = [len(line.scores) for line in results.lines]
    counted = f"{min(seeds)} to {max(seeds)}" if min(seeds) < max(seeds) else str(seeds[0])
    panel.set_title(f"{results.plan.title}; seeds: {counted}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the baseline, 95 % interval", fontsize=8.5)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    return kinds


def _write_beside(panel: Axes, place: tuple[float, int], line: Line, found: Difference) -> None:
    """Write a difference that is beyond the edge of the panel."""
    side = 1 if found.value > 0 else -1
    what = f"{found.low:+.2f} to {found.high:+.2f}"
    if line.unstable:
        what = f"seeds: {', '.join(f'{score:.1f}' for score in line.scores)} BLEU"
    text = f"{found.value:+.2f} ({what})".replace("-", "−")
    beside = {1: "right", -1: "left"}[side]
    panel.annotate(
        text,
        place,
        xytext=(-8 * side, 0),
        textcoords="offset points",
        ha=beside,
        va="center",
        fontsize=7.5,
    )
