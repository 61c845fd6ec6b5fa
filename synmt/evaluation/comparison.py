"""Compare systems by one metric or more: scores, confidence intervals, and each system against the first.

    from synmt.evaluation import compare_systems

    comparison = compare_systems(["base.de", "pascal.de"], "reference.de", metrics=["bleu"])
    base, pascal = comparison.results["bleu"]
    print(pascal.value, pascal.low, pascal.high, pascal.p_values["bootstrap"])

`synmt score` prints these results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from synmt.errors import UsageError, one_text
from synmt.evaluation.bootstrap import SEED
from synmt.evaluation.cache import cached_score
from synmt.evaluation.metrics import Metric, Score, check_texts, make_metric
from synmt.evaluation.results import SignificancePlan, SystemResult, check_tests, compare_scores
from synmt.evaluation.systems import ScoringInputs, Text, read_systems, systems_from_lines, warn_about_texts
from synmt.reporting.progress import progress


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is scored and how; None means as the first run's recipe says, else as `MetricOptions` does.

    test_set: of runs; None for `test`, else the first run's first by name.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    on: `text` or `tokens`, which a run that tokenizes text has both.
    tokenize, lowercase, comet_model, beer_folder: see `MetricOptions`.
    """

    test_set: str | None = None
    group_seeds: bool = False
    on: str | None = None
    tokenize: str | None = None
    lowercase: bool | None = None
    comet_model: str | None = None
    beer_folder: Path | None = None


@dataclass(frozen=True)
class SystemComparison:
    """Scores and results of all systems.

    scores, results: for each metric, by its name, a list with an entry for each system; of `scores` each entry is a
        list with a score for each seed.
    """

    inputs: ScoringInputs
    scores: dict[str, list[list[Score]]]
    results: dict[str, list[SystemResult]]
    plan: SignificancePlan


def compare_systems(
    systems: Sequence[str | Path] | Sequence[Sequence[str]],
    references: str | Path | Sequence[str] | None = None,
    *,
    sources: str | Path | Sequence[str] | None = None,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    tests: Sequence[str] | None = None,
    samples: int | None = None,
    seed: int = SEED,
    options: ScoreOptions | None = None,
) -> SystemComparison:
    """Score systems by each metric, and compare each with the first.

    systems: files of translations, run folders, or patterns whose matches are seeds of one system; or lists of lines.
    references, sources: a file, or a list of lines; by default those of the first run.
    metrics: names in `metrics.METRICS`.
    tests: names in TESTS; by default bootstrap and randomization, and seeds where a system has several.
    samples: number of resamples and of random permutations; by default 1,000 and 10,000.

    Raises SynmtError if texts cannot be read or do not belong together, UsageError for an unknown metric or test.
    """
    options = options or ScoreOptions()
    inputs = _read_inputs(systems, references, sources, options)
    plan = SignificancePlan(None if tests is None else check_tests(tests, [len(one.seeds) for one in inputs.systems]))
    plan = replace(plan, resamples=samples or plan.resamples, swaps=samples or plan.swaps, seed=seed)
    scores = _score_all(inputs, _make_metrics(inputs, metrics, options))
    with progress("comparing", len(scores), "metrics") as advance:
        results = {}
        for name, of_systems in scores.items():
            results[name] = compare_scores(of_systems, plan)
            advance(1)
    return SystemComparison(inputs, scores, results, plan)


def _read_inputs(systems: Any, references: Any, sources: Any, options: ScoreOptions) -> ScoringInputs:
    if isinstance(systems, str):
        raise one_text(systems, "systems")
    if not systems:
        raise UsageError("there are no translations to score")
    paths = [isinstance(text, (str, Path)) for text in (*systems, references, sources) if text is not None]
    if not any(paths) and references is not None:
        return systems_from_lines(systems, references, sources)
    if not all(paths):
        what = "the reference is missing" if references is None else "some texts are paths, and others lists of lines"
        raise UsageError(what, do="Give systems, references and sources in the same form")
    reference, source = (None if one is None else Path(one) for one in (references, sources))
    return read_systems(
        [Path(one) for one in systems],
        reference=reference,
        source=source,
        test=options.test_set,
        group_seeds=options.group_seeds,
        on=options.on,
    )


def _make_metrics(inputs: ScoringInputs, names: Sequence[str], options: ScoreOptions) -> dict[str, Metric]:
    """Make the metrics; fail before anything is scored if a metric needs a source and there is none."""
    chosen = {name: getattr(options, name) for name in ("tokenize", "lowercase", "comet_model", "beer_folder")}
    metric_options = inputs.metric_options.updated(**chosen)
    metrics = {name: make_metric(name, metric_options) for name in names}
    for metric in metrics.values():
        check_texts(metric, inputs.reference.lines, inputs.reference.lines, inputs.source)
    warn_about_texts(inputs, names, metric_options.tokenize)
    return metrics


def _score_all(inputs: ScoringInputs, metrics: Mapping[str, Metric]) -> dict[str, list[list[Score]]]:
    """Score every text by every metric: for each metric a list of systems, of each a list of seeds."""
    with progress("scoring", sum(1 for _ in inputs.texts) * len(metrics), "scores") as advance:

        def score(metric: Metric, text: Text) -> Score:
            source = inputs.source if metric.reads_source else None
            result = cached_score(
                metric, text.lines, inputs.reference.lines, sources=source, folder=text.statistics_folder
            )
            advance(1)
            return result

        return {
            name: [[score(metric, text) for text in system.seeds] for system in inputs.systems]
            for name, metric in metrics.items()
        }
