"""The rows of results.csv: the systems of a comparison on each test set, and on each of its splits.

comparison, text, system    BLEU is of a text: a test set, or `test set, split`
trees, compared with        which trees a model reads, and the system of the difference
seeds, BLEU, deviation      how many, the mean over them and the standard deviation
difference, low, high       in BLEU, with the 95 % interval
p, significant from         p is corrected; the smallest difference that would be significant
exact match                 percentage of translations that equal the reference
parameters, more            their number, and how many percent more than the baseline's
loss                        the lowest validation loss of the first seed, nats per piece

Differences of averages of systems are named by both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache

import numpy as np
from measuring import Row, table
from results_compared import Results, read_results
from results_statistics import SIGNIFICANT, Comparison, Difference, average_difference
from results_stored import unpacked

from synmt.reporting.values import Column, Interval, Table, Written

_TITLES = ("system", "seeds", "BLEU", "±", "difference", "95 % interval", "p")
_FORMS = {
    "difference": Column(title="", signed=True),
    "95 % interval": Column(title="", signed=True),
    "p": Column(title="", kind="p"),
}
Weights = Mapping[str, float]


@cache
def rows(results: Results) -> list[Row]:
    """Make all rows of a comparison."""
    texts = {**results.tests, **results.splits}
    found = [row for text in texts for row in _systems(results, text, texts[text])]
    found += [row for text in results.tests for row in _sums(results, results.tests[text], text)]
    for system in results.plan.systems:
        for run in read_results(results.plan, system)[:1]:
            loss = min(loss for _, loss in run["validation"])
            found.append({"text": "validation", "system": system, "loss": loss})
    return [{"comparison": results.plan.corpus, **row} for row in found]


def _systems(results: Results, text: str, comparison: Comparison) -> Iterator[Row]:
    """Yield scores and differences of all systems on a text; parameters are in the rows of the
    main test set."""
    plan, differences = results.plan, results.differences(comparison)
    for system, runs in results.runs.items():
        base, scores = plan.baseline(system), comparison.scores[system]
        row: Row = {"text": text, "system": system, "trees": plan.trees[system]}
        row |= {"compared with": base if base != system else None, "seeds": len(scores)}
        row |= {"BLEU": comparison.mean(system)}
        row |= {"deviation": float(np.std(scores, ddof=1)) if len(scores) > 1 else None}
        row |= _difference(differences.get(system))
        if system in results.unstable:
            row |= {"low": None, "high": None, "p": "unstable"}
        if text in results.tests:
            exact = [unpacked(run["tests"][text]["exact"]).mean() for run in runs]
            row["exact match"] = 100 * float(np.mean(exact))
        if text == plan.test:
            weights = runs[0]["weights"]
            more = weights / results.runs.get(base, runs)[0]["weights"] - 1
            row |= {"parameters": weights, "more": 100 * more}
        yield row


def _difference(found: Difference | None) -> Row:
    if not found:
        return {}
    interval = found.interval
    visible = found.visible or None
    row: Row = {"difference": found.value, "low": interval.low, "high": interval.high}
    return row | {"p": found.p, "significant from": visible}


def _sums(results: Results, comparison: Comparison, text: str) -> Iterator[Row]:
    """Yield other differences: between the parser's trees and others in the same models, tested
    together, and those that the plan names, which are not tested."""
    averages, single, planned = dict[str, Weights](), dict[str, Weights](), dict[str, Weights]()
    for trees, pairs in results.other_trees().items():
        title = f"parser minus {trees}: {', '.join(pairs)}"
        averages[title] = average_difference([*pairs], [*pairs.values()])
        if trees.startswith("random"):
            for system, other in pairs.items():
                single[f"{system} minus {other}"] = {system: 1.0, other: -1.0}
    stable = results.runs.keys() - results.unstable
    for title, (first, second) in results.plan.differences.items():
        if stable.issuperset([*first, *second]):
            planned[title] = average_difference(first, second)
    tested = comparison.differences(averages) | comparison.differences(single)
    named = {title: comparison.difference(weights) for title, weights in planned.items()}
    for title, found in (tested | named).items():
        yield {"text": text, "system": title, **_difference(found)}


def short_table(results: Results, systems: Collection[str]) -> Table:
    """Show scores and differences of some systems on the main test set."""
    shown: list[Row] = []
    for row in rows(results):
        if row["text"] == results.plan.test and row["system"] in systems:
            row = {**row, "±": row["deviation"]}
            p, low, high = (row.get(key) for key in ("p", "low", "high"))
            if isinstance(low, float) and isinstance(high, float):
                row["95 % interval"] = Interval(low, high)
            if isinstance(p, float) and p < SIGNIFICANT:
                row["difference"] = Written(row["difference"], f"{row['difference']:+.2f} *")
            shown.append({title: row.get(title) for title in _TITLES})
    return table(shown, f"*: p < {SIGNIFICANT}", forms=_FORMS)
