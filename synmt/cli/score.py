"""`synmt score`: scores of translations with signatures and significance, or probabilities given by
models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from synmt.cli import console
from synmt.cli.command import DEVICES, PARSERS, WEIGHTS, Cluster
from synmt.cli.options import TableOptions, Typed, command, filled, piped, refuse_typed
from synmt.errors import UsageError
from synmt.options import Option

if TYPE_CHECKING:
    from synmt.reporting.formats import Format

_text = partial(Option, panel="Translations")
_test = partial(Option, panel="Significance")
_model = partial(Option, panel="Probabilities given by a model")


@dataclass(frozen=True, kw_only=True)
class ScoreArguments:
    """What `synmt score` is given, in the order of its help page."""

    systems: Annotated[
        Sequence[Path],
        Option(
            "One for each system: a file, `-` for standard input, a run folder, or a quoted "
            "pattern such as 'pascal.*' that matches several seeds of one system.",
            metavar="TRANSLATIONS",
            is_argument=True,
            show_default=False,
        ),
    ] = ()
    runs: Annotated[
        Sequence[Path],
        Option(
            "Runs whose translations are scored; with --target or --contrast, their models score "
            "those texts.",
            names="--run --model",
            metavar="RUN …",
            show_default=False,
        ),
    ] = ()
    reference: Annotated[
        Path | None,
        _text(
            "The references, a line for each translation; default: those of the first run.",
            names="--reference -r",
            metavar="FILE",
        ),
    ] = None
    source: Annotated[
        Path | None,
        Option(
            "Source sentences, for COMET (default: those of the first run) or for --target.",
            names="--source -s",
            metavar="FILE",
        ),
    ] = None
    test_set: Annotated[
        str | None,
        _text("The test set of the runs; default: `test`, else the first by name.", names="--test"),
    ] = None
    metrics: Annotated[
        str,
        _text(
            "Any of bleu, bleu1, bleu2, bleu3, chrf, chrf++, ter, ribes, comet, beer, separated by "
            "commas.",
            names="--metrics --metric -m",
        ),
    ] = "bleu,chrf,ter"
    on: Annotated[
        Literal["text", "tokens"] | None,
        _text(
            "Score the text of runs, or the words that their models wrote; default: as in the "
            "first run's recipe. Token-level scores are marked `on tokens`.",
        ),
    ] = None
    tokenize: Annotated[
        str | None,
        _text(
            "Tokenization of BLEU: 13a, intl, zh, ja-mecab, char, none …; default: that of the "
            "first run, else 13a.",
        ),
    ] = None
    lowercase: Annotated[
        bool | None,
        _text(
            "Ignore case in BLEU and chrF, or not; default: as in the first run's recipe, else "
            "not.",
            names="--lowercase/--cased",
        ),
    ] = None
    comet_model: Annotated[str | None, _text("The model of COMET.", metavar="NAME|FILE")] = None
    beer_folder: Annotated[
        Path | None,
        _text("Folder of BEER; default: $BEER_HOME.", names="--beer", metavar="FOLDER"),
    ] = None
    sentences: Annotated[
        Path | None,
        _text(
            "Write the scores of every segment, a row for each; .jsonl has the texts too.",
            metavar="FILE.tsv|FILE.jsonl",
        ),
    ] = None
    cost: Annotated[
        bool,
        _text(
            "Also show what each run costs: parameters, time and memory of training, time and "
            "speed of parsing, speed of translation, and steps to the lowest loss of the first "
            "run. Given recipes, or runs that are in training, show only that.",
        ),
    ] = False
    group_seeds: Annotated[
        bool,
        _test(
            "Treat files or runs as seeds of one system if their names differ only in `-seed1`, "
            "`.seed1`, or after the last dot.",
            names="--seeds",
        ),
    ] = False
    names: Annotated[
        Sequence[str],
        _text("Names of the systems, in their order.", metavar="NAME …", show_default=False),
    ] = ()
    tests: Annotated[
        str | None,
        _test(
            "Any of bootstrap, randomization, t (paired t-test), ks (Kolmogorov-Smirnov), seeds "
            "(Welch's t-test), separated by commas.",
            show_default="bootstrap, randomization, and seeds if a system has several",
        ),
    ] = None
    samples: Annotated[
        int | None,
        _test(
            "Number of resamples or permutations.",
            minimum=1,
            show_default="1,000 resamples, 10,000 permutations",
        ),
    ] = None
    seed: Annotated[int, _test("Seed of the resamples and permutations.", minimum=0)] = 12345
    target: Annotated[Path | None, _model("Translations of --source to score.", metavar="FILE")] = (
        None
    )
    contrast: Annotated[
        Sequence[str],
        _model(
            "Pairs of a right and a wrong translation: a folder with src.XX, correct.YY, "
            "incorrect.YY, or a folder of such folders; .tsv; .json of LingEval97 or ContraPro; or "
            "`controlled` for those of the controlled corpus. Repeat the option for more. "
            "Log-probabilities favour the shorter text of a pair; means over the pieces do not.",
            metavar="PATH|controlled",
        ),
    ] = ()
    checkpoint: Annotated[str, _model("The weights of the run.", metavar=WEIGHTS)] = "final"
    parses: Annotated[
        Path | None,
        _model("Trees of --source; default: the model's parser makes them.", metavar="FILE.conllu"),
    ] = None
    parser: Annotated[
        str | None, _model("New location of the runs' parser, if it has moved.", metavar=PARSERS)
    ] = None
    batch_size: Annotated[
        int | None, _model("Sentences in a batch.", minimum=1, show_default="the recipe's")
    ] = None
    device: Annotated[str, _model(DEVICES)] = "auto"
    cluster: Cluster = None


_FOR_MODELS = ("checkpoint", "parses", "parser", "batch_size", "device", "cluster")
_FOR_TRANSLATIONS = (
    "systems",
    "reference",
    "test_set",
    "metrics",
    "on",
    "tokenize",
    "lowercase",
    "comet_model",
    "beer_folder",
    "sentences",
    "cost",
    "group_seeds",
    "names",
    "tests",
)


@command
def score(options: ScoreArguments, tables: TableOptions, typed: Typed) -> None:
    """Score translations and compare each system with the first, or let models score given texts by
    probability.

    Example: [bold]synmt score -r reference.de baseline.de pascal.de --metrics bleu,ribes[/]

    Example: [bold]synmt score runs/multi30k-tiny runs/multi30k-pascal --tests bootstrap,t[/]

    Example: [bold]synmt score -r reference.de 'baseline.seed*.de' 'pascal.seed*.de'[/]

    Example: [bold]synmt score --run runs/multi30k-pascal --source test.en --target test.de >
        pairs.jsonl[/]

    Example: [bold]synmt score --run runs/multi30k-tiny runs/multi30k-pascal --contrast
        controlled[/]
    """
    _check(options, typed)
    if options.contrast:
        _judge(options, tables.format)
    elif options.target:
        _score_pairs(options, tables.format)
    else:
        _score_translations(options, tables.format)


def _check(options: ScoreArguments, typed: Typed) -> None:
    """Refuse options that do not apply to the task, and a task that lacks some."""
    task = "--contrast" if options.contrast else "--target" if options.target else ""
    names = _FOR_TRANSLATIONS if task else _FOR_MODELS
    refuse_typed(
        typed,
        names,
        f"does not apply to {task or 'translations'}",
        do="Leave it out" if task else "Let models score texts by --target or --contrast",
    )
    if options.contrast and options.target:
        raise UsageError("--target does not apply to --contrast", do="Leave one of them out")
    if task and not options.runs:
        raise UsageError(f"{task} needs a model", do="Add `--run RUN`")
    if task == "--target" and (not options.source or len(options.runs) > 1):
        raise UsageError("--target needs --source and one model", do="Add `--source FILE`")
    if options.sentences is not None and options.sentences in (
        options.reference,
        options.source,
        *options.systems,
    ):
        raise UsageError("the output would replace an input", where=options.sentences)
    names = ("systems", "reference", "source", "target", "parses")
    piped({name: getattr(options, name) for name in names})


def _judge(options: ScoreArguments, kind: Format) -> None:
    """Print how often models prefer the right translations."""
    from synmt.evaluation.contrast.report import ContrastOptions, judge_models

    report = judge_models(filled(ContrastOptions, options, models=options.runs))
    console.show_reports({"contrast": report}, kind)


def _score_translations(options: ScoreArguments, kind: Format) -> None:
    """Print scores; write those of sentences into a file if there is one."""
    from synmt.evaluation.comparison import ScoreOptions, compare_systems
    from synmt.evaluation.cost import cost_report, is_untested
    from synmt.evaluation.report import score_report, write_sentence_scores

    systems = [*options.systems, *options.runs]
    if options.cost and any(map(is_untested, systems)):
        console.show_reports({"cost": cost_report(systems)}, kind)
        return
    comparison = compare_systems(
        systems,
        options.reference,
        sources=options.source,
        metrics=_split(options.metrics),
        tests=None if options.tests is None else _split(options.tests),
        samples=options.samples,
        seed=options.seed,
        options=filled(ScoreOptions, options),
    )
    if options.sentences:
        with console.written("scores of sentences", options.sentences):
            write_sentence_scores(options.sentences, comparison)
    console.show_reports({"score": score_report(comparison, cost=options.cost)}, kind)


def _score_pairs(options: ScoreArguments, kind: Format) -> None:
    """Print a line of JSON for each pair as soon as it is scored; as `json`, print one object at
    the end."""
    from synmt.arrays import json_text
    from synmt.decode.pairs import Totals
    from synmt.evaluation.model_scores import PairOptions, pair_json, score_files, summary_table
    from synmt.parallel.engine import using_cluster

    [model] = options.runs
    totals, pairs = Totals(), []
    with using_cluster(options.cluster):
        for pair in score_files(filled(PairOptions, options, model=model)):
            totals.add(pair)
            if kind == "json":
                pairs.append(pair_json(pair))
            else:
                sys.stdout.write(json_text(pair_json(pair), ensure_ascii=False) + "\n")
    summary = summary_table(totals)
    if kind == "json":
        console.print_json({"summary": summary.as_json(), "pairs": pairs})
    console.remark(str(summary))


def _split(names: str) -> list[str]:
    """Split names at commas."""
    return [name.strip().lower() for name in names.split(",")]
