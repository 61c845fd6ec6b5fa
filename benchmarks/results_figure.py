"""The figure of the README: each system's difference from its baseline, with its interval."""

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
    "control": ("#b35806", "^", "with other trees"),
    "untested": ("#555555", "$\\circ$", "hollow: not significant, or not tested"),
}
"""Of each kind of systems the colour, the mark and the name; marks are for grey prints and
colour-blind readers."""
_ROW, _WIDTH, _BETWEEN = 0.16, 6.0, 6
"""Inches from row to row, and of a panel; rows that the title and the axis of a panel take."""
_LINEAR = 4.0
"""BLEU; beyond it the axis is logarithmic, or a few systems would leave no room for the others."""
_TICKS = (-30, -10, -4, -2, -1, 0, 1, 2, 4)


def draw(found: Sequence[Results], path: Path) -> None:
    """Draw a panel for each comparison that has more than baselines, the largest gain on top."""
    found = [results for results in found if results.gains]
    if not found:
        return
    rows = [len(results.gains) + _BETWEEN for results in found]
    figure = Figure(figsize=(_WIDTH, 1 + _ROW * sum(rows)), layout="constrained")
    panels = figure.subplots(len(found), squeeze=False, height_ratios=rows)[:, 0]
    for results, panel in zip(found, panels, strict=True):
        _draw(panel, results)
    marks = [
        Line2D([], [], color=colour, marker=mark, label=name)
        for colour, mark, name in _STYLES.values()
    ]
    # below the panels, where it hides no interval
    figure.legend(handles=marks, fontsize=7.5, frameon=False, loc="outside lower center", ncols=3)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw(panel: Axes, results: Results) -> None:
    """Draw the differences of a comparison; unstable systems have no interval."""
    gains, names = results.gains, list[str]()
    for row, system in enumerate(sorted(gains, key=lambda name: gains[name].value)):
        found = gains[system]
        lstm = results.plan.architecture(system) == "lstm"
        names.append(f"{system} (LSTM)" if lstm else system)
        colour, mark, _ = _STYLES[results.plan.kind(system)]
        width = 0.0 if system in results.unstable else found.interval.high - found.value
        filled = colour if found.is_significant else "white"
        panel.errorbar(
            [found.value], [row], xerr=width, fmt=mark, color=colour, markerfacecolor=filled
        )
    panel.set_xscale("symlog", linthresh=_LINEAR)
    panel.xaxis.set_major_locator(FixedLocator(_TICKS))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(names)), names, fontsize=7.5)
    panel.set_ylim(-0.7, len(names) - 0.3)
    seeds = sorted({len(runs) for runs in results.runs.values()})
    panel.set_title(f"{results.plan.title}; seeds: {', '.join(map(str, seeds))}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the baseline, 95 % interval", fontsize=8.5)
    panel.spines[["top", "right"]].set_visible(False)
