"""The tables of results/ in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from results_statistics import Line, Results

from synmt.evaluation.report import format_p_value

REAL = 0.05
"""A difference is called real if its adjusted p is below this."""


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table whose first column has text and whose other ones have numbers."""
    yield f"| {' | '.join(columns)} |"
    yield f"| --- |{' --: |' * (len(columns) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def difference_cells(line: Line) -> list[str]:
    """Write difference, interval and p; a real difference is bold, a baseline has none."""
    found = line.difference
    if found is None:
        return ["", "", ""]
    value = signed(found.value)
    return [
        f"**{value}**" if found.p < REAL else value,
        f"{signed(found.low)} to {signed(found.high)}",
        format_p_value(found.p),
    ]


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def main_table(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    """Write scores, differences and costs of all systems, the first baseline first."""
    tests = [name for name in next(iter(results.runs.values()))[0]["tests"] if name != results.plan.test]
    others = {test: {line.system: line for line in results.bleu(test)} for test in tests}
    exact = {line.system: line for line in results.exact(results.plan.test)}
    contrast = all("contrast" in run for runs in results.runs.values() for run in runs)
    columns = ["system", "seeds", "BLEU", "±", "difference", "95 % interval", "p (Holm)", "exact match"]
    for test in tests:
        columns += [f"BLEU, {test}", "difference"]
    columns += ["contrasts"] * contrast + ["weights", "training", "translation", "steps to the loss of plain"]
    rows = []
    for line in lines:
        deviation = "" if line.deviation is None else f"{line.deviation:.2f}"
        row = [line.system, str(len(line.scores)), f"{line.mean:.2f}", deviation, *difference_cells(line)]
        row.append(f"{exact[line.system].mean:.1f} %")
        for test in tests:
            other = others[test][line.system]
            row += [f"{other.mean:.2f}", difference_cells(other)[0]]
        if contrast:
            row.append(f"{_contrast(results.runs[line.system]):.1f} %")
        rows.append([*row, *_costs(results, line.system)])
    yield from markdown(columns, rows)
    yield ""
    yield from _legend(results, lines)


def _contrast(runs: Sequence[dict[str, Any]]) -> float:
    right, count = (sum(run["contrast"]["all"][place] for run in runs) for place in (0, 1))
    return 100 * right / count


def _costs(results: Results, system: str) -> list[str]:
    """Write weights, processor time of training and translation over the baseline's, and steps to its best loss."""
    runs, base = results.runs[system], results.runs.get(results.baseline(system), [])
    own, ratio = (
        (_mean([run["training"]["processor_seconds"] for run in members]), _mean(_per_sentence(members, results)))
        for members in (runs, base)
    )
    cells = [f"{runs[0]['weights']:,}"]
    cells += [f"{one / other:.2f}" if other else "" for one, other in zip(own, ratio, strict=True)]
    best = min((loss for run in base for _, loss in run["validation"]), default=0.0)
    reached = [next((step for step, loss in run["validation"] if loss <= best), None) for run in runs]
    return [*cells, f"{sum(reached) / len(reached):,.0f}" if all(reached) else "–"]  # type: ignore[arg-type]


def _per_sentence(runs: Sequence[dict[str, Any]], results: Results) -> list[float]:
    costs = [run["tests"][results.plan.test]["cost"] for run in runs]
    return [cost["processor_seconds"] / cost["sentences"] for cost in costs]


def _mean(seconds: Sequence[float]) -> float:
    return sum(seconds) / len(seconds) if seconds else 0.0


def _legend(results: Results, lines: Sequence[Line]) -> Iterator[str]:
    test = next(iter(results.runs.values()))[0]["tests"][results.plan.test]
    compared = sum(line.difference is not None for line in lines)
    bases = " and ".join(dict.fromkeys(results.baseline(line.system) for line in lines))
    luck = (
        " and the luck of training (the variance of the seeds, pooled over all systems)"
        if any(line.difference and line.difference.seeded for line in lines)
        else " only, since no system has two seeds yet"
    )
    yield (
        f"`BLEU|{test['scores']['bleu']['signature']}`. Differences are to {bases}, bold if p < {REAL} after Holm's "
        f"correction ({compared} comparison{'s' * (compared != 1)}). Intervals cover the choice of sentences{luck}. "
        "±: standard deviation of the seeds. Training and translation: processor time over that of the baseline, while "
        "other work ran on the machine; neither has the time of parsing if the trees were in the cache. Steps: the "
        "first validation with a loss as low as the lowest of the baseline."
    )


def attractor_table(results: Results) -> Iterator[str]:
    """Write exact match by attractors."""
    test = results.plan.test
    values = sorted(set(results.labels[test]["attractors"]))
    short = results.group(test, "split", ["seen", "combination", "attractors"])
    groups = [results.exact(test, results.group(test, "attractors", [value]) & short) for value in values]
    rows = [[lines[0].system, *(_exact_cell(line) for line in lines)] for lines in zip(*groups, strict=True)]
    yield "Exact match in percent by the number of attractors, without long sentences; in brackets the difference to"
    yield "the baseline where it is real, corrected within each column:"
    yield ""
    yield from markdown(["system", *(f"{value} attractor{'s' * (value != '1')}" for value in values)], rows)


def _exact_cell(line: Line) -> str:
    real = line.difference is not None and line.difference.p < REAL
    return f"{line.mean:.1f}" + (f" (**{signed(line.difference.value)}**)" if real and line.difference else "")
