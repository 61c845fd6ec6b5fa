"""The tables of a comparison."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from measuring import Row, table
from results_compared import Results
from results_plan import Plan
from results_statistics import REAL, Difference, Line, adjusted, average

from synmt.reporting.values import Column, Interval, Table, Value, Written

Tables = Iterator[tuple[str, Table]]
"""Tables and what is written above them."""
_SHARE = Column(title="", kind="share", digits=1)
_SIGNED = Column(title="", signed=True)
_FORMS = {
    **{"difference": _SIGNED, "95 % interval": _SIGNED, "p (Holm)": Column(title="", kind="p")},
    **{"exact match": _SHARE, "contrasts": _SHARE, "last fall of the loss": _SHARE},
    **{"more weights": replace(_SHARE, signed=True), "validation loss": Column(title="", digits=4)},
}
"""How columns are written, by what their titles begin with, up to a comma."""
_STAR = f"*: p < {REAL}"


def difference(found: Difference | None, of_test: str = "", *, unstable: bool = False) -> Row:
    """Return a difference, its interval and its p; a baseline has none, an unstable system only the
    first.

    of_test: the end of the titles of columns.
    """
    cells: list[Value] = [None, None, None]
    if found:
        value = Written(found.value, f"{found.value:+.2f} *") if found.is_real else found.value
        cells = (
            [value, None, "unstable"]
            if unstable
            else [value, Interval(found.low, found.high), found.p]
        )
    titles = (f"{title}{of_test}" for title in ("difference", "95 % interval", "p (Holm)"))
    return dict(zip(titles, cells, strict=True))


def short_table(lines: Iterable[Line]) -> Table:
    """Show the scores and differences of some systems."""
    rows = [{"system": line.system} | _scores(line) for line in lines]
    return table(rows, _STAR, forms=_FORMS)


def _scores(line: Line) -> Row:
    row: Row = {"seeds": len(line.scores), "BLEU": line.mean, "±": line.deviation}
    return row | difference(line.difference, unstable=line.unstable)


def main_table(results: Results) -> Table:
    """Show scores, differences and costs of all systems, each baseline first."""
    rows: list[Row] = []
    for place, line in enumerate(results.lines):
        system, base = line.system, results.systems.baseline(line.system)
        row: Row = {"system": system, "trees": results.systems.trees[system]}
        row |= {"compared with": None if base == system else base} | _scores(line)
        row["exact match"] = _exact(results, system)
        for test, lines in results.bleu.items():
            if test != results.plan.test:
                of_test = difference(lines[place].difference, f", {test}")
                row |= {
                    f"BLEU, {test}": lines[place].mean,
                    f"difference, {test}": of_test[f"difference, {test}"],
                }
        row["contrasts"] = contrast(results, system, "all")
        rows.append(row | _costs(results, system, base))
    test = next(iter(results.runs.values()))[0]["tests"][results.plan.test]
    notes = [_STAR, f"`BLEU|{test['scores']['bleu']['signature']}`"]
    notes.append(
        f"p is corrected for the {len(results.design.tested)} comparisons that are planned."
    )
    if results.times:
        threads = results.timed["threads"]
        on = f"processor time, {threads} thread{'s' * (threads != 1)} of " if threads else ""
        notes.append(
            f"Time: interleaved, {on}{results.timed['machine']}, {results.timed['precision']}."
        )
    return table(rows, *notes, forms=_FORMS)


def _exact(results: Results, system: str) -> float:
    shares = [run["tests"][results.plan.test] for run in results.runs[system]]
    return float(np.mean([results.counts(test, "exact")[:, 0].mean() for test in shares]))


def contrast(results: Results, system: str, label: str) -> float | None:
    """Compute how often the right translation is the more probable one, over the seeds; None if it
    is not known."""
    counts = [run["contrast"][label] for run in results.runs[system] if "contrast" in run]
    right, count = np.sum(counts, axis=0) if counts else (0, 0)
    return float(right / count) if count else None


def _costs(results: Results, system: str, base: str) -> Row:
    """Return the time of a step, the weights, and how the loss falls."""
    weights, falls = results.runs[system][0]["weights"], list[float]()
    time, interval = results.times.get(system, (None, None))
    row: Row = {"time of a step": time, "time, 95 % interval": interval, "weights": weights}
    row["more weights"] = None
    if base != system and base in results.runs:
        row["more weights"] = weights / results.runs[base][0]["weights"] - 1
    for run in results.runs[system]:
        *before, last = (loss for _, loss in run["validation"])
        falls += [1 - last / min(before)] if before else []
    return row | {"last fall of the loss": statistics.fmean(falls) if falls else None}


def control_tables(results: Results) -> Tables:
    """Show what the same models gain with the parser's trees over others: on average, and each over
    random ones."""
    averages, planned, single = {}, {}, {}
    for trees, pairs in results.other_trees.items():
        averages[f"{trees}: {', '.join(pairs)}"] = average(pairs)
        kept = {
            own: other for own, other in pairs.items() if other not in results.plan.chosen_by_score
        }
        if 0 < len(kept) < len(pairs):
            planned[f"{trees}: {', '.join(kept)}"] = average(kept)
        if "random" in trees:
            single |= {own: {own: 1.0, other: -1.0} for own, other in pairs.items()}
    title = (
        "Average gain in BLEU of the parser's trees over [other trees](systems/controls.md) in "
        "the same models:"
    )
    yield title, contrast_table(results, averages)
    if planned:
        title = (
            "The same without the controls that were added because of the scores of their models:"
        )
        yield title, contrast_table(results, planned, tested=False)
    if single:
        title = "The gain of each system with the parser's trees over random ones:"
        yield title, contrast_table(results, single)


def pair_table(results: Results) -> Table:
    """Show the differences of the pairs of systems that the plan names, as far as they are
    known."""
    stable = results.runs.keys() - results.design.unstable
    known = [(first, second) for first, second in results.plan.pairs if {first, second} <= stable]
    weights = {f"{first} minus {second}": {first: 1.0, second: -1.0} for first, second in known}
    return contrast_table(results, weights, tested=False)


def contrast_table(
    results: Results, weights: Mapping[str, Mapping[str, float]], *, tested: bool = True
) -> Table:
    """Show weighted sums of the BLEU of systems on each test set.

    weights: of systems, for each row.
    tested: whether p is adjusted for their number; otherwise there is none.
    """
    rows: dict[str, Row] = {name: {"models": name} for name in weights}
    for test, compared in results.by_test.items():
        found = {name: compared.contrast(of_systems) for name, of_systems in weights.items()}
        for name, one in (adjusted(found) if tested else found).items():
            rows[name] |= difference(one, "" if test == results.plan.test else f", {test}")
    return table(list(rows.values()), *([_STAR] if tested else []), forms=_FORMS)


def search_table(plan: Plan) -> Table:
    """Show which mixtures were tried, and the systems that they begin with, the best one first."""
    losses = plan.lowest_losses(plan.search)
    begins = {mixture.partition(" + ")[0] for mixture in plan.search}
    for system, loss in plan.lowest_losses(begins & plan.systems.keys()).items():
        losses[f"{system} alone"] = loss
    ordered = sorted(losses, key=losses.__getitem__)
    return table(
        [{"mixture": one, "validation loss": losses[one]} for one in ordered], forms=_FORMS
    )


def group_tables(results: Results) -> Tables:
    """Show scores and significant differences on groups of sentences, for each label of the
    plan."""
    for group in results.plan.groups:
        metric = {"bleu": "BLEU", "exact": "Exact match in percent"}[group.metric]
        of_test = f" of `{group.test}`" * (group.test != results.plan.test)
        less = "".join(f", without the {name} `{value}`" for name, value in group.without.items())
        rows: dict[str, Row] = {system: {"system": system} for system in results.runs}
        for value, lines in results.grouping(group).items():
            for line in lines:
                real = difference(line.difference if line.is_real else None, f", {value}")
                rows[line.system] |= {
                    value: line.mean,
                    f"difference, {value}": real[f"difference, {value}"],
                }
        notes = [f"{value}: {meaning}" for value, meaning in group.meaning.items()]
        shown = table(
            list(rows.values()), _STAR, *notes, forms=_FORMS, others=Column(title="", digits=1)
        )
        yield f"{metric}{of_test} by {group.by}{less}:", shown


def label_tables(results: Results) -> Tables:
    """Show how often the right one of a contrast is the more probable one, for each label of the
    plan."""
    run = next(iter(results.runs.values()))[0]
    for label in results.plan.contrasts_by if "contrast" in run else ():
        chosen = [name for name in run["contrast"] if name.startswith(f"{label}: ")]
        rows = list[Row]()
        for system in results.runs:
            shares = {name.partition(": ")[2]: contrast(results, system, name) for name in chosen}
            rows.append({"system": system, **shares})
        title = (
            f"How often the correct translation of a contrast is the more probable one, by {label}:"
        )
        yield title, table(rows, others=_SHARE)
