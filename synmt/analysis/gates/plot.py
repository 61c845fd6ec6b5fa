"""A figure of how often each part of speech has the highest gate norm of a sentence, relative to chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmt.analysis.gates.table import MIN_WORDS
from synmt.reporting.figures import INK, ONE, OTHER, fit_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from synmt.analysis.gates.table import GateTable, TagRow


def draw_gates(table: GateTable, *, system: str) -> Figure:
    """Draw the ratio of each part of speech with its interval; the two shares are at the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2, 0.27 * len(table.rows) + 1.5), layout="constrained")
    axes = figure.subplots()
    axes.axvline(1, color=INK, linewidth=1)
    for place, row in enumerate(table.rows):
        _draw_row(axes, place, row)
    _draw_second(axes, table.rows)
    axes.set_yticks(range(len(table.rows)), [row.label for row in table.rows])
    axes.set_ylim(len(table.rows) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0, pad=8)
    # on a separate line: the figure is too narrow for both
    notes = ["squares: less often"] * any(row.ratio < 1 for row in table.rows)
    notes += [f"* fewer than {MIN_WORDS} words"] * any(row.few for row in table.rows)
    text = "Highest gate of the sentence: times as often as by chance (95 % interval)"
    axes.set_xlabel("\n".join([text, "   ".join(notes)] if notes else [text]))
    axes.set_ylabel("Part of speech of the target word")
    axes.set_title(fit_text(system, 4.2), loc="left", fontsize=9)
    _write(axes, 1, "axes fraction", "% of sentences\n(by chance)", above=6)
    return figure


def _draw_row(axes: Axes, place: int, row: TagRow) -> None:
    colour = ONE if row.ratio >= 1 else OTHER
    if row.interval:
        axes.hlines(place, *row.interval, color=colour, linewidth=1.6)
    # shapes, so that colour is not needed; clip_on would cut a mark at 0 in half
    shape = "o" if row.ratio >= 1 else "s"
    (mark,) = axes.plot(row.ratio, place, shape, color=colour, markersize=5.5, clip_on=False, zorder=3)
    if row.few:
        mark.set_markerfacecolor("white")
    _write(axes, place, "data", f"{100 * row.highest:.1f} ({100 * row.expected:.1f})")


def _draw_second(axes: Axes, rows: list[TagRow]) -> None:
    """Draw the ratios without punctuation, if there is punctuation."""
    known = [(row.unpunctuated, place) for place, row in enumerate(rows) if row.unpunctuated is not None]
    if not known or len(known) == len(rows):
        return
    ratios, places = zip(*known, strict=True)
    label = "without punctuation"
    axes.plot(
        ratios, places, "D", color=INK, markerfacecolor="none", markersize=4, clip_on=False, zorder=4, label=label
    )
    axes.legend(fontsize=8)


def _write(axes: Axes, y: float, of: str, text: str, *, above: float = 0) -> None:
    """Write text to the right of the axes."""
    axes.annotate(
        text,
        (1, y),
        xycoords=("axes fraction", of),
        xytext=(6, above),
        textcoords="offset points",
        va="bottom" if above else "center",
        fontsize=8,
        color=INK,
    )
