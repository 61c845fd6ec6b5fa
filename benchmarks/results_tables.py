"""The tables of results/ in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from results_found import TESTED, Results
from results_plan import Plan
from results_statistics import REAL, Difference, Line, seeded

from synmt.errors import counted
from synmt.evaluation.cost import first_step
from synmt.evaluation.report import format_p_value


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table whose first column has text and whose other ones have numbers."""
    yield f"| {' | '.join(columns)} |"
    yield f"| --- |{' --: |' * (len(columns) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def difference_cells(found: Difference | None, *, unstable: bool = False) -> list[str]:
    """Write difference, interval and p; a real difference is bold; a baseline has none, an unstable system only it."""
    if found is None:
        return ["", "", ""]
    value = signed(found.value)
    if unstable:
        return [value, "", ""]
    p = "" if found.p is None else format_p_value(found.p)
    return [f"**{value}**" if found.is_real else value, interval(found), p]


def interval(found: Difference) -> str:
    """Write the 95 % interval of a difference."""
    return f"{signed(found.low)} to {signed(found.high)}"


def scores_of(line: Line) -> str:
    """Write the score of each seed."""
    return ", ".join(f"{score:.1f}" for score in line.scores)


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def main_table(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Write scores, differences and costs of all systems, the first baseline first."""
    tests = [name for name in results.bleu if name != results.plan.test]
    others = {test: {line.system: line for line in results.bleu[test]} for test in tests}
    exact = {line.system: line for line in results.compared(results.plan.test, "exact")}
    contrast = _have_contrasts(results)
    columns = ["system", "trees", "seeds", "BLEU", "±", "difference", "95 % interval", "p (Holm)", "exact match"]
    for test in tests:
        columns += [f"BLEU, {test}", "difference"]
    columns += ["contrasts"] * contrast + ["weights", "steps to the loss of plain"]
    rows = []
    for line in lines:
        deviation = "" if line.deviation is None else f"{line.deviation:.2f}"
        row = [line.system, results.trees[line.system], str(len(line.scores)), f"{line.mean:.2f}", deviation]
        row += difference_cells(line.difference, unstable=line.unstable)
        row.append(f"{exact[line.system].mean:.1f} %")
        for test in tests:
            other = others[test][line.system]
            row += [f"{other.mean:.2f}", difference_cells(other.difference)[0]]
        if contrast:
            row.append(f"{_contrast(results.runs[line.system]):.1f} %")
        rows.append([*row, *_costs(results, line.system)])
    yield from markdown(columns, rows)
    yield ""
    yield from _legend(results, lines)


def _have_contrasts(results: Results) -> bool:
    return all("contrast" in run for runs in results.runs.values() for run in runs)


def _contrast(runs: Sequence[dict[str, Any]]) -> float:
    right, count = (sum(run["contrast"]["all"][place] for run in runs) for place in (0, 1))
    return 100 * right / count


def _costs(results: Results, system: str) -> list[str]:
    """Write the number of weights, and the steps to the baseline's best loss, which are of other systems only."""
    runs, base = results.runs[system], results.runs.get(results.baseline(system), [])
    best = min((loss for run in base for _, loss in run["validation"]), default=0.0)
    reached = [step for run in runs if (step := first_step(run["validation"], best))]
    shown = len(reached) == len(runs) and system != results.baseline(system)
    steps = f"{sum(reached) / len(reached):,.0f}" if shown else "–"
    return [f"{runs[0]['weights']:,}", steps]


def _legend(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    test = next(iter(results.runs.values()))[0]["tests"][results.plan.test]
    contrasts = (
        "Contrasts: how often the correct translation of a "
        "[pair](controlled.md#which-translation-does-the-model-prefer) is the more probable one. "
        if _have_contrasts(results)
        else ""
    )
    tested = len(results.of_kind(lines, *TESTED))
    luck = (
        " and the luck of training (the variance of the seeds, pooled over the systems of an architecture; those with "
        "random trees are pooled apart if they are many)"
        if seeded(lines)
        else " only; since no system has two seeds yet, no difference is called significant"
    )
    yield (
        f"`BLEU|{test['scores']['bleu']['signature']}`. Differences are from `{lines[0].system}` or the baseline named "
        f"below, bold if p < {REAL} after Holm's correction ({counted(tested, 'comparison')}; systems with other trees "
        "than the parser's, and repeats in another precision, are not tested here). Intervals cover the choice of "
        f"sentences{luck}. "
        "±: standard deviation of the seeds. Trees: which ones a system reads or learns from. "
        f"{contrasts}"
        "Steps: the first validation with a loss as low as the lowest of the "
        "baseline. Times of these runs (in `results/`) cannot be compared, because their machine had other work; "
        "[the cost of a step](#what-a-variant-costs-in-training) was measured separately."
    )


def control_title(results: Results) -> str:
    """Write the heading of `control_tables`."""
    return f"{results.plan.title}: the parser's trees against others"


def anchor(heading: str) -> str:
    """Write the target of a link to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


_COMPARED = ("difference", "95 % interval", "p (Holm)")


def control_tables(results: Results) -> Iterator[str]:
    """Write what the same models gain with the parser's trees over others: on average, and each over random ones."""
    first, *others = sorted(results.bleu, key=lambda test: test != results.plan.test)
    columns = [*_COMPARED, *(cell for test in others for cell in (f"difference, {test}", *_COMPARED[1:]))]
    yield "Average gain in BLEU of the parser's trees over [other trees](systems/controls.md) in the same models:"
    yield ""
    averages = {test: results.of_other_trees(test) for test in (first, *others)}
    rows = [
        [trees, ", ".join(pairs), *(cell for test in averages for cell in difference_cells(averages[test][trees]))]
        for trees, pairs in results.other_trees.items()
    ]
    yield from markdown(["other trees", "systems", *columns], rows)
    compared = {test: results.of_random_trees(test) for test in averages}
    if not compared[first]:
        return
    yield from ("", "The gain of each system with the parser's trees over random ones:", "")
    lines = {line.system: line for line in results.bleu[first]}
    rows = []
    for own, wrong in results.random_trees.items():
        both = [lines[own], lines[wrong]]
        row = [own, ", ".join(str(len(line.scores)) for line in both), *(f"{line.mean:.2f}" for line in both)]
        rows.append([*row, *(cell for test in compared for cell in difference_cells(compared[test][own]))])
    yield from markdown(["system", "seeds", "parser's trees", "random trees", *columns], rows)


def search_table(plan: Plan) -> Iterator[str]:
    """Write which mixtures were tried, the best one first."""
    tried, found = plan.tried(), plan.found()
    which = f"`{found}`, the best one, is in the tables above" if found else "the search is not finished"
    yield f"The lowest validation loss of each mixture, in nats per piece, with the first seed; {which}:"
    yield ""
    losses = {**tried, **{f"{name} alone": loss for name, loss in plan.parts().items()}}
    rows = [[name, f"{loss:.4f}"] for name, loss in sorted(losses.items(), key=lambda one: one[1])]
    yield from markdown(["mixture", "validation loss"], rows)


def group_tables(results: Results) -> Iterator[str]:
    """Write a table for each label by which the plan groups a test set."""
    for grouping in results.groupings:
        yield from ("", f"{grouping.title}:", "")
        systems = zip(*grouping.groups.values(), strict=True)
        rows = [[lines[0].system, *map(_group_cell, lines)] for lines in systems]
        yield from markdown(["system", *grouping.groups], rows)


def _group_cell(line: Line) -> str:
    return f"{line.mean:.1f}" + (f" ({difference_cells(line.difference)[0]})" if line.is_real else "")
