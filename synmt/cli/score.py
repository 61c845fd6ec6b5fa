"""`synmt score`: scores of translations with signatures and significance, or probabilities given by models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from synmt.cli import console
from synmt.cli import score_options as options
from synmt.cli.command import AsJson, ClusterAddress, Format, chosen_format, typed_options
from synmt.errors import UsageError

if TYPE_CHECKING:
    from synmt.evaluation.model_scores import PairOptions
    from synmt.reporting.formats import Format as Kind

Options = TypeVar("Options")

_FOR_TRANSLATIONS = (
    *("systems", "reference", "test", "metrics", "on", "tokenize", "lowercase", "comet_model"),
    *("beer", "sentences", "cost", "group_seeds", "tests"),
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
    kind, values = chosen_format(kind, as_json=as_json), context.params
    if contrast:
        from synmt.evaluation.contrast.report import SAMPLES, ContrastOptions, judge_models

        judged = _fill(ContrastOptions, values, models=runs or [], samples=samples or SAMPLES)
        console.show_reports({"contrast": judge_models(judged)}, kind)
        return
    if target:
        from synmt.evaluation.model_scores import PairOptions

        _score_pairs(_fill(PairOptions, values, model=(runs or [])[0]), cluster, kind)
        return
    tested = None if tests is None else _split(tests)
    _score_translations(values, _split(metrics), tested, kind)


def _fill(record: Callable[..., Options], values: Mapping[str, Any], **others: Any) -> Options:
    """Make a record of options from the parameters of the command that are called like its fields, and from others."""
    given = {name: values[name] for name in signature(record).parameters if name in values}
    return record(**(given | others))


def _score_translations(values: Mapping[str, Any], metrics: list[str], tests: list[str] | None, kind: Kind) -> None:
    """Print scores; write those of sentences into a file if there is one."""
    from synmt.evaluation.comparison import ScoreOptions, compare_systems
    from synmt.evaluation.cost import check_runs
    from synmt.evaluation.report import check_sentence_file, score_report, write_sentence_scores

    systems = [*(values["systems"] or []), *(values["runs"] or [])]
    reference, source, sentences = values["reference"], values["source"], values["sentences"]
    if values["cost"]:
        check_runs(systems)
    if sentences:
        check_sentence_file(sentences, [*systems, *(one for one in (reference, source) if one)])
    comparison = compare_systems(
        systems,
        reference,
        sources=source,
        metrics=metrics,
        tests=tests,
        samples=values["samples"],
        seed=values["seed"],
        options=_fill(ScoreOptions, values, test_set=values["test"], beer_folder=values["beer"]),
    )
    if tests is not None and len(comparison.systems) == 1:
        console.remark("there is only one system, so --tests has no effect")
    if sentences:
        with console.written("scores of sentences", sentences):
            write_sentence_scores(sentences, comparison)
    console.show_reports({"score": score_report(comparison, cost=values["cost"])}, kind)


def _score_pairs(options: PairOptions, cluster: str | None, kind: str) -> None:
    """Print a line of JSON for each pair as soon as it is scored; as `json`, print one object at the end."""
    from synmt.arrays import json_text
    from synmt.decode.pair_scores import Totals
    from synmt.evaluation.model_scores import pair_json, score_files, summary_table
    from synmt.parallel.engine import using_cluster

    if kind not in ("text", "json"):
        raise UsageError("probabilities of pairs are lines of JSON", where="--format", do="Leave it out")
    totals, pairs = Totals(), []
    with using_cluster(cluster):
        for pair in score_files(options):
            totals.add(pair)
            if kind == "json":
                pairs.append(pair_json(pair))
            else:
                sys.stdout.write(json_text(pair_json(pair), ensure_ascii=False) + "\n")
    if kind == "json":
        summary = {
            "model": options.model.resolve().name,
            "checkpoint": options.checkpoint,
            **totals.as_json(),
        }
        console.print_json({"summary": summary, "pairs": pairs})
    table = summary_table(totals)
    if totals.pairs:
        console.remark(str(table))


def _split(names: str) -> list[str]:
    """Split names at commas, without repetitions."""
    return list(dict.fromkeys(name.strip().lower() for name in names.split(",")))


def _check_options(context: typer.Context) -> None:
    """Refuse options that do not belong together, and name those that have no effect."""
    typed, values = typed_options(context, {"systems": options.TRANSLATIONS}), context.params
    by_model = [typed[name] for name in ("target", "contrast") if name in typed]
    if by_model and "runs" not in typed:
        raise UsageError(f"{by_model[0]} needs a model", do="Add `--run RUN`")
    for name in _FOR_TRANSLATIONS if by_model else _FOR_MODELS:
        if name in typed and by_model:
            raise UsageError(
                f"{typed[name]} cannot be combined with {by_model[0]}",
                do="Either score translations, or let models score texts",
            )
        if name in typed:
            raise UsageError(
                f"{typed[name]} needs texts that a model scores",
                do="Add `--source FILE --target FILE`, or `--contrast PATH`",
            )
    for is_wrong, what, do in _combinations(typed, values):
        if is_wrong:
            raise UsageError(what, do=do)
    if by_model:
        from synmt.run import wrong_checkpoint

        if wrong := wrong_checkpoint(values["checkpoint"], "--checkpoint"):
            raise wrong
    for name, why in _ineffective(values):
        if name in typed:
            console.remark(f"{typed[name]} has no effect without {why}")


def _combinations(typed: dict[str, str], values: dict[str, Any]) -> list[tuple[bool, str, str]]:
    """List what may be wrong with options together: whether it is, what, and what to do.

    typed: the spelling of each option that the user typed, by its name.
    values: of all options.
    """
    runs, source, target = ("runs" in typed, "source" in typed, "target" in typed)
    if "contrast" in typed:
        several = len(values["contrast"]) > 1
        own = "Leave out --source and --target"
        return [
            (source or target, "a contrastive set has its own texts", own),
            (
                "cluster" in typed,
                "contrastive sets are judged on this machine",
                "Leave out --cluster",
            ),
            (
                "parses" in typed and several,
                "--parses needs a single --contrast set",
                "Run each set separately",
            ),
        ]
    if target:
        one = "Run it once for each, or use `--contrast`"
        from_input = [str(values[name]) for name in ("source", "target", "parses")].count("-")
        return [
            (not source, "--target needs --source", "Add `--source FILE`"),
            (len(values["runs"]) > 1, "pairs are scored by one model at a time", one),
            (
                from_input > 1,
                "standard input can be read only once",
                "Give `-` for one of the files",
            ),
        ]
    what = "Give translations or a run: see `synmt score --help`"
    return [
        (runs and source, "--source needs --target", "Add `--target FILE`, or leave out --source"),
        (not runs and "systems" not in typed, "there is nothing to score", what),
    ]


def _ineffective(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the options that change nothing, with what they need."""
    if values["target"] or values["contrast"]:
        # only differences are resampled
        why = "a second --run" if values["contrast"] else "--contrast"
        if not values["contrast"] or len(values["runs"]) == 1:
            yield from ((name, why) for name in ("samples", "seed"))
        return
    bleu = ("bleu", "bleu1", "bleu2", "bleu3")
    needed = {
        "tokenize": bleu,
        "lowercase": (*bleu, "chrf", "chrf++"),
        "comet_model": ("comet",),
        "beer": ("beer",),
    }
    for name, metrics in needed.items():
        if not set(metrics) & set(_split(values["metrics"])):
            yield name, f"the metric {' or '.join(metrics)}"
