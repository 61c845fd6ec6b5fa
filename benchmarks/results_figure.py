"""The figure of the README: each system's difference from its baseline with its interval, a row
each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from results_compared import Results

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
_LINEAR = 4.0
"""BLEU; beyond it the axis is logarithmic, or a few systems would leave no room for the others."""
_TICKS = (-30, -10, -4, -2, -1, 0, 1, 2, 4)


def draw(found: Sequence[Results], path: Path) -> None:
    """Draw a panel for each comparison, the largest gain on top; colours show which trees a system
    has.

    The first panel has a column of its own, the others are below each other. A comparison that has
    only its baseline yet has no panel; without a panel there is no figure.
    """
    rows = [sum(line.difference is not None for line in results.lines) for results in found]
    drawn = [place for place, count in enumerate(rows) if count]
    if not drawn:
        return
    first, *others = sorted(drawn, key=lambda place: -rows[place])
    heights = [rows[place] + _BETWEEN for place in others]
    heights.append(max(rows[first] + _BETWEEN - sum(heights), 1))
    columns = [[first, place] for place in (*others, ".")] if others else [[first]]
    size = (_WIDTH * len(columns[0]), 1 + _ROW * sum(heights))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplot_mosaic(columns, height_ratios=heights[-len(columns) :])
    for place, panel in panels.items():
        _draw(panel, found[place])
    marks = [
        Line2D([], [], color=colour, marker=mark, label=name)
        for colour, mark, name in _STYLES.values()
    ]
    # below the panels, where it hides no interval
    figure.legend(handles=marks, fontsize=7.5, frameon=False, loc="outside lower center", ncols=4)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw(panel: Axes, results: Results) -> None:
    """Draw the differences of a comparison; unstable systems have no interval."""
    pairs = [(line, line.difference) for line in results.lines if line.difference]
    pairs.sort(key=lambda pair: pair[1].value)
    names = list[str]()
    for row, (line, found) in enumerate(pairs):
        lstm = results.systems.architecture(line.system) == "lstm"
        names.append(f"{line.system} (LSTM)" if lstm else line.system)
        colour, mark, _ = _STYLES[results.systems.kind(line.system)]
        width = 0 if line.unstable else found.high - found.value
        filled = colour if found.is_real else "white"
        panel.errorbar(
            [found.value], [row], xerr=width, fmt=mark, color=colour, markerfacecolor=filled
        )
    panel.set_xscale("symlog", linthresh=_LINEAR)
    panel.xaxis.set_major_locator(FixedLocator(_TICKS))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(pairs)), names, fontsize=7.5)
    panel.set_ylim(-0.7, len(pairs) - 0.3)
    seeds = sorted({len(line.scores) for line in results.lines})
    panel.set_title(f"{results.plan.title}; seeds: {', '.join(map(str, seeds))}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the baseline, 95 % interval", fontsize=8.5)
    panel.spines[["top", "right"]].set_visible(False)
