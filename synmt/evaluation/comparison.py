"""Compare systems by one metric or more: scores, confidence intervals, and each system against the
first.

    from synmt.evaluation import compare_systems

    comparison = compare_systems(["base.de", "pascal.de"], "reference.de", metrics=["bleu"])
    base, pascal = comparison.results["bleu"]
    print(pascal.value, pascal.low, pascal.high, pascal.p_values["bootstrap"])

`synmt score` prints these results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from synmt.arrays import DoubleArray, Texts
from synmt.errors import UsageError, unknown_name
from synmt.evaluation.bootstrap import SAMPLES, SEED, WithInterval, interval
from synmt.evaluation.metrics import Metric, Score, cached_score, make_metric
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import (
    SWAPS,
    Comparison,
    Spread,
    approximate_randomization,
    bootstrap_scores,
    kolmogorov_smirnov,
    paired_t_test,
    resample_seeds,
    seeded_bootstrap,
    spread,
    welch_test,
)
from synmt.evaluation.spaces import warn_of_unspaced
from synmt.evaluation.systems import (
    System,
    group_paths,
    read_groups,
    renamed,
)
from synmt.reporting.progress import progress

TESTS = {
    "bootstrap": "paired bootstrap (Koehn, 2004)",
    "randomization": "approximate randomization (Riezler & Maxwell, 2005)",
    "t": "paired t-test of the segments' scores",
    "ks": "Kolmogorov-Smirnov test of the segments' scores",
    "seeds": "Welch's t-test of the seeds' scores",
}
"""The significance tests; all are two-sided."""


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is scored and how; None means as the first run's recipe says, else as `MetricOptions`
    does.

    test_set: of runs; None for `test`, else the first run's first by name.
    group_seeds: whether paths that differ only in a seed, or after their last dot, are one system.
    names: of the systems, in their order; by default those of their files.
    on: `text` or `tokens`, which a run that tokenizes text has both.
    tokenize, lowercase, comet_model, beer_folder: see `MetricOptions`.
    """

    test_set: str | None = None
    group_seeds: bool = False
    names: Texts = ()
    on: str | None = None
    tokenize: str | None = None
    lowercase: bool | None = None
    comet_model: str | None = None
    beer_folder: Path | None = None


@dataclass(frozen=True)
class SignificancePlan:
    """Which tests to compute, and from how many random samples.

    tests: names in TESTS; None for bootstrap and randomization, and seeds where both systems have
        several.
    resamples, swaps: number of samples of the bootstrap and of the randomization.
    """

    tests: Texts | None = None
    resamples: int = SAMPLES
    swaps: int = SWAPS
    seed: int = SEED


@dataclass(frozen=True)
class SystemResult(WithInterval):
    """The result of one system by one metric.

    seeds: a score for each seed; the system's score is their mean.
    low, high: the 95 % interval of the system's score, over sentences and seeds.
    difference: from the first system; None for the first system.
    comparison: by the bootstrap, if it is one of the tests.
    p_values: of each test; None for a test of seeds if one of the systems has a single seed.
    """

    seeds: Sequence[Score]
    low: float
    high: float
    difference: float | None = None
    comparison: Comparison | None = None
    p_values: dict[str, float | None] = field(default_factory=dict)

    @property
    def spread(self) -> Spread:
        """Mean and variation over the seeds."""
        return spread([score.value for score in self.seeds])

    @property
    def value(self) -> float:
        """The system's score."""
        return self.spread.mean


@dataclass(frozen=True)
class SystemComparison:
    """The results of all systems: for each metric, by its name, a list with an entry for each
    system."""

    systems: Sequence[System]
    results: dict[str, list[SystemResult]]
    plan: SignificancePlan

    def by_seed(self) -> Iterator[tuple[System, Outputs, dict[str, Score]]]:
        """Yield each system with each of its seeds, and the scores of that seed by metric."""
        for index, system in enumerate(self.systems):
            for place, seed in enumerate(system.seeds):
                yield (
                    system,
                    seed,
                    {name: found[index].seeds[place] for name, found in self.results.items()},
                )


def compare_systems(
    systems: Sequence[str | Path] | Sequence[Texts],
    references: str | Path | Texts | None = None,
    *,
    sources: str | Path | Texts | None = None,
    metrics: Texts = ("bleu", "chrf", "ter"),
    tests: Texts | None = None,
    samples: int | None = None,
    seed: int = SEED,
    options: ScoreOptions | None = None,
) -> SystemComparison:
    """Score systems by each metric, and compare each with the first.

    systems: files of translations, run folders, or patterns whose matches are seeds of one system;
        or lists of lines.
    references, sources: a file, or a list of lines; by default those of the first run.
    metrics: names in `metrics.METRICS`.
    tests: names in TESTS; by default bootstrap and randomization, and seeds where both systems
        have several.
    samples: number of resamples and of random permutations; by default 1,000 and 10,000.

    Raises SynmtError if texts cannot be read or do not belong together, UsageError for an unknown
    metric or test.
    """
    options = options or ScoreOptions()
    read = _read(systems, references, sources, options)
    for name in tests or ():
        if name not in TESTS:
            raise unknown_name("test", name, TESTS)
    plan = SignificancePlan(tests, samples or SAMPLES, samples or SWAPS, seed)
    first = read[0].seeds[0]
    scoring = first.scoring.updated(options)
    warn_of_unspaced("the reference", first.reference, metrics, scoring.tokenize)
    by_name, results = {name: make_metric(name, scoring) for name in metrics}, {}
    with progress("scoring", len(by_name), "metrics") as advance:
        for name, metric in by_name.items():
            scores = [[score_outputs(metric, seed) for seed in system.seeds] for system in read]
            results[name] = compare_scores(scores, plan)
            advance(1)
    return SystemComparison(read, results, plan)


def score_outputs(metric: Metric, outputs: Outputs) -> Score:
    """Score translations; the statistics of each sentence are cached in the folder of their run, if
    they have one."""
    # learned metrics know no tokenized text
    source = outputs.raw_source or outputs.source or None
    return cached_score(
        metric,
        outputs.hypothesis,
        outputs.reference,
        sources=source,
        folder=outputs.folder and outputs.folder / "segments",
    )


def _read(
    systems: Sequence[Any], references: Any, sources: Any, options: ScoreOptions
) -> list[System]:
    texts = [text for text in (*systems, references, sources) if text is not None]
    are_files = {isinstance(text, str | Path) for text in texts}
    if not systems:
        raise UsageError("there is nothing to score", do="Give translations or a run")
    if len(are_files) > 1 or (references is None and False in are_files):
        raise UsageError(
            "systems, references and sources must all be paths, or all be lists of lines"
        )
    if False in are_files:
        source, reference = list[str](sources or ()), list[str](references or ())
        return [
            System(
                name := f"system {number}",
                [Outputs(name, "", source, reference, list(lines), path=name)],
            )
            for number, lines in enumerate(systems, start=1)
        ]
    found = read_groups(
        group_paths(list(map(Path, systems)), group_seeds=options.group_seeds),
        references=references and Path(references),
        source=sources and Path(sources),
        test=options.test_set,
        on=options.on,
    )
    return renamed(found, options.names)


def compare_scores(
    systems: Sequence[Sequence[Score]], plan: SignificancePlan
) -> list[SystemResult]:
    """Find the result of each system, given the scores of its seeds by one metric; compare each
    with the first."""
    aggregate = systems[0][0].metric.aggregate
    results, resampled = [], []
    for seeds in systems:
        resampled.append(
            bootstrap_scores(
                [score.statistics for score in seeds],
                aggregate,
                samples=plan.resamples,
                seed=plan.seed,
            )
        )  # (R, n)
        means = resample_seeds(resampled[-1], np.random.default_rng(plan.seed))  # (R,)
        result = SystemResult(seeds, *interval(means).tolist())
        if results:
            result = _compare(result, results[0], resampled[-1], resampled[0], plan)
        results.append(result)
    return results


def _compare(
    result: SystemResult,
    base: SystemResult,
    resampled: DoubleArray,
    base_resampled: DoubleArray,
    plan: SignificancePlan,
) -> SystemResult:
    """Compare a system with the first one; their scores on the resamples are (R, n) each."""
    tests, comparison, difference = plan.tests, None, result.value - base.value
    systems = base.seeds, result.seeds
    several = min(map(len, systems)) > 1
    if tests is None:
        tests = ("bootstrap", "randomization", *["seeds"] * several)
    p_values = dict[str, float | None]()
    for name in tests:
        if name == "bootstrap":
            comparison = seeded_bootstrap(base_resampled, resampled, difference, seed=plan.seed)
            p_values[name] = comparison.p_value
        elif name == "randomization":
            first, second = ([score.statistics for score in seeds] for seeds in systems)
            p_values[name] = approximate_randomization(
                first, second, base.seeds[0].metric.aggregate, samples=plan.swaps, seed=plan.seed
            )
        elif name == "seeds":
            values = ([score.value for score in seeds] for seeds in systems)
            p_values[name] = welch_test(*values) if several else None
        else:
            test = paired_t_test if name == "t" else kolmogorov_smirnov
            of_segments = (
                np.mean([score.metric.segment_scores(score.statistics) for score in seeds], axis=0)
                for seeds in systems
            )  # (N,) both
            p_values[name] = test(*of_segments)
    return replace(result, difference=difference, comparison=comparison, p_values=p_values)
