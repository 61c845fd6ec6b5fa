"""The tables of results/ in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from results_found import Results
from results_phrases import interval, signed
from results_plan import Plan
from results_statistics import REAL, Difference, Line, any_seeded

from synmt.errors import UsageError, counted
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


def main_table(results: Results, lines: Sequence[Line], *, in_full: bool = True) -> Iterator[str]:
    """Write scores, differences and costs of all systems, the first baseline first.

    in_full: whether to explain all columns below it.
    """
    tests = [name for name in results.bleu if name != results.plan.test]
    others = {test: {line.system: line for line in results.bleu[test]} for test in tests}
    exact = {line.system: line for line in results.compared(results.plan.test, "exact")}
    with_contrasts, times = _have_contrasts(results), results.times.of_system
    columns = ["system", "trees", "seeds", "BLEU", "±", "difference", "95 % interval", "p (Holm)", "exact match"]
    for test in tests:
        columns += [f"BLEU, {test}", f"difference, {test}"]
    columns += ["contrasts"] * with_contrasts + ["time of a step"] * bool(times)
    columns += ["weights", "steps to the baseline's loss"]
    rows = []
    for line in lines:
        deviation = "" if line.deviation is None else f"{line.deviation:.2f}"
        row = [line.system, results.systems.trees[line.system], str(len(line.scores)), f"{line.mean:.2f}", deviation]
        row += difference_cells(line.difference, unstable=line.unstable)
        row.append(f"{exact[line.system].mean:.1f} %")
        for test in tests:
            other = others[test][line.system]
            row += [f"{other.mean:.2f}", difference_cells(other.difference)[0]]
        if with_contrasts:
            row.append(_contrast(results.runs[line.system], "all"))
        if times:
            row.append(times[line.system].written() if line.system in times else "")
        rows.append([*row, *_costs(results, line.system)])
    yield from markdown(columns, rows)
    yield ""
    yield from _legend(results, lines, in_full=in_full)


def _have_contrasts(results: Results) -> bool:
    return all("contrast" in run for runs in results.runs.values() for run in runs)


def _contrast(runs: Sequence[dict[str, Any]], label: str) -> str:
    """Write how often the right translation is the more probable one, over the seeds."""
    right, count = (sum(run["contrast"][label][place] for run in runs) for place in (0, 1))
    return f"{100 * right / count:.1f} %"


def _costs(results: Results, system: str) -> list[str]:
    """Write the number of weights, and the steps to the baseline's lowest loss, which are of other systems only."""
    baseline = results.systems.baseline(system)
    lowest = min((loss for _, loss in mean_losses(results, baseline)), default=0.0)
    reached = first_step(mean_losses(results, system), lowest) if system != baseline else None
    return [f"{results.runs[system][0]['weights']:,}", f"{reached:,}" if reached else "–"]


def mean_losses(results: Results, system: str) -> list[tuple[int, float]]:
    """Average the validation losses of a system over its seeds; a training that has ended keeps its last loss."""
    runs = [run["validation"] for run in results.runs.get(system, [])]
    steps = sorted({step for run in runs for step, _ in run})
    return [(step, sum(_loss_at(step, run) for run in runs) / len(runs)) for step in steps]


def _loss_at(step: int, validations: Sequence[tuple[int, float]]) -> float:
    return next((loss for at, loss in reversed(validations) if at <= step), validations[0][1])


def _legend(results: Results, lines: Sequence[Line], *, in_full: bool) -> Iterator[str]:
    """Explain the table; in full only the first of a page."""
    test = next(iter(results.runs.values()))[0]["tests"][results.plan.test]
    signature = f"`BLEU|{test['scores']['bleu']['signature']}`."
    if not any(line.difference for line in lines):
        yield f"{signature} No system can be compared with a plain model yet."
        return
    tests = counted(len(results.design.tested), "comparison")
    if in_full:
        yield (
            f"{signature} Differences are from `{lines[0].system}` or the baseline named below, bold if p < {REAL}. "
            f"p is corrected for the {tests} that are planned (Holm); systems with other trees than the parser's, and "
            "repeats in another precision, are not among them. Each column with differences is corrected on its own. "
            "Intervals are not corrected, so one may exclude 0 although the difference is not significant."
        )
        yield ""
    else:
        yield f"{signature} The columns are those of the first table; p is corrected for {tests}."
    yield " ".join(_legend_of_columns(results, lines, in_full=in_full))


def _legend_of_columns(results: Results, lines: Sequence[Line], *, in_full: bool) -> Iterator[str]:
    if not any_seeded(lines):
        yield (
            "Intervals cover the choice of sentences only; since no system has two seeds yet, no difference is tested."
        )
    elif in_full:
        yield (
            "Intervals cover the choice of sentences and the luck of training: the variance of the seeds, shared by "
            "the systems of an architecture."
        )
    if any_seeded(lines) and any(line.difference and not line.difference.seeded for line in lines):
        yield "Where no system of an architecture has two seeds, they cover the sentences only, and nothing is tested."
    if results.design.controls_apart:
        yield "Controls share a variance of their own."
    if in_full:
        yield (
            "±: standard deviation of the seeds. Trees: which ones a system reads or learns from (induced: its own; "
            "uniform: it reads which words belong to the sentence, not how they are connected). Exact match: how many "
            "translations equal the reference."
        )
        if _have_contrasts(results):
            yield (
                "Contrasts: how often the correct translation of a "
                "[pair](controlled.md#which-translation-does-the-model-prefer) is the more probable one."
            )
    if results.times.of_system:
        how = results.times.how()
        yield f"Time of a step: of the training, relative to the baseline, with the 95 % interval ({how})."
    if in_full:
        yield (
            "Steps: the step at which the validation loss first reaches the lowest one of the baseline, both on "
            "average over the seeds; –: never."
        )


def control_title(results: Results) -> str:
    """Write the heading of `control_tables`."""
    return f"{results.plan.title}: the parser's trees against others"


_COMPARED = ("difference", "95 % interval", "p (Holm)")


def control_tables(results: Results) -> Iterator[str]:
    """Write what the same models gain with the parser's trees over others: on average, and each over random ones."""
    first, *others = sorted(results.bleu, key=lambda test: test != results.plan.test)
    columns = [*_COMPARED, *(cell for test in others for cell in (f"difference, {test}", *_COMPARED[1:]))]
    yield "Average gain in BLEU of the parser's trees over [other trees](systems/controls.md) in the same models:"
    yield ""
    averages = {test: results.of_other_trees(test) for test in (first, *others)}
    rows = []
    for trees, pairs in results.other_trees.items():
        rows.append(_average_row(trees, pairs, [of_test[trees] for of_test in averages.values()]))
        for kept in results.without_chosen(trees):
            rows.append(_average_row(f"{trees}, planned", kept, [results.average(test, kept) for test in averages]))
    yield from markdown(["other trees", "systems", *columns], rows)
    if any(kept for trees in results.other_trees for kept in results.without_chosen(trees)):
        yield from ("", "*Planned*: without the controls that were added because of the scores of their models.")
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


def _average_row(trees: str, pairs: Iterable[str], found: Iterable[Difference]) -> list[str]:
    return [trees, ", ".join(pairs), *(cell for one in found for cell in difference_cells(one))]


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


def contrast_tables(results: Results) -> Iterator[str]:
    """Write how often the right translation is the more probable one, for each label that the plan names."""
    for label in results.plan.contrasts_by if _have_contrasts(results) else ():
        named = next(iter(results.runs.values()))[0]["contrast"]
        chosen = [name for name in named if name.startswith(f"{label}: ")]
        if not chosen:
            raise UsageError(f"no contrasts are labelled '{label}'", where=str(results.plan.path))
        yield from ("", f"How often the correct translation of a contrast is the more probable one, by {label}:", "")
        rows = [[system, *(_contrast(runs, name) for name in chosen)] for system, runs in results.runs.items()]
        yield from markdown(["system", *(name.removeprefix(f"{label}: ") for name in chosen)], rows)
