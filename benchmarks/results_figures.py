"""The figures of the comparison: gains, BLEU with other trees, and gains on each kind of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from results_compared import Results
from results_statistics import Difference, average_difference

from synmt.reporting.figures import INK, ONE, OTHER, STYLE, series_style

_WIDTH, _ROW = 8.7, 0.32
"""Inches: of a page of GitHub, whose text is as large as that of the figures, and of a row."""
_UNSEEN = "#DDDDDD"
_KINDS = ("gold", "parser", "left", "rewired 50%", "right", "shuffled", "random")
_NAMES = {"left": "left\nchain", "right": "right\nchain", "rewired 50%": "half\nrewired"}
_COLOURS = {"none": OTHER, "parser": ONE}
"""Of each kind of systems; without trees first."""


def draw_all(found: Sequence[Results], folder: Path) -> None:
    """Draw the figures of what there is."""
    gaining = [results for results in found if results.gains]
    many = [results for results in found if len(results.other_trees()) > 1]
    split = [results for results in gaining if results.splits]
    with mpl.rc_context({**STYLE, "font.size": 11}):
        for name, drawn in (
            ("does-syntax-help", [_gains(gaining)] if gaining else []),
            ("results-trees", [_other_trees(many[0])] if many else []),
            ("results-texts", [_texts(split[0])] if split else []),
        ):
            for figure in drawn:
                # without the version of matplotlib, the same results give the same file
                figure.savefig(folder / f"{name}.png", dpi=100, metadata={"Software": None})


def _gains(found: Sequence[Results]) -> Figure:
    """Draw the differences of systems from their baselines, a panel for each comparison."""
    rows = [list(_rows(results)) for results in found]
    height = 1.6 + _ROW * sum(map(len, rows)) + 0.5 * len(found)
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    panels = figure.subplots(
        len(found), sharex=True, squeeze=False, height_ratios=[len(part) + 1 for part in rows]
    )[:, 0]
    for results, panel, part in zip(found, panels, rows, strict=True):
        panel.set_title(results.plan.title, loc="left", fontsize=11)
        panel.set_yticks(range(len(part)), [name for name, _, _ in part])
        panel.set_ylim(len(part) - 0.4, -0.6)
        panel.grid(visible=False)
        panel.margins(x=0.05)
        panel.axvline(0, color=INK, linewidth=0.8)
        for row, (_, gain, kind) in enumerate(part):
            panel.barh(row, 2 * gain.visible, left=-gain.visible, height=1, color=_UNSEEN)
            half = gain.interval.high - gain.value
            panel.errorbar(gain.value, row, xerr=half, fmt="o", color=_COLOURS[kind], capsize=3)
            text = f"{gain.value:+.2f}{' *' if gain.is_significant else ''}".replace("-", "−")
            panel.annotate(text, (1.01, row), xycoords=("axes fraction", "data"), va="center")
    panels[-1].set_xlabel("BLEU minus that of the plain model, or the one named; 95 % interval")
    marks = [Patch(color=ONE, label="with trees")]
    marks += [Patch(color=OTHER, label="without trees")]
    marks += [Patch(color=_UNSEEN, label="too small to be significant (*: p < 0.05)")]
    figure.legend(handles=marks, frameon=False, loc="outside lower center", ncols=3, fontsize=10)
    return figure


def _rows(results: Results) -> Iterator[tuple[str, Difference, str]]:
    """Yield the names, the gains and the kinds of what the plan wants to show."""
    plan, gains = results.plan, results.gains
    stable = (system for system in gains if system not in results.unstable)
    for name in plan.figure or sorted(stable, key=lambda system: -gains[system].value):
        if name in gains:
            base = plan.baseline(name)
            label = name if plan.baseline(base) == base else f"{name} minus {base}"
            yield label, gains[name], "none" if plan.kind(name) == "none" else "parser"
        elif name in plan.differences:
            weights = average_difference(*plan.differences[name])
            if results.runs.keys() >= weights.keys():
                yield name, results.tests[plan.test].difference(weights), "parser"


def _other_trees(results: Results) -> Figure:
    """Draw the BLEU of each model with the parser's trees and with others."""
    figure = Figure(figsize=(_WIDTH, 4.4), layout="constrained")
    panel, others = figure.subplots(), results.other_trees()
    scores, found = results.tests[results.plan.test], dict[str, dict[str, float]]()
    for trees, pairs in others.items():
        for system, other in pairs.items():
            if trees in _KINDS:
                points = found.setdefault(system, {"parser": scores.mean(system)})
                points[trees] = scores.mean(other)
    ordered = sorted(found, key=lambda system: -found[system]["parser"])
    for number, system in enumerate(ordered, start=1):
        shown = [kind for kind in _KINDS if kind in found[system]]
        places = [_KINDS.index(kind) for kind in shown]
        values = [found[system][kind] for kind in shown]
        panel.plot(places, values, **{**series_style(number), "linestyle": "-"}, label=system)
    for level, dashes in (("plain", "--"), ("relative", ":")):
        if level in results.runs:
            of_level = scores.mean(level)
            panel.axhline(of_level, color=INK, linestyle=dashes, label=f"{level} (no trees)")
    panel.set_xticks(range(len(_KINDS)), [_NAMES.get(kind, kind) for kind in _KINDS])
    panel.set_ylabel("BLEU")
    panel.set_title(results.plan.title, loc="left", fontsize=11)
    figure.legend(frameon=False, loc="outside right center", fontsize=10)
    return figure


def _texts(results: Results) -> Figure:
    """Draw the differences of systems from their baseline on each split, and on other test sets."""
    figure = Figure(figsize=(_WIDTH, 4.2), layout="constrained")
    panel, plan = figure.subplots(), results.plan
    others = {name: test for name, test in results.tests.items() if name != plan.test}
    texts, systems = {**results.splits, **others}, [*results.gains]
    if plan.figure:
        systems = [name for name in plan.figure if name in results.gains]
    compared = [results.differences(text) for text in texts.values()]
    for number, system in enumerate(systems, start=1):
        gains = [differences[system] for differences in compared]
        shift = 0.8 * (number / (1 + len(systems)) - 0.5)
        places = [place + shift for place in range(len(texts))]
        halves = [gain.interval.high - gain.value for gain in gains]
        values = [gain.value for gain in gains]
        panel.errorbar(places, values, yerr=halves, **series_style(number), label=system)
    base = plan.baseline(systems[0])
    names = [f"{name}\n({text.mean(base):.1f})" for name, text in texts.items()]
    panel.set_xticks(range(len(texts)), names)
    panel.axhline(0, color=INK, linewidth=0.8)
    panel.set_ylabel(f"BLEU minus that of {base}")
    panel.set_xlabel(f"kind of sentence (BLEU of {base})")
    panel.set_title(plan.title, loc="left", fontsize=11)
    figure.legend(frameon=False, loc="outside right center", fontsize=10)
    return figure
