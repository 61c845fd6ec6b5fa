"""The report of a comparison of systems: rows for tables, remarks, JSON, and a file with the score of every segment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from glob import glob
from pathlib import Path
from typing import Any

from synmt.errors import UsageError
from synmt.evaluation.comparison import SystemComparison
from synmt.evaluation.results import TESTS, SystemResult
from synmt.evaluation.seeds import FEW_SEEDS
from synmt.evaluation.systems import ScoringInputs, System
from synmt.files.writing import write_output

Rows = list[list[str]]
"""The rows of a table; the first has the names of the columns."""

_P_VALUES = {"bootstrap": "boot. p", "randomization": "random. p", "t": "t-test p", "ks": "KS p", "seeds": "seeds p"}
_WITH_SEEDS = {
    "bootstrap": "resamples sentences, and the seeds of each system",
    "randomization": "swaps sentences only, all seeds of a sentence together",
}
"""What a test does with the seeds of a system."""

_SENTENCE_FILES = (".tsv", ".jsonl")


def tables(comparison: SystemComparison) -> Iterator[Rows]:
    """Yield the scores, the components of BLEU, and the variation over seeds, each as far as there is any."""
    for rows in (_score_rows(comparison), _component_rows(comparison), _seed_rows(comparison)):
        if len(rows) > 1:
            yield rows


def _each(comparison: SystemComparison) -> Iterator[tuple[System, SystemResult]]:
    for results in comparison.results.values():
        yield from zip(comparison.inputs.systems, results, strict=True)


def _score_rows(comparison: SystemComparison) -> Rows:
    tests = _tests(comparison)
    header = ["system", "metric", "score", "95 % interval"]
    if len(comparison.inputs.systems) > 1:
        header += ["difference", *["95 % of difference"] * ("bootstrap" in tests), *(_P_VALUES[name] for name in tests)]
    rows = []
    for system, result in _each(comparison):
        row = [system.name, result.metric.title, f"{result.value:.2f}", f"{result.low:.2f} to {result.high:.2f}"]
        row += _compared_cells(result, tests)
        rows.append(row + [""] * (len(header) - len(row)))
    return [header, *rows]


def _compared_cells(result: SystemResult, tests: Sequence[str]) -> Iterator[str]:
    if result.difference is None:
        return
    yield f"{result.difference:+.2f}"
    if result.comparison:
        yield f"{result.comparison.low:+.2f} to {result.comparison.high:+.2f}"
    for name in tests:
        p = result.p_values.get(name)
        yield "-" if p is None else format_p_value(p)


def format_p_value(p: float) -> str:
    """Write a p-value with three digits, or as <0.001."""
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def _tests(comparison: SystemComparison) -> list[str]:
    """List the tests of any system."""
    return list(dict.fromkeys(name for _, result in _each(comparison) for name in result.p_values))


def _component_rows(comparison: SystemComparison) -> Rows:
    """List the components of the score that has most: BLEU-4 includes those of BLEU-1."""
    results = max(comparison.results.values(), key=lambda one: len(one[0].details))
    names = list(results[0].details)
    if not names:
        return []
    rows = [
        [system.name, *(f"{result.details[name]:{'.1f' if name.startswith('precision') else '.3f'}}" for name in names)]
        for system, result in zip(comparison.inputs.systems, results, strict=True)
    ]
    return [[f"{results[0].metric.title} of", *(name.replace("_", " ") for name in names)], *rows]


def _seed_rows(comparison: SystemComparison) -> Rows:
    rows = [
        [system.name, result.metric.title, str(len(result.seeds)), *(f"{one:.2f}" for one in _spread(result).values())]
        for system, result in _each(comparison)
        if len(result.seeds) > 1
    ]
    return [["system", "metric", "seeds", "mean", "deviation", "lowest", "highest"], *rows]


def _spread(result: SystemResult) -> dict[str, float]:
    return asdict(result.spread)


def remarks(comparison: SystemComparison) -> Iterator[str]:
    """Yield the signatures of the metrics, and how intervals and p-values were computed."""
    metrics = [results[0].metric for results in comparison.results.values()]
    yield from (f"{metric.title}|{metric.signature}" for metric in metrics)
    if lower := [metric.title for metric in metrics if not metric.higher_is_better]:
        yield f"{', '.join(lower)}: lower is better"
    systems, plan = comparison.inputs.systems, comparison.plan
    seeds = any(len(system.seeds) > 1 for system in systems)
    counts = {"bootstrap": f"{plan.resamples:,} resamples", "randomization": f"{plan.swaps:,} trials"}
    units = "sentences and of seeds" if seeds else "sentences"
    yield f"95 % interval: bootstrap of {units}, {counts['bootstrap']}, seed {plan.seed}"
    if seeds:
        yield FEW_SEEDS
    if len(systems) > 1:
        uncorrected = ", and not corrected for their number" if (len(systems) - 1) * len(metrics) > 1 else ""
        yield f"difference from {systems[0].name}; p-values are two-sided{uncorrected}"
    for name in _tests(comparison):
        with_seeds = f": {_WITH_SEEDS[name]}" if seeds and name in counts else ""
        how = f", {counts[name]}, seed {plan.seed}" if name in counts else ""
        yield f"{_P_VALUES[name]}: {TESTS[name]}{with_seeds}{how}"
    if any(p is None for _, result in _each(comparison) for p in result.p_values.values()):
        yield "seeds p needs two seeds or more of both systems"


def to_json(comparison: SystemComparison) -> dict[str, Any]:
    """Write the comparison as plain values."""
    systems = []
    for position, system in enumerate(comparison.inputs.systems):
        entry: dict[str, Any] = {"system": system.name}
        if len(system.seeds) > 1:
            entry["seeds"] = [text.name for text in system.seeds]
        scores = {name: _result_json(results[position]) for name, results in comparison.results.items()}
        systems.append(entry | {"scores": scores})
    plan = comparison.plan
    base = {"base": comparison.inputs.systems[0].name} if len(systems) > 1 else {}
    report: dict[str, Any] = {"segments": len(comparison.inputs.reference.lines), "systems": systems}
    report["bootstrap"] = {"samples": plan.resamples, "seed": plan.seed, **base}
    if "randomization" in _tests(comparison):
        report["randomization"] = {"samples": plan.swaps, "seed": plan.seed, **base}
    return report


def _result_json(result: SystemResult) -> dict[str, Any]:
    metric = result.metric
    values: dict[str, Any] = {"name": metric.title, "score": result.value, "signature": metric.signature}
    values["interval"] = [result.low, result.high]
    if result.details:
        values["details"] = result.details
    if len(result.seeds) > 1:
        values["seeds"] = {"scores": [score.value for score in result.seeds], **_spread(result)}
    if result.difference is not None:
        values |= {"difference": result.difference, "p_values": result.p_values}
    if result.comparison:
        values["comparison"] = asdict(result.comparison)
    return values


def check_sentence_file(path: Path, inputs: Sequence[Path]) -> None:
    """Check the file for `write_sentence_scores`.

    Raises UsageError if its name does not say its format, or if it is a folder or one of the inputs, which may be
    patterns.
    """
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder, not a file", where="--sentences")
    read = (one for pattern in inputs for one in (pattern, *map(Path, glob(str(pattern)))))
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UsageError("the scores of sentences would replace the input", where=str(path))
    if not path.name.removesuffix(".gz").endswith(_SENTENCE_FILES):
        raise UsageError(
            "unknown file format", where=str(path), allowed="The name ends in .tsv or .jsonl, and .gz may follow"
        )


def write_sentence_scores(path: Path, comparison: SystemComparison) -> None:
    """Write a row for each segment, with the scores of every text by every metric; JSON lines have the texts too."""
    inputs = comparison.inputs
    scores = {
        metric: [score.metric.segment_scores(score.statistics).tolist() for seeds in systems for score in seeds]
        for metric, systems in comparison.scores.items()
    }
    make_rows = _tsv_rows if path.name.removesuffix(".gz").endswith(".tsv") else _json_rows
    with write_output(path) as out:
        out.writelines(f"{row}\n" for row in make_rows(inputs, scores))


_SegmentScores = Mapping[str, Sequence[Sequence[float]]]
"""For each metric, for each text, the score of each segment."""


def _tsv_rows(inputs: ScoringInputs, scores: _SegmentScores) -> Iterator[str]:
    names = [text.name if len(system.seeds) > 1 else system.name for system in inputs.systems for text in system.seeds]
    columns = [(f"{name}:{metric}", scores[metric][index]) for index, name in enumerate(names) for metric in scores]
    yield "\t".join(["line", *(name for name, _ in columns)])
    for line in range(len(inputs.reference.lines)):
        yield "\t".join([str(line + 1), *(f"{values[line]:.6f}" for _, values in columns)])


def _json_rows(inputs: ScoringInputs, scores: _SegmentScores) -> Iterator[str]:
    texts = [(system, text) for system in inputs.systems for text in system.seeds]
    for line, reference in enumerate(inputs.reference.lines):
        source = {"source": inputs.source[line]} if inputs.source else {}
        systems = [
            {
                "system": system.name,
                "translation": text.lines[line],
                "scores": {metric: values[index][line] for metric, values in scores.items()},
            }
            | ({"seed": text.name} if len(system.seeds) > 1 else {})
            for index, (system, text) in enumerate(texts)
        ]
        row = {"line": line + 1, **source, "reference": reference, "systems": systems}
        yield json.dumps(row, ensure_ascii=False)
