"""The figure of the README: each system's difference to its baseline with its interval, a row each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from results_statistics import Line, Results, seeds_of

_COLOURS = {"right": "#2166ac", "none": "#4d9221", "wrong": "#b35806", "mixture": "#762a83"}
_NAMES = {"right": "with trees", "none": "without trees", "wrong": "with wrong trees", "mixture": "the best mixture"}
_NOT_REAL = 0.45


def draw(found: Sequence[tuple[Results, list[Line]]], path: Path) -> None:
    """Draw a panel for each comparison, the largest gain on top; colours tell which trees a system has."""
    most = max(sum(line.difference is not None for line in lines) for _, lines in found)
    figure = Figure(figsize=(5.6 * len(found), 1.2 + 0.2 * most), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for panel, (results, lines) in zip(panels, found, strict=True):
        _draw(panel, results, lines)
    # without the version of matplotlib, the same results give the same file
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _draw(panel: Axes, results: Results, lines: Sequence[Line]) -> None:
    shown = sorted((line for line in lines if line.difference), key=lambda line: line.difference.value)  # type: ignore[union-attr]
    for row, line in enumerate(shown):
        found = line.difference
        assert found is not None
        colour = _COLOURS[results.kind(line.system)]
        strength = 1.0 if found.is_real else _NOT_REAL
        panel.plot([found.low, found.high], [row, row], color=colour, alpha=strength, linewidth=1.6)
        panel.plot([found.value], [row], "o", color=colour, alpha=strength, markersize=4)
    marks = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=_NAMES[kind])
        for kind, colour in _COLOURS.items()
        if results.of_trees(lines, kind)
    ]
    panel.legend(handles=marks, fontsize=7.5, frameon=False, loc="lower right")
    panel.axvline(0, color="#888888", linewidth=0.8)
    panel.set_yticks(range(len(shown)), [_name(results, line) for line in shown], fontsize=7.5)
    panel.set_ylim(-0.7, len(shown) - 0.3)
    seeds = seeds_of(lines)
    panel.set_title(f"{results.plan.title}, {seeds} seed{'s' * (seeds != '1')}", fontsize=10)
    panel.set_xlabel("BLEU minus that of the plain model, 95 % interval", fontsize=8.5)
    panel.tick_params(axis="x", labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _name(results: Results, line: Line) -> str:
    lstm = results.runs[line.system][0]["architecture"] == "lstm"
    return f"{line.system} (LSTM)" if lstm else line.system
