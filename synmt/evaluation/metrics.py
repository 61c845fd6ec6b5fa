"""Scores as statistics first: counted once per segment, summed over any group of segments, then one number.

    score(group) = aggregate( Σ statistics[n] for n in group )

The corpus, a bucket of lengths and a bootstrap resample are only different groups, so that a score by group
and a significance test cost no second look at the text. BLEU, chrF and TER are those of sacreBLEU's command line.
All are in points: where the authors of a metric print 0.83, it is 83 here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

import numpy as np

from synmt.arrays import DoubleArray
from synmt.errors import SynmtError, UsageError, all_in_one, did_you_mean
from synmt.files import read_lines

Aggregate = Callable[[DoubleArray], float]

METRICS = {
    "bleu": "synmt.evaluation.sacrebleu:bleu",
    "bleu1": "synmt.evaluation.sacrebleu:bleu1",
    "bleu2": "synmt.evaluation.sacrebleu:bleu2",
    "bleu3": "synmt.evaluation.sacrebleu:bleu3",
    "chrf": "synmt.evaluation.sacrebleu:chrf",
    "chrf++": "synmt.evaluation.sacrebleu:chrf_plus_plus",
    "ter": "synmt.evaluation.sacrebleu:ter",
    "ribes": "synmt.evaluation.ribes:ribes",
    "comet": "synmt.evaluation.learned:comet",
    "beer": "synmt.evaluation.learned:beer",
}
"""Every metric by its name, and the function that makes it from MetricOptions; imported when it is made."""


class Metric(ABC):
    """A way to score: what to count in a segment, and how the sum of the counts becomes one number.

    title: the name that people know, `chrF2`.
    signature: all that must be equal for two scores to be comparable.
    higher_is_better: False for an error rate.
    reads_source: whether it needs the sentences that were translated.
    """

    title: str
    signature: str
    higher_is_better: bool = True
    reads_source: bool = False

    @abstractmethod
    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> DoubleArray:
        """Count what the score needs in each segment: (N, S)."""

    @abstractmethod
    def aggregate(self, totals: DoubleArray) -> float:
        """Turn the statistics' sum over any group of segments, (S,), into the score of the group."""

    def details(self, totals: DoubleArray) -> dict[str, float]:
        """Name the parts of which the score of a group is made; most metrics have none."""
        return {}

    def segment_scores(self, statistics: DoubleArray) -> DoubleArray:
        """Score each segment by itself: (N, S) -> (N,)."""
        return np.array([self.aggregate(row) for row in statistics], dtype=np.float64)


class MeanMetric(Metric):
    """A metric that scores each segment by itself; a group's score is the mean: statistics are (score, 1)."""

    @abstractmethod
    def score_segments(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
    ) -> Sequence[float]:
        """Score each segment, in points."""

    def statistics(
        self, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
    ) -> DoubleArray:
        """Score each segment and count it: (N, 2)."""
        points = self.score_segments(hypotheses, references, sources)
        assert len(points) == len(hypotheses), (len(points), len(hypotheses))
        return np.array([(score, 1) for score in points], dtype=np.float64)

    def aggregate(self, totals: DoubleArray) -> float:
        """Average the scores of a group, given their sum and their number."""
        return float(totals[0] / totals[1])


@dataclass(frozen=True)
class MetricOptions:
    """What a user may choose about a metric.

    tokenize: how BLEU cuts words, by sacreBLEU's names; `none` for text that is cut already.
    lowercase: ignore case. TER always does, as in sacreBLEU, and RIBES, as its authors' script does.
    comet_model: COMET's model, by its name on the Hugging Face hub or the path of its checkpoint.
    beer_folder: where BEER is unpacked; `BEER_HOME` says so too.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    comet_model: str = "Unbabel/wmt22-comet-da"
    beer_folder: Path | None = None


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

    @property
    def details(self) -> dict[str, float]:
        """The parts of which the score is made."""
        return self.metric.details(self.statistics.sum(0))


def make_metric(name: str, options: MetricOptions | None = None) -> Metric:
    """Make a metric by its name in METRICS, in capitals or not."""
    known = name.strip().lower()
    if known not in METRICS:
        raise UsageError(
            f"there is no metric '{name}'",
            allowed=f"Metrics: {', '.join(METRICS)}",
            do=did_you_mean(known, METRICS),
        )
    return resolve_name(METRICS[known])(options or MetricOptions())


def score_system(
    hypotheses: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    *,
    sources: Sequence[str] | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, Score]:
    """Score one system's translations by each of the metrics named."""
    options = MetricOptions(tokenize, lowercase)
    return {name: score(make_metric(name, options), hypotheses, references, sources) for name in metrics}


def score(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None = None
) -> Score:
    """Score one system's translations by one metric."""
    check_texts(metric, hypotheses, references, sources)
    return score_counted(metric, metric.statistics(hypotheses, references, sources))


def score_counted(metric: Metric, statistics: DoubleArray) -> Score:
    """Score a system whose segments have been counted: (N, S)."""
    return Score(metric, metric.aggregate(statistics.sum(0)), statistics)


def check_texts(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str] | None
) -> None:
    """Refuse texts that a metric cannot score together."""
    if len(hypotheses) != len(references):
        raise SynmtError(f"{len(hypotheses):,} translations cannot be scored by {len(references):,} references")
    if not references:
        raise SynmtError("there are no translations to score")
    if not metric.reads_source:
        return
    if sources is None:
        raise UsageError(f"{metric.title} reads the source, and none was given", do="Give it with `--source`")
    if len(sources) != len(references):
        raise SynmtError(f"{len(sources):,} source sentences do not belong to {len(references):,} references")


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


def looks_unspaced(lines: Sequence[str]) -> bool:
    """Tell whether most lines of some length have no space, as in languages that put none between words."""
    long = [words for words in map(str.split, lines) if sum(map(len, words)) > 10]
    return sum(len(words) == 1 for words in long) * 2 > len(long)


def _named(path: str | Path) -> str:
    return "standard input" if str(path) == "-" else str(path)
