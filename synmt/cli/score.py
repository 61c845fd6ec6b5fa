"""`synmt score`: translations -> BLEU, chrF, TER with signatures and significance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from synmt.cli import console

if TYPE_CHECKING:
    from synmt.metrics import Comparison, Score


def score(
    systems: Annotated[
        list[Path],
        typer.Argument(metavar="TRANSLATIONS...", help="One file for each system; `-` is standard input."),
    ],
    reference: Annotated[Path, typer.Option("--reference", "-r", help="The references, a line for each translation.")],
    metrics: Annotated[
        str, typer.Option("--metrics", "-m", help="Any of bleu, chrf, ter, with commas.")
    ] = "bleu,chrf,ter",
    tokenize: Annotated[str, typer.Option(help="How BLEU cuts words: 13a, intl, zh, ja-mecab, char, none …")] = "13a",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF.")] = False,
    samples: Annotated[int, typer.Option(min=1, help="Resamples of the paired bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resamples.")] = 12345,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score translations; every further system is compared with the first by paired bootstrap.

    Example: [bold]synmt score -r reference.de baseline.de pascal.de --metrics bleu,ter[/]
    """
    from synmt.metrics import MetricOptions, looks_tokenized, make_metric, read_aligned

    options = MetricOptions(tokenize, lowercase)
    made = {name: make_metric(name, options) for name in _split(metrics)}
    references, *texts = read_aligned([reference, *systems])
    names = _short_names(systems)
    if tokenize != "none":
        for name, text in zip([str(reference), *names], [references, *texts], strict=True):
            if looks_tokenized(text):
                console.warn(f"{name} looks tokenised; BLEU expects plain text, or `--tokenize none`")
    scores = _score_all(texts, references, made)
    comparisons = _compare_all(scores, samples=samples, seed=seed)
    if as_json:
        _print_json(names, len(references), scores, comparisons, {"samples": samples, "seed": seed})
    else:
        _print_table(names, scores, comparisons, f"{samples:,} resamples, seed {seed}")


def _short_names(paths: list[Path]) -> list[str]:
    """Name systems by their files, or by their paths where two files are named alike."""
    paths = [Path("standard input") if str(path) == "-" else path for path in paths]
    alike = len({path.name for path in paths}) < len(paths)
    return [str(path) if alike else path.name for path in paths]


def _split(metrics: str) -> list[str]:
    """Read names with commas, each once."""
    return list(dict.fromkeys(name.strip().lower() for name in metrics.split(",")))


def _score_all(texts: list[list[str]], references: list[str], metrics: dict[str, Any]) -> list[dict[str, Score]]:
    from synmt.metrics import score as score_by

    found: list[dict[str, Score]] = [{} for _ in texts]
    with console.progress("scoring", len(texts) * len(metrics), "scores") as advance:
        for scores, text in zip(found, texts, strict=True):
            for name, metric in metrics.items():
                scores[name] = score_by(metric, text, references)
                advance(1)
    return found


def _compare_all(scores: list[dict[str, Score]], *, samples: int, seed: int) -> list[dict[str, Comparison]]:
    """Compare each further system with the first, by every metric."""
    from synmt.metrics import paired_bootstrap

    first = scores[0]
    return [
        {
            name: paired_bootstrap(
                first[name].statistics, one.statistics, one.metric.aggregate, samples=samples, seed=seed
            )
            for name, one in system.items()
        }
        for system in scores[1:]
    ]


def _print_table(
    names: list[str], scores: list[dict[str, Score]], comparisons: list[dict[str, Comparison]], how: str
) -> None:
    rows = []
    for metric, first in scores[0].items():
        title = first.metric.title + ("" if first.metric.higher_is_better else " (lower is better)")
        for position, (name, found) in enumerate(zip(names, scores, strict=True)):
            compared = _cells(comparisons[position - 1][metric]) if position else [""] * 3
            rows.append([name, title, f"{found[metric].value:.2f}", *compared])
    columns = ["system", "metric", "score", "difference", "95 % interval", "p"]
    width = len(columns) if comparisons else 3
    console.table("", columns[:width], [row[:width] for row in rows], to_stdout=True)
    print()
    for first in scores[0].values():
        print(f"{first.metric.title}|{first.signature}")
    if comparisons:
        print(f"difference to {names[0]}; p: two-sided paired bootstrap (Koehn, 2004), {how}")


def _cells(comparison: Comparison) -> list[str]:
    p = "<0.001" if comparison.p_value < 0.0005 else f"{comparison.p_value:.3f}"
    return [f"{comparison.difference:+.2f}", f"{comparison.low:+.2f} to {comparison.high:+.2f}", p]


def _print_json(
    names: list[str],
    segments: int,
    scores: list[dict[str, Score]],
    comparisons: list[dict[str, Comparison]],
    bootstrap: dict[str, int],
) -> None:
    from dataclasses import asdict

    systems: list[dict[str, Any]] = []
    for position, (name, found) in enumerate(zip(names, scores, strict=True)):
        values = {}
        for metric, one in found.items():
            values[metric] = {"name": one.metric.title, "score": one.value, "signature": one.signature}
            if position:
                values[metric]["comparison"] = asdict(comparisons[position - 1][metric])
        systems.append({"system": name, "scores": values})
    report: dict[str, Any] = {"segments": segments, "systems": systems}
    if comparisons:
        report["bootstrap"] = {**bootstrap, "base": names[0]}
    print(json.dumps(report, ensure_ascii=False, indent=2))
