"""The report of a comparison of systems, and a file with the score of every segment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from synmt.arrays import Values
from synmt.evaluation.comparison import TESTS, SystemComparison
from synmt.evaluation.cost import cost_table, run_cost
from synmt.evaluation.significance import FEW_SEEDS, difference_columns
from synmt.files.writing import write_output
from synmt.reporting.values import Column, Report, Table, text_column
from synmt.run_folder import Run


def score_report(comparison: SystemComparison, *, cost: bool) -> Report:
    """Report scores, those of each seed with the components of BLEU, and what runs cost, as far as
    there is any."""
    systems = comparison.systems
    parts, facts = [_score_table(comparison), _seed_table(comparison)], {}
    costs = [
        (system.name, [run_cost(Run(seed.run)) for seed in system.seeds if seed.run])
        for system in systems
        if cost and any(seed.run for seed in system.seeds)
    ]
    if costs:
        facts["cost"] = dict(costs)
        parts.append(cost_table(costs))
    metrics = [results[0].seeds[0].metric for results in comparison.results.values()]
    notes = [metric.label for metric in metrics]
    notes += [
        f"{metric.title}: lower is better" for metric in metrics if not metric.higher_is_better
    ]
    sentences = len(systems[0].seeds[0].reference)
    return Report(
        title=f"systems: {len(systems)}, sentences: {sentences:,}",
        parts=parts,
        notes=notes,
        facts=facts,
    )


def _seed_table(comparison: SystemComparison) -> Table:
    # BLEU-4 includes the components of BLEU-1
    details = max((results[0].seeds[0].details for results in comparison.results.values()), key=len)
    rows = [
        [
            system.name,
            seed.path,
            score.metric.title,
            score.value,
            *map(score.details.get, details),
        ]
        for system, seed, scores in comparison.by_seed()
        for score in scores.values()
    ]
    columns = [text_column("system"), text_column("seed"), text_column("metric")]
    columns += [Column(name.replace("_", " ")) for name in ("score", *details)]
    return Table(columns=columns, rows=rows, shared=2)


def _score_table(comparison: SystemComparison) -> Table:
    systems, plan = comparison.systems, comparison.plan
    columns = [
        text_column("system"),
        text_column("metric"),
        Column("score"),
        Column("95 % interval", about="bootstrap of sentences, and of a system's seeds"),
        Column("±", about=f"standard deviation over the seeds; {FEW_SEEDS}"),
        *difference_columns(systems[0].name, "bootstrap of the same resamples"),
        *(Column(f"{name} p", kind="p", about=about) for name, about in TESTS.items()),
    ]
    notes = [
        f"{plan.resamples:,} resamples, {plan.swaps:,} permutations, seed {plan.seed}; p-values "
        "are two-sided, and not corrected for their number"
    ]
    rows = [
        [
            system.name,
            result.seeds[0].metric.title,
            result.value,
            result.interval,
            result.spread.deviation if len(result.seeds) > 1 else None,
            result.difference,
            result.comparison and result.comparison.interval,
            *map(result.p_values.get, TESTS),
        ]
        for results in comparison.results.values()
        for system, result in zip(systems, results, strict=True)
    ]
    return Table(columns=columns, rows=rows, notes=notes).without_empty_columns()


def write_sentence_scores(path: Path, comparison: SystemComparison) -> None:
    """Write a row for each segment, with the scores of every text by every metric.

    A .jsonl file also has the texts, any other one is a table with tabs.
    """
    is_json = ".jsonl" in path.suffixes
    with write_output(path) as out:
        for row in _sentence_rows(comparison):
            if is_json:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                continue
            scores = {
                f"{system.get('seed', system['system'])}:{metric}": f"{value:.6f}"
                for system in row["systems"]
                for metric, value in system["scores"].items()
            }
            if row["line"] == 1:
                out.write("\t".join(["line", *scores]) + "\n")
            out.write("\t".join([str(row["line"]), *scores.values()]) + "\n")


def _sentence_rows(comparison: SystemComparison) -> Iterator[Values]:
    texts = []
    for system, seed, scores in comparison.by_seed():
        names = {"system": system.name} | ({"seed": seed.path} if len(system.seeds) > 1 else {})
        points = {
            name: score.metric.segment_scores(score.statistics).tolist()
            for name, score in scores.items()
        }
        texts.append((names, seed.hypothesis, points))
    first = comparison.systems[0].seeds[0]
    sources = first.raw_source or first.source
    for line, reference in enumerate(first.reference):
        source = {"source": sources[line]} if sources else {}
        systems = [
            {
                **names,
                "translation": lines[line],
                "scores": {name: values[line] for name, values in points.items()},
            }
            for names, lines, points in texts
        ]
        yield {"line": line + 1, **source, "reference": reference, "systems": systems}
