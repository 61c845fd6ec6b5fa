"""The report of a comparison of systems, and a file with the score of every segment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from synmt.errors import UsageError, counted
from synmt.evaluation.comparison import TESTS, SystemComparison, SystemResult
from synmt.evaluation.cost import cost_table, costs_of
from synmt.evaluation.significance import FEW_SEEDS
from synmt.evaluation.systems import matching
from synmt.files.writing import write_output
from synmt.reporting.values import Column, Report, Table, count_column, text_column

_P_VALUES = {
    "bootstrap": "boot. p",
    "randomization": "random. p",
    "t": "t-test p",
    "ks": "KS p",
    "seeds": "seeds p",
}
_WITH_SEEDS = {
    "bootstrap": ": resamples sentences, and the seeds of each system",
    "randomization": ": swaps sentences only, all seeds of a sentence together",
    "seeds": ", of both systems with two seeds or more",
}
"""What a test does with the seeds of a system."""

_SENTENCE_FILES = (".tsv", ".jsonl")


def score_report(comparison: SystemComparison, *, cost: bool = False) -> Report:
    """Report scores, the components of BLEU, the variation over seeds, and what runs cost, as far
    as there is any."""
    systems, results = comparison.systems, list(comparison.results.values())
    segments = len(systems[0].seeds[0].reference)
    parts, facts = [_score_table(comparison)], {"segments": segments, **_facts(comparison)}
    # BLEU-4 includes the components of BLEU-1
    most = max(results, key=lambda one: len(one[0].details))
    if most[0].details:
        columns = [text_column(f"{most[0].metric.title} of", name="system")]
        for name in most[0].details:
            digits = 1 if name.startswith("precision") else 3
            columns.append(Column(title=name.replace("_", " "), digits=digits, name=name))
        rows = [
            [system.name, *result.details.values()]
            for system, result in zip(systems, most, strict=True)
        ]
        parts.append(Table(columns=columns, rows=rows))
    if any(len(system.seeds) > 1 for system in systems):
        columns = [text_column("system"), text_column("metric"), count_column("seeds")]
        columns += [Column(title=title) for title in ("mean", "deviation", "lowest", "highest")]
        rows = [
            [name, result.metric.title, len(result.seeds), *asdict(result.spread).values()]
            for name, result in _each(comparison)
            if len(result.seeds) > 1
        ]
        parts.append(Table(columns=columns, rows=rows))
    if cost and (costs := costs_of(systems)):
        facts["cost"] = {name: [asdict(one) for one in seeds] for name, seeds in costs}
        first = {one.name: result.value for one, result in zip(systems, results[0], strict=True)}
        parts.append(cost_table(costs, first, results[0][0].metric.title))
    metrics = [one[0].metric for one in results]
    notes = [f"{metric.title}|{metric.signature}" for metric in metrics]
    if lower := [metric.title for metric in metrics if not metric.higher_is_better]:
        notes.append(f"{', '.join(lower)}: lower is better")
    title = f"{counted(len(systems), 'system')}, {counted(segments, 'sentence')}"
    return Report(title=title, parts=parts, notes=notes, facts=facts)


def _each(comparison: SystemComparison) -> Iterator[tuple[str, SystemResult]]:
    names = [system.name for system in comparison.systems]
    for results in comparison.results.values():
        yield from zip(names, results, strict=True)


def _score_table(comparison: SystemComparison) -> Table:
    systems, plan = comparison.systems, comparison.plan
    seeds = _WITH_SEEDS if any(len(system.seeds) > 1 for system in systems) else {}
    samples = {
        "bootstrap": f", {plan.resamples:,} resamples, seed {plan.seed}",
        "randomization": f", {plan.swaps:,} trials, seed {plan.seed}",
    }
    interval = f"bootstrap of sentences{samples['bootstrap']}"
    if seeds:
        interval = f"bootstrap of sentences and of seeds{samples['bootstrap']}; {FEW_SEEDS}"
    difference = f"from {systems[0].name}; p-values are two-sided"
    if (len(systems) - 1) * len(comparison.results) > 1:
        difference += ", and not corrected for their number"
    columns = [
        text_column("system"),
        text_column("metric"),
        Column(title="score"),
        Column(title="95 % interval", about=interval),
        Column(title="difference", signed=True, about=difference),
        Column(title="95 % of difference", signed=True),
    ]
    tests = dict.fromkeys(name for _, result in _each(comparison) for name in result.p_values)
    for name in tests:
        about = TESTS[name] + seeds.get(name, "") + samples.get(name, "")
        columns.append(Column(title=_P_VALUES[name], kind="p", about=about))
    rows = []
    for name, result in _each(comparison):
        found = result.comparison
        row = [name, result.metric.title, result.value, result.interval, result.difference]
        rows.append([*row, found and found.interval, *map(result.p_values.get, tests)])
    return Table(columns=columns, rows=rows).without_empty_columns()


def _facts(comparison: SystemComparison) -> dict[str, Any]:
    systems = [
        {
            "system": system.name,
            "seeds": [seed.path for seed in system.seeds],
            "scores": {
                name: _result_facts(results[position])
                for name, results in comparison.results.items()
            },
        }
        for position, system in enumerate(comparison.systems)
    ]
    plan = comparison.plan
    sampling = {"seed": plan.seed, "base": comparison.systems[0].name}
    return {
        "systems": systems,
        "bootstrap": {"samples": plan.resamples, **sampling},
        "randomization": {"samples": plan.swaps, **sampling},
    }


def _result_facts(result: SystemResult) -> dict[str, Any]:
    seeds = {"scores": [score.value for score in result.seeds], **asdict(result.spread)}
    return {
        "name": result.metric.title,
        "score": result.value,
        "signature": result.metric.signature,
        "interval": [result.low, result.high],
        "details": result.details,
        "seeds": seeds,
        "difference": result.difference,
        "p_values": result.p_values,
        "comparison": result.comparison and asdict(result.comparison),
    }


def check_sentence_file(path: Path, inputs: Sequence[Path]) -> None:
    """Check the file for `write_sentence_scores`.

    Raises UsageError if its name does not say its format, or if it is a folder or one of the
    inputs, which may be patterns.
    """
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder, not a file", where="--sentences")
    read = [one for path in inputs for one in matching(path)]
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UsageError("the scores of sentences would replace the input", where=str(path))
    if not path.name.removesuffix(".gz").endswith(_SENTENCE_FILES):
        raise UsageError(
            "unknown file format",
            where=str(path),
            allowed="The name ends in .tsv or .jsonl, and .gz may follow",
        )


def write_sentence_scores(path: Path, comparison: SystemComparison) -> None:
    """Write a row for each segment, with the scores of every text by every metric; JSON lines have
    the texts too."""
    is_tsv = path.name.removesuffix(".gz").endswith(".tsv")
    with write_output(path) as out:
        for row in _sentence_rows(comparison):
            if not is_tsv:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                continue
            scores = {
                f"{one.get('seed', one['system'])}:{metric}": f"{value:.6f}"
                for one in row["systems"]
                for metric, value in one["scores"].items()
            }
            if row["line"] == 1:
                out.write("\t".join(["line", *scores]) + "\n")
            out.write("\t".join([str(row["line"]), *scores.values()]) + "\n")


def _sentence_rows(comparison: SystemComparison) -> Iterator[dict[str, Any]]:
    texts = []
    for position, system in enumerate(comparison.systems):
        for place, seed in enumerate(system.seeds):
            names = {"system": system.name}
            if len(system.seeds) > 1:
                names["seed"] = seed.path
            points = {}
            for name, results in comparison.results.items():
                score = results[position].seeds[place]
                points[name] = score.metric.segment_scores(score.statistics).tolist()
            texts.append((names, seed.hypothesis, points))
    first = comparison.systems[0].seeds[0]
    sources = first.raw_source or first.source
    for line, reference in enumerate(first.reference):
        source = {"source": sources[line]} if sources else {}
        row = {"line": line + 1, **source, "reference": reference, "systems": []}
        for names, lines, points in texts:
            scores = {name: values[line] for name, values in points.items()}
            row["systems"].append({**names, "translation": lines[line], "scores": scores})
        yield row
