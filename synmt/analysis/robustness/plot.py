"""A figure of scores with rewired trees, controls, flat trees and trees of other parsers.

The x axis is the share of words with a different parent than in the original trees. Bars are the 95 % intervals of the
difference from the score with the original trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synmt.analysis.robustness.translations import Outcome
from synmt.evaluation.metrics import Metric
from synmt.reporting.figures import INK, ONE, OTHER, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "s^vDPX<>h*"
"""Shapes of the conditions that are not rewired trees: ten points cannot be distinguished by colour."""


def draw_robustness(outcomes: Sequence[Outcome], metric: Metric, *, system: str) -> Figure:
    """Draw the score by share of words with a different parent."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    own, *conditions = outcomes
    axes.axhline(own.score, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), label="original trees")
    rewired = [one for one in conditions if one.kind == "rewired"]
    if rewired:
        # the curve starts at the original trees, unless these differ from share 0 in arc probabilities
        first = [] if rewired[0].share == 0 else [own]
        _draw(axes, [*first, *rewired], own, color=ONE, marker="o", line="-", label="rewired")
    others = [one for one in conditions if one.kind != "rewired"]
    for place, one in enumerate(others):
        _draw(axes, [one], own, color=OTHER, marker=_MARKERS[place % len(_MARKERS)], line="none", label=one.name)
    better = "" if metric.higher_is_better else ", lower is better"
    axes.set_ylabel(f"{metric.title} (points{better})\n95 % interval of the difference")
    axes.set_xlabel("Words with a different parent than in the original trees (%)")
    axes.set_xlim(-3, 103)
    axes.margins(y=0.1)
    axes.set_title(fit_text(system, 4.6), fontsize=9, loc="left")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _draw(axes: Axes, some: Sequence[Outcome], own: Outcome, *, color: str, marker: str, line: str, label: str) -> None:
    """Draw points with the intervals of their difference, around the score."""
    below, above = [], []
    for one in some:
        low, high = (one.against_own.low, one.against_own.high) if one.against_own else (0.0, 0.0)
        below.append(max(one.score - own.score - low, 0.0))
        above.append(max(high - one.score + own.score, 0.0))
    axes.errorbar(
        [100 * (1 - one.uas) for one in some],
        [one.score for one in some],
        yerr=[below, above],
        color=color,
        marker=marker,
        linestyle=line,
        label=label,
        markersize=5.5,
        markeredgecolor=INK,
        markeredgewidth=0.6,
        linewidth=1.2,
        elinewidth=1,
        capsize=2.5,
    )
