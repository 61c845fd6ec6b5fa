"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import numpy as np
from measuring import Row, table
from results_compared import Results, read_results
from results_statistics import SIGNIFICANT, Difference, average_difference
from results_stored import unpacked
from results_times import read_timed, times

from synmt.reporting.values import Column, Table, Value, Written

_COLUMNS = {
    "difference": Column(title="", signed=True),
    "95 % interval": Column(title="", signed=True),
    "p": Column(title="", kind="p"),
    "significant from": Column(title="", digits=2),
    "exact match": Column(title="", kind="share", digits=1),
    "more parameters": Column(title="", kind="share", digits=1, signed=True),
    "validation loss": Column(title="", digits=4),
}
"""How columns are written, by what their titles begin with, up to a comma."""
_SHORT = ("system", "seeds", "BLEU", "±", "difference", "95 % interval", "p")
_STAR = f"*: p < {SIGNIFICANT}"
Weights = Mapping[str, float]


def main_table(results: Results) -> Table:
    """Show scores, differences and costs of all systems, each baseline first."""
    plan, timed = results.plan, read_timed(results.plan)
    tests = next(iter(results.runs.values()))[0]["tests"]
    notes = [_STAR, f"`BLEU|{tests[plan.test]['scores']['bleu']['signature']}`"]
    planned = len(results.tested)
    notes.append(f"p is corrected for the {planned} comparisons that are planned (Dunnett).")
    alike = ", ".join(f"{group} p = {p:.2g}" for group, p in results.varying().items())
    notes.append(f"Do seeds vary alike? Bartlett's test: {alike or 'too few seeds'}.")
    if timed:
        notes.append(f"Time: interleaved, processor time, on {timed['machine']}, float32.")
    return table(list(_rows(results).values()), *notes, forms=_COLUMNS)


def short_table(results: Results, systems: Collection[str]) -> Table:
    """Show scores and differences of some systems."""
    rows = [row for system, row in _rows(results).items() if system in systems]
    return table([{title: row[title] for title in _SHORT} for row in rows], _STAR, forms=_COLUMNS)


@cache
def _rows(results: Results) -> dict[str, Row]:
    """Return scores, differences and costs of each system."""
    plan, rows, ratios = results.plan, dict[str, Row](), times(results.plan)
    comparison = results.tests[plan.test]
    differences = {test: results.differences(other) for test, other in results.tests.items()}
    for system, runs in results.runs.items():
        base, scores = plan.baseline(system), comparison.scores[system]
        row: Row = {"system": system, "trees": plan.trees[system]}
        row["compared with"] = base if base != system else None
        row |= {"seeds": len(scores), "BLEU": comparison.mean(system)}
        row["±"] = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
        row |= _difference(differences[plan.test].get(system))
        if system in results.unstable:
            row |= {"95 % interval": None, "p": "unstable", "significant from": None}
        exact = [unpacked(run["tests"][plan.test]["exact"]).mean() for run in runs]
        row["exact match"] = float(np.mean(exact))
        for test in [*results.tests][1:]:
            row[f"BLEU, {test}"] = results.tests[test].mean(system)
            row[f"difference, {test}"] = _starred(differences[test].get(system))
        row["time of a step"], row["time, 95 % interval"] = ratios.get(system, (None, None))
        row["parameters"] = runs[0]["weights"]
        if base != system and base in results.runs:
            row["more parameters"] = runs[0]["weights"] / results.runs[base][0]["weights"] - 1
        rows[system] = row
    return rows


def _difference(found: Difference | None, of_test: str = "") -> Row:
    """Return a difference, its interval and its p; titles of columns end in the test set."""
    return {
        f"difference{of_test}": _starred(found),
        f"95 % interval{of_test}": found.interval if found else None,
        f"p{of_test}": found.p if found else None,
        f"significant from{of_test}": found.visible or None if found else None,
    }


def _starred(found: Difference | None) -> Value:
    if found and found.is_significant:
        return Written(found.value, f"{found.value:+.2f} *")
    return found.value if found else None


def split_table(results: Results) -> Table:
    """Show scores and significant differences on each split of the test set."""
    rows: dict[str, Row] = {name: {"system": name} for name in results.runs if results.splits}
    for split, comparison in results.splits.items():
        differences = results.differences(comparison)
        for system, row in rows.items():
            found = differences.get(system)
            significant = found if found and found.is_significant else None
            row |= {split: comparison.mean(system), f"difference, {split}": _starred(significant)}
    return table([*rows.values()], _STAR, forms=_COLUMNS, others=Column(title="", digits=1))


def further_tables(results: Results) -> dict[str, Table]:
    """Make the tables of other differences, by their titles: between the parser's trees and others
    in the same models, and those that the plan names."""
    averages, random, planned = dict[str, Weights](), dict[str, Weights](), dict[str, Weights]()
    for trees, pairs in results.other_trees().items():
        averages[f"{trees}: {', '.join(pairs)}"] = average_difference([*pairs], [*pairs.values()])
        if trees.startswith("random"):
            random |= {system: {system: 1.0, other: -1.0} for system, other in pairs.items()}
    stable = results.runs.keys() - results.unstable
    for title, (first, second) in results.plan.differences.items():
        if stable.issuperset([*first, *second]):
            planned[title] = average_difference(first, second)
    return {
        "the parser's trees against others, on average": _weighted(results, averages),
        "the parser's trees against random ones": _weighted(results, random),
        "further differences": _weighted(results, planned, tested=False),
    }


def _weighted(results: Results, sums: Mapping[str, Weights], *, tested: bool = True) -> Table:
    """Show weighted sums of the BLEU of systems on each test set, a row each.

    tested: whether p is adjusted for their number; otherwise there is none.
    """
    rows: dict[str, Row] = {title: {"models": title} for title in sums}
    for test, comparison in results.tests.items():
        differences = (
            comparison.differences(sums)
            if tested
            else {title: comparison.difference(weights) for title, weights in sums.items()}
        )
        of_test = "" if test == results.plan.test else f", {test}"
        for title, difference in differences.items():
            rows[title] |= _difference(difference, of_test)
    return table(list(rows.values()), *([_STAR] if tested else []), forms=_COLUMNS)


def validation_table(results: Results) -> Table:
    """Show the lowest validation losses of the systems that the plan names, with the first seed."""
    losses = dict[str, float]()
    for system in results.plan.validation:
        for run in read_results(results.plan, system)[:1]:
            losses[system] = min(loss for _, loss in run["validation"])
    ordered = sorted(losses, key=losses.__getitem__)
    rows = [{"system": system, "validation loss": losses[system]} for system in ordered]
    return table(rows, forms=_COLUMNS)
