"""`synmt score`: scores of translations with signatures and significance, or probabilities given by models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from synmt.cli import console
from synmt.cli import score_options as options
from synmt.cli.command import AsJson, ClusterAddress, Format, chosen_format, typed_options
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.evaluation.comparison import SystemComparison

_FOR_TRANSLATIONS = (
    *("systems", "reference", "test", "metrics", "on", "tokenize", "lowercase", "comet_model", "beer", "sentences"),
    *("cost", "group_seeds", "tests"),
)
_FOR_MODELS = ("checkpoint", "parses", "parser", "batch_size", "device", "cluster")


def score(
    context: typer.Context,
    systems: options.Systems = None,
    runs: options.Runs = None,
    reference: options.Reference = None,
    source: options.Source = None,
    test: options.Test = None,
    metrics: options.Metrics = "bleu,chrf,ter",
    on: options.On = None,
    tokenize: options.Tokenize = None,
    lowercase: options.Lowercase = None,
    comet_model: options.CometModel = None,
    beer: options.Beer = None,
    sentences: options.Sentences = None,
    cost: options.Cost = False,
    group_seeds: options.GroupSeeds = False,
    tests: options.Tests = None,
    samples: options.Samples = None,
    seed: options.Seed = 12345,
    target: options.Target = None,
    contrast: options.Contrast = None,
    checkpoint: options.Checkpoint = "final",
    parses: options.Parses = None,
    parser: options.Parser = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    cluster: ClusterAddress = None,
    kind: Format = "text",
    as_json: AsJson = False,
) -> None:
    """Score translations and compare each system with the first, or let models score given texts by probability.

    Example: [bold]synmt score -r reference.de baseline.de pascal.de --metrics bleu,ribes[/]

    Example: [bold]synmt score runs/multi30k-tiny runs/multi30k-pascal --tests bootstrap,t[/]

    Example: [bold]synmt score -r reference.de 'baseline.seed*.de' 'pascal.seed*.de'[/]

    Example: [bold]synmt score --run runs/multi30k-pascal --source test.en --target test.de > pairs.jsonl[/]

    Example: [bold]synmt score --run runs/multi30k-tiny runs/multi30k-pascal --contrast controlled[/]
    """
    _check_options(context)
    kind = chosen_format(kind, as_json=as_json)
    loaded = {"checkpoint": checkpoint, "batch_size": batch_size, "device": device, "parses": parses, "parser": parser}
    if contrast:
        _score_contrasts(kind, samples, models=runs or [], contrast=contrast, seed=seed, **loaded)
        return
    if target:
        _score_pairs(cluster, kind=kind, model=(runs or [])[0], source=source, target=target, **loaded)
        return
    from synmt.evaluation.comparison import ScoreOptions, compare_systems

    systems = [*(systems or []), *(runs or [])]
    _check_files(systems, sentences, [reference, source], cost=cost)
    tested = {"tests": None if tests is None else _split(tests), "samples": samples, "seed": seed}
    measured = {"tokenize": tokenize, "lowercase": lowercase, "comet_model": comet_model, "beer_folder": beer}
    how = ScoreOptions(test_set=test, group_seeds=group_seeds, on=on, **measured)
    texts = {"sources": source, "metrics": _split(metrics), **tested}
    comparison = compare_systems(systems, reference, options=how, **texts)
    _show(comparison, sentences, kind, cost=cost)


def _check_files(systems: list[Path], sentences: Path | None, others: list[Path | None], *, cost: bool) -> None:
    from synmt.evaluation.cost import check_runs
    from synmt.evaluation.report import check_sentence_file

    if cost:
        check_runs(systems)
    if sentences:
        check_sentence_file(sentences, [*systems, *(one for one in others if one is not None)])


def _show(comparison: SystemComparison, sentences: Path | None, kind: str, *, cost: bool) -> None:
    """Print the results; write the scores of sentences into a file if there is one."""
    from synmt.evaluation import report
    from synmt.evaluation.cost import costs_of, tables_with_cost

    if comparison.plan.tests is not None and len(comparison.inputs.systems) == 1:
        console.remark("there is only one system, so --tests has no effect")
    if sentences:
        with console.written("scores of sentences", sentences):
            report.write_sentence_scores(sentences, comparison)
    if kind == "json":
        costs = costs_of(comparison.inputs.systems) if cost else []
        by_system = {name: [asdict(one) for one in seeds] for name, seeds in costs}
        console.print_json(report.to_json(comparison) | ({"cost": by_system} if cost else {}))
    else:
        shown = tables_with_cost(comparison) if cost else (report.tables(comparison), report.remarks(comparison))
        console.print_tables(*shown, kind)


def _score_contrasts(kind: str, samples: int | None, **options: Any) -> None:
    from synmt.evaluation.contrast.report import ContrastOptions, judge_models

    if samples:
        options["samples"] = samples
    report = judge_models(ContrastOptions(**options))
    if kind == "json":
        console.print_json(report.to_json())
    else:
        console.print_tables(report.to_rows(), report.remarks(), kind)


def _score_pairs(cluster: str | None, *, kind: str, **options: Any) -> None:
    """Print a line of JSON for each pair as soon as it is scored; as `json`, print one object at the end."""
    from synmt.arrays import json_text
    from synmt.decode.pair_scores import Totals
    from synmt.evaluation.model_scores import PairOptions, pair_json, score_files, summary_rows, warn_about_pairs
    from synmt.parallel.engine import using_cluster

    if kind not in ("text", "json"):
        raise UsageError("probabilities of pairs are lines of JSON", where="--format", do="Leave it out")
    as_json = kind == "json"
    chosen, totals, pairs = PairOptions(**options), Totals(), []
    with using_cluster(cluster):
        for pair in score_files(chosen):
            totals.add(pair)
            if as_json:
                pairs.append(pair_json(pair))
            else:
                sys.stdout.write(json_text(pair_json(pair), ensure_ascii=False) + "\n")
    if as_json:
        summary = {"model": chosen.model.resolve().name, "checkpoint": chosen.checkpoint, **totals.as_json()}
        console.print_json({"summary": summary, "pairs": pairs})
    warn_about_pairs(totals)
    if totals.pairs:
        header, *rows = summary_rows(totals)
        console.table("", header, rows)
        console.remark("in nats; the end of a sentence counts as one piece, word and character")


def _split(names: str) -> list[str]:
    """Split names at commas, without repetitions."""
    return list(dict.fromkeys(name.strip().lower() for name in names.split(",")))


def _check_options(context: typer.Context) -> None:
    """Refuse options that do not belong together, and name those that have no effect."""
    typed, values = typed_options(context, {"systems": options.TRANSLATIONS}), context.params
    _check_combinations(typed, values)
    for name, why in _ineffective(values):
        if name in typed:
            console.remark(f"{typed[name]} has no effect without {why}")


def _ineffective(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options that change nothing, with what they need."""
    if values["target"] or values["contrast"]:
        # only differences are resampled
        why = "a second --run" if values["contrast"] else "--contrast"
        if not values["contrast"] or len(values["runs"]) == 1:
            yield from ((name, why) for name in ("samples", "seed"))
        return
    bleu = ("bleu", "bleu1", "bleu2", "bleu3")
    changed = {"tokenize": bleu, "lowercase": (*bleu, "chrf", "chrf++"), "comet_model": ("comet",), "beer": ("beer",)}
    for name, metrics in changed.items():
        if not set(metrics) & set(_split(values["metrics"])):
            yield name, f"the metric {' or '.join(metrics)}"


def _check_combinations(typed: dict[str, str], values: dict[str, Any]) -> None:
    """Refuse options that do not belong together.

    typed: the spelling of each option that the user typed, by its name.
    values: of all options.
    """
    by_models = [typed[name] for name in ("target", "contrast") if name in typed]
    if by_models:
        if "runs" not in typed:
            raise UsageError(f"{by_models[0]} needs a model", do="Add `--run RUN`")
        for name in _FOR_TRANSLATIONS:
            if name in typed:
                raise UsageError(
                    f"{typed[name]} cannot be combined with {by_models[0]}",
                    do="Either score translations, or let models score texts",
                )
        _check_model_options(typed, values)
        return
    for name in _FOR_MODELS:
        if name in typed:
            raise UsageError(
                f"{typed[name]} needs texts that a model scores",
                do="Add `--source FILE --target FILE`, or `--contrast PATH`",
            )
    if "runs" in typed and "source" in typed:
        raise UsageError("--source needs --target", do="Add `--target FILE`, or leave out --source")
    if "runs" not in typed and "systems" not in typed:
        raise UsageError("there is nothing to score", do="Give translations or a run: see `synmt score --help`")


def _check_model_options(typed: dict[str, str], values: dict[str, Any]) -> None:
    from synmt.run import wrong_checkpoint

    if wrong := wrong_checkpoint(values["checkpoint"], "--checkpoint"):
        raise wrong
    if "contrast" in typed:
        if "source" in typed or "target" in typed:
            raise UsageError(
                "a contrastive set has its own texts", where="--contrast", do="Leave out --source and --target"
            )
        if "cluster" in typed:
            raise UsageError("contrastive sets are judged on this machine", where="--cluster", do="Leave it out")
        if "parses" in typed and len(values["contrast"]) > 1:
            raise UsageError("--parses needs a single --contrast set", do="Run each set separately")
        return
    if "source" not in typed:
        raise UsageError("--target needs --source", do="Add `--source FILE`")
    if len(values["runs"]) > 1:
        raise UsageError(
            "pairs are scored by one model at a time", where="--run", do="Run it once for each, or use `--contrast`"
        )
    if [str(values[name]) for name in ("source", "target", "parses")].count("-") > 1:
        raise UsageError("standard input can be read only once", do="Give `-` for one of the files")
