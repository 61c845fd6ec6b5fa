"""Scores as statistics first: counted once per segment, summed over any group of segments, then one number.

    score(group) = aggregate( Σ statistics[n] for n in group )

The corpus, a bucket of lengths and a bootstrap resample are only different groups, so that a score by group
and a significance test cost no second look at the text. The numbers are those of sacreBLEU's command line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import numpy as np

from synmt.bootstrap import SAMPLES, SEED, DoubleArray, interval, resamples
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import read_lines

Aggregate = Callable[[DoubleArray], float]

METRICS = {"bleu": "synmt.sacre:bleu", "chrf": "synmt.sacre:chrf", "ter": "synmt.sacre:ter"}
"""Every metric by its name, and the function that makes it from MetricOptions; imported when it is made."""


class Metric(ABC):
    """A way to score: what to count in a segment, and how the sum of the counts becomes one number.

    title: the name that people know, `chrF2`.
    signature: all that must be equal for two scores to be comparable.
    higher_is_better: False for an error rate.
    """

    title: str
    signature: str
    higher_is_better: bool = True

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> DoubleArray:
        """Count what the score needs in each segment: (N, S)."""

    @abstractmethod
    def aggregate(self, totals: DoubleArray) -> float:
        """Turn the statistics' sum over any group of segments, (S,), into the score of the group."""


@dataclass(frozen=True)
class MetricOptions:
    """What a user may choose about a metric.

    tokenize: how BLEU cuts words, by sacreBLEU's names; `none` for text that is cut already.
    lowercase: ignore case. TER always does, as in sacreBLEU.
    """

    tokenize: str = "13a"
    lowercase: bool = False


@dataclass(frozen=True)
class Score:
    """A system's score by one metric, with the statistics of every segment kept for regrouping: (N, S)."""

    metric: Metric
    value: float
    statistics: DoubleArray

    @property
    def signature(self) -> str:
        """All that must be equal for two scores to be comparable."""
        return self.metric.signature


@dataclass(frozen=True)
class Comparison:
    """How much a system differs from another, and whether chance explains it.

    difference: the system's score minus the other's.
    low, high: the 95 % interval of the difference.
    p_value: two-sided.
    """

    difference: float
    low: float
    high: float
    p_value: float


def make_metric(name: str, options: MetricOptions | None = None) -> Metric:
    """Make a metric by its name in METRICS."""
    if name not in METRICS:
        raise UsageError(
            f"there is no metric '{name}'",
            allowed=f"Metrics: {', '.join(METRICS)}",
            do=did_you_mean(name, METRICS),
        )
    return resolve_name(METRICS[name])(options or MetricOptions())


def score_system(
    hypotheses: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Score]:
    """Score one system's translations by each of the metrics named."""
    options = MetricOptions(tokenize, lowercase)
    return {name: score(make_metric(name, options), hypotheses, references) for name in metrics}


def score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Score one system's translations by one metric."""
    if len(hypotheses) != len(references):
        raise SynmtError(f"{len(hypotheses):,} translations cannot be scored by {len(references):,} references")
    if not references:
        raise SynmtError("there are no translations to score")
    statistics = metric.statistics(hypotheses, references)
    return Score(metric, metric.aggregate(statistics.sum(0)), statistics)


def paired_bootstrap(
    base: DoubleArray,
    system: DoubleArray,
    aggregate: Aggregate,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compare two systems by their statistics on the same segments, (N, S) each (Koehn, 2004).

    The p-value is the share of resamples whose difference is as far from the observed one as zero is, or
    farther, to either side. sacreBLEU draws the same resamples, but counts one side only, after folding
    the signs of the differences: its p-value is about half as large.
    """
    observed = aggregate(system.sum(0)) - aggregate(base.sum(0))
    differences = bootstrap_differences(base, system, aggregate, samples=samples, seed=seed)
    low, high = interval(differences)
    extreme = np.count_nonzero(np.abs(differences - observed) >= abs(observed))
    return Comparison(observed, float(low), float(high), (int(extreme) + 1) / (samples + 1))


def bootstrap_differences(
    base: DoubleArray, system: DoubleArray, aggregate: Aggregate, *, samples: int, seed: int
) -> DoubleArray:
    """Score both systems on resamples of the segments and subtract: (samples,)."""
    assert base.shape == system.shape, (base.shape, system.shape)
    both = np.hstack((base, system))  # (N, 2S)
    return np.array(
        [
            aggregate(second) - aggregate(first)
            for counts in resamples(len(both), samples=samples, seed=seed)
            for first, second in (np.split(totals, 2) for totals in counts @ both)
        ]
    )


def read_aligned(paths: Sequence[str | Path]) -> list[list[str]]:
    """Read texts that belong together line by line: each must have as many lines as the first."""
    if [str(path) for path in paths].count("-") > 1:
        raise UsageError("standard input can be read only once", do="Give `-` for one of the files")
    texts = [list(read_lines(path)) for path in paths]
    first = f"{_named(paths[0])} has {len(texts[0]):,}"
    if not texts[0]:
        raise SynmtError("the file is empty", where=_named(paths[0]))
    wrong = [
        SynmtError(f"{len(text):,} lines, but {first}", where=_named(path), do="Line n of both must belong together")
        for path, text in zip(paths, texts, strict=True)
        if len(text) != len(texts[0])
    ]
    if wrong:
        raise all_in_one(wrong)
    return texts


def looks_tokenized(lines: Sequence[str]) -> bool:
    """Tell whether a tenth of the lines end in a full stop that stands alone, as in text cut into words."""
    return sum(line.rstrip().endswith(" .") for line in lines) * 10 > len(lines)


def _named(path: str | Path) -> str:
    return "standard input" if str(path) == "-" else str(path)
