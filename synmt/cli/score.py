"""`synmt score`: translations -> scores with signatures and significance; pairs -> what a model gives them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from synmt.cli import console
from synmt.cli import score_options as options
from synmt.cli.arguments import typed_options
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.evaluation.comparison import Plan, SystemResult
    from synmt.evaluation.metrics import Metric, MetricOptions, Score
    from synmt.evaluation.systems import Contest, Text

_FOR_TEXTS = (
    *("systems", "reference", "test", "metrics", "tokenize", "lowercase", "comet_model", "beer", "sentences"),
    *("group_seeds", "tests"),
)
_FOR_MODELS = ("target", "contrast", "checkpoint", "parses", "batch_size", "device")

_FEW = 30
"""A bootstrap of fewer sentences says little; of one, that its score is certain."""

_AT_SPACES, _UNSPACED = ("13a", "intl", "none"), "zh, ja-mecab, ko-mecab or char"
"""Tokenisations of BLEU that find no words where there are no spaces, and those for such languages."""

_OF_WORDS = ("chrf++", "ter", "ribes")
"""Metrics whose words are always what stands between spaces."""


def score(
    context: typer.Context,
    systems: options.Systems = None,
    reference: options.Reference = None,
    source: options.Source = None,
    test: options.Test = None,
    metrics: options.Metrics = "bleu,chrf,ter",
    tokenize: options.Tokenize = None,
    lowercase: options.Lowercase = None,
    comet_model: options.CometModel = None,
    beer: options.Beer = None,
    sentences: options.Sentences = None,
    group_seeds: options.GroupSeeds = False,
    tests: options.Tests = None,
    samples: options.Samples = None,
    seed: options.Seed = 12345,
    models: options.Models = None,
    target: options.Target = None,
    contrast: options.Contrast = None,
    checkpoint: options.Checkpoint = "final",
    parses: options.Parses = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Score translations, and compare every further system with the first; or ask a model what it gives to given ones.

    Example: [bold]synmt score -r reference.de baseline.de pascal.de --metrics bleu,ribes[/]

    Example: [bold]synmt score runs/multi30k-tiny runs/multi30k-pascal --tests bootstrap,t[/]

    Example: [bold]synmt score -r reference.de 'baseline.seed*.de' 'pascal.seed*.de'[/]

    Example: [bold]synmt score --model runs/multi30k-pascal --source test.en --target test.de > pairs.jsonl[/]

    Example: [bold]synmt score --model runs/multi30k-tiny --model runs/multi30k-pascal --contrast controlled[/]
    """
    from synmt.cli import score_sentences, score_tables
    from synmt.evaluation.systems import read_systems

    _check_options(typed_options(context, {"systems": options.TRANSLATIONS}))
    if models:
        asked = {"source": source, "target": target, "contrast": contrast or [], "parses": parses}
        how = {"checkpoint": checkpoint, "batch_size": batch_size, "device": device, "samples": samples, "seed": seed}
        _score_model(models, asked, how, as_json=as_json)
        return
    if sentences:
        score_sentences.check_name(sentences)
    contest = read_systems(
        systems or [], reference=reference, source=source, test=test, group_seeds=group_seeds, remark=console.remark
    )
    plan = _plan(contest, tests, samples, seed)
    wanted = {"tokenize": tokenize, "lowercase": lowercase, "comet_model": comet_model, "beer_folder": beer}
    chosen = replace(contest.scoring, **{name: value for name, value in wanted.items() if value is not None})
    made = _make(_split(metrics), chosen, contest)
    scores = _score_all(contest, made)
    _warn(contest, list(made), chosen.tokenize)
    if sentences:
        score_sentences.write_sentences(sentences, contest, scores)
    show = score_tables.print_json if as_json else score_tables.print_tables
    show(contest, _judge(scores, plan), plan)


def _check_options(typed: dict[str, str]) -> None:
    """Refuse what does not belong to translations, or to a model, whichever was asked for."""
    for name in _FOR_TEXTS if "models" in typed else _FOR_MODELS:
        if name in typed and "models" in typed:
            raise UsageError(
                f"{typed[name]} does not go with --model",
                do="Score translations, or ask a model: one at a time",
            )
        if name in typed:
            raise UsageError(f"{typed[name]} belongs to --model", do="Add `--model RUN`")
    if "models" not in typed:
        if "systems" not in typed:
            raise UsageError("there is nothing to score", do="Give translations, or a model: see `synmt score --help`")
        return
    pairs = "source" in typed or "target" in typed
    if pairs == ("contrast" in typed):
        raise UsageError(
            "a model needs pairs to give probabilities to",
            allowed="Give both `--source FILE` and `--target FILE`, or `--contrast PATH`, and not all of them",
        )
    for one, other in (("source", "target"), ("target", "source")):
        if one in typed and other not in typed:
            raise UsageError(f"{typed[one]} needs --{other} beside it", do=f"Add `--{other} FILE`")


def _score_model(models: list[Path], asked: dict[str, Any], how: dict[str, Any], *, as_json: bool) -> None:
    from synmt.cli.score_model import score_model
    from synmt.evaluation.bootstrap import SAMPLES

    how["samples"] = how["samples"] or SAMPLES
    score_model(models=models, **asked, **how, as_json=as_json)


def _plan(contest: Contest, tests: str | None, samples: int | None, seed: int) -> Plan:
    from synmt.evaluation.comparison import Plan, check_tests

    names = None
    if tests is not None:
        names = check_tests(_split(tests), [len(system.seeds) for system in contest.systems])
    plan = Plan(names, seed=seed)
    return replace(plan, resamples=samples, swaps=samples) if samples else plan


def _judge(scores: dict[str, list[list[Score]]], plan: Plan) -> dict[str, list[SystemResult]]:
    from synmt.evaluation.comparison import compare_systems

    with console.progress("comparing", len(scores), "metrics") as advance:
        found = {}
        for name, systems in scores.items():
            found[name] = compare_systems(systems, plan)
            advance(1)
        return found


def _split(names: str) -> list[str]:
    """Read names with commas, each once."""
    return list(dict.fromkeys(name.strip().lower() for name in names.split(",")))


def _make(names: list[str], chosen: MetricOptions, contest: Contest) -> dict[str, Metric]:
    """Make the metrics, and refuse at once those that need what was not given."""
    from synmt.evaluation.metrics import check_texts, make_metric

    made = {name: make_metric(name, chosen) for name in names}
    for metric in made.values():
        check_texts(metric, contest.reference.lines, contest.reference.lines, contest.source)
    return made


def _warn(contest: Contest, metrics: list[str], tokenize: str) -> None:
    """Say what may be wrong with the texts."""
    from synmt.evaluation.metrics import looks_tokenized, looks_unspaced

    if len(contest.reference.lines) < _FEW:
        console.warn(f"with fewer than {_FEW} sentences, intervals and p-values are not to be relied on")
    bleu = any(name.startswith("bleu") for name in metrics)
    if looks_unspaced(contest.reference.lines):
        if bleu and tokenize in _AT_SPACES:
            console.warn(f"{contest.reference.name} has no spaces between words; BLEU needs `--tokenize` {_UNSPACED}")
        if words := [name for name in metrics if name in _OF_WORDS]:
            console.warn(f"{contest.reference.name} has no spaces between words; {', '.join(words)} would need them")
    for text in (contest.reference, *(text for system in contest.systems for text in system.seeds)):
        if bleu and tokenize != "none" and looks_tokenized(text.lines):
            console.warn(f"{text.name} looks tokenised; BLEU expects plain text, or `--tokenize none`")
        empty = sum(not line.strip() for line in text.lines)
        if empty and text is not contest.reference:
            console.warn(f"{text.name}: {empty:,} of {len(text.lines):,} translations are empty")


def _score_all(contest: Contest, metrics: dict[str, Metric]) -> dict[str, list[list[Score]]]:
    """Score every text by every metric: a list for each metric, in it one for each system, a score for each seed."""
    from synmt.evaluation.cache import cached_score

    texts = sum(len(system.seeds) for system in contest.systems)
    with console.progress("scoring", texts * len(metrics), "scores") as advance:

        def scored(metric: Metric, text: Text) -> Score:
            source = contest.source if metric.reads_source else None
            found = cached_score(metric, text.lines, contest.reference.lines, sources=source, folder=text.kept)
            advance(1)
            return found

        return {
            name: [[scored(metric, text) for text in system.seeds] for system in contest.systems]
            for name, metric in metrics.items()
        }
