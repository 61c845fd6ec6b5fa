"""Metrics: statistics are counted once for each segment, summed over any group of segments, and
turned into a score.

    score(group) = aggregate( Σ statistics[n] for n in group )

The corpus, the sentences of some length and a bootstrap resample are different groups of the same
statistics, so the texts are read only once for all of them. BLEU, chrF and TER are those of
sacreBLEU's command line. All scores are in points: 83 where the authors of a metric write 0.83.

The statistics can be cached (`cached_score`), so that a text is scored once by each metric. The
name of a cache file is a fingerprint of the metric's signature and of the texts. The files are
stored in the folder of a run's test set, `tests/NAME/segments/`, or in `$SYNMT_CACHE/segments/`. A
cached score equals the computed one bit for bit; a file that is damaged or belongs to other texts
is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np

from synmt.arrays import DoubleArray, Texts
from synmt.errors import SynmtError, UsageError, unknown_name
from synmt.files.reading import cache_folder, fingerprint, read_lines
from synmt.files.writing import write_content
from synmt.recipe.schema import EvaluationRecipe

Aggregate = Callable[[DoubleArray], float]

METRICS = {
    "bleu": "synmt.evaluation.sacrebleu:bleu",
    "bleu1": "synmt.evaluation.sacrebleu:bleu1",
    "bleu2": "synmt.evaluation.sacrebleu:bleu2",
    "bleu3": "synmt.evaluation.sacrebleu:bleu3",
    "chrf": "synmt.evaluation.sacrebleu:chrf",
    "chrf++": "synmt.evaluation.sacrebleu:chrf_plus_plus",
    "ter": "synmt.evaluation.sacrebleu:ter",
    "ribes": "synmt.evaluation.ribes:Ribes",
    "comet": "synmt.evaluation.learned:Comet",
    "beer": "synmt.evaluation.learned:Beer",
}
"""The function that makes each metric from MetricOptions; its module is imported when the metric is
made."""


_FORMAT = 1
"""Increase it when the statistics or the layout of the files change, so that older files are
ignored."""

_STORED = "<f8"
"""Doubles in the same byte order on every machine."""


class Metric(ABC):
    """A metric: what to count in a segment, and how to compute a score from the sum of the counts.

    title: its usual name, `chrF2`.
    signature: two scores can be compared only if their signatures are equal.
    higher_is_better: False for an error rate.
    reads_source: whether it needs the source sentences.
    on_tokens: whether it scores words as a model writes them.
    """

    title: str
    signature: str
    higher_is_better: bool = True
    reads_source: bool = False
    on_tokens: bool = False

    @abstractmethod
    def statistics(
        self, hypotheses: Texts, references: Texts, sources: Texts | None = None
    ) -> DoubleArray:
        """Count the statistics of each segment: (N, S)."""

    @abstractmethod
    def aggregate(self, totals: DoubleArray) -> float:
        """Compute the score of a group of segments from the sum of its statistics: (S,)."""

    @property
    def label(self) -> str:
        """The name with the signature, for notes."""
        return f"{self.title}|{self.signature}"

    def details(self, totals: DoubleArray) -> dict[str, float]:
        """Compute the components of the score of a group, such as precisions; most metrics have
        none."""
        return {}

    def segment_scores(self, statistics: DoubleArray) -> DoubleArray:
        """Score each segment alone: (N, S) -> (N,)."""
        return np.array([self.aggregate(row) for row in statistics], dtype=float)


class MeanMetric(Metric):
    """A metric that is the mean of the scores of the segments; its statistics are (score, 1)."""

    @abstractmethod
    def score_segments(
        self, hypotheses: Texts, references: Texts, sources: Texts | None
    ) -> Sequence[float]:
        """Score each segment, in points."""

    def statistics(
        self, hypotheses: Texts, references: Texts, sources: Texts | None = None
    ) -> DoubleArray:
        """Return the score of each segment, and 1 as its count: (N, 2)."""
        points = self.score_segments(hypotheses, references, sources)
        assert len(points) == len(hypotheses), (len(points), len(hypotheses))
        return np.array([(score, 1) for score in points], dtype=float)

    def aggregate(self, totals: DoubleArray) -> float:
        """Divide the sum of the scores by their number."""
        return float(totals[0] / totals[1])


@dataclass(frozen=True)
class MetricOptions:
    """Options of metrics.

    tokenize: the tokenization of BLEU, by sacreBLEU's names; `none` for tokenized text.
    lowercase: ignore case in BLEU and chrF. TER always does, as in sacreBLEU, and RIBES, as in its
        authors' script.
    on_tokens: the texts are words as a model writes them; titles and signatures say so.
    comet_model: COMET's model, by its name on the Hugging Face hub or the path of its checkpoint.
    beer_folder: where BEER is unpacked; by default `$BEER_HOME`.
    """

    tokenize: str = "13a"
    lowercase: bool = False
    comet_model: str = "Unbabel/wmt22-comet-da"
    beer_folder: Path | None = None
    on_tokens: bool = False

    def updated(self, record: Any) -> MetricOptions:
        """Replace options by those fields of another record that have their names and are not
        None."""
        both = vars(self).keys() & vars(record)
        return replace(
            self, **{name: value for name in both if (value := getattr(record, name)) is not None}
        )


def options_of(recipe: EvaluationRecipe) -> MetricOptions:
    """Take the options of metrics from a recipe."""
    return MetricOptions(recipe.tokenize, recipe.lowercase, on_tokens=recipe.on == "tokens")


def computed_here(metrics: Iterable[str]) -> list[str]:
    """Leave BEER, which is not part of synmt, out where it is not installed."""
    return [name for name in metrics if name != "beer" or os.environ.get("BEER_HOME")]


@dataclass(frozen=True)
class Score:
    """The score of a text by one metric, and the statistics of its segments: (N, S)."""

    metric: Metric
    statistics: DoubleArray

    @cached_property
    def value(self) -> float:
        """The score of all segments."""
        return self.metric.aggregate(self.statistics.sum(0))

    @property
    def signature(self) -> str:
        """The signature of the metric."""
        return self.metric.signature

    @property
    def details(self) -> dict[str, float]:
        """The components of the score, such as precisions."""
        return self.metric.details(self.statistics.sum(0))


def make_metric(name: str, options: MetricOptions | None = None) -> Metric:
    """Make a metric by its name in METRICS, in upper or lower case."""
    known = name.strip().lower()
    if known not in METRICS:
        raise unknown_name("metric", known, METRICS)
    options = options or MetricOptions()
    metric: Metric = resolve_name(METRICS[known])(options)
    if options.on_tokens:
        metric.on_tokens = True
        metric.title += " on tokens"
        metric.signature += "|on:tokens"
    return metric


def score(
    metric: Metric, hypotheses: Texts, references: Texts, sources: Texts | None = None
) -> Score:
    """Score the translations of a system by a metric."""
    check_texts(metric, hypotheses, references, sources)
    return Score(metric, metric.statistics(hypotheses, references, sources))


def cached_score(
    metric: Metric,
    hypotheses: Texts,
    references: Texts,
    *,
    sources: Texts | None = None,
    folder: Path | None = None,
) -> Score:
    """Score translations as `metrics.score` does, with statistics from the cache where possible.

    folder: where a run stores its statistics; without it, they go into the cache.
    """
    check_texts(metric, hypotheses, references, sources)
    sources = sources if metric.reads_source else None
    # all that the statistics depend on; as JSON: different lines may be the same text when joined,
    # if a line has a line end in it
    texts = [
        hashlib.sha256(json.dumps(list(lines)).encode()).hexdigest()
        for lines in (hypotheses, references, sources)
        if lines is not None
    ]
    identity = json.dumps([_FORMAT, metric.title, metric.signature, len(references), *texts])
    file = (folder or cache_folder() / "segments") / f"{fingerprint(identity)}.segments"
    statistics = _read(file, identity, len(references))
    if statistics is None:
        statistics = metric.statistics(hypotheses, references, sources)
        body = zlib.compress(statistics.astype(_STORED).tobytes())
        # a folder may be read-only
        with suppress(SynmtError, OSError):
            write_content(file, _head(identity, body) + b"\n" + body)
    return Score(metric, statistics)


def _read(path: Path, identity: str, segments: int) -> DoubleArray | None:
    """Read statistics; None if there is no file, or if it is damaged."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != _head(identity, body):
        return None
    values = np.frombuffer(zlib.decompress(body), dtype=_STORED)
    return values.reshape(segments, -1).astype(float)  # (N, S)


def _head(identity: str, body: bytes) -> bytes:
    """Make the first line of a file: what the statistics depend on, and their checksum."""
    return json.dumps({"of": identity, "sha256": hashlib.sha256(body).hexdigest()}).encode()


def check_texts(
    metric: Metric, hypotheses: Texts, references: Texts, sources: Texts | None
) -> None:
    """Raise an error for texts that a metric cannot score: different lengths, no lines, or a
    missing source."""
    if metric.reads_source and sources is None:
        raise UsageError(f"{metric.title} needs the source", do="Give it with `--source`")
    lengths = [len(text) for text in (hypotheses, references, sources) if text is not None]
    if len(set(lengths)) > 1 or not references:
        what = "translations, references and sources must have equally many lines, and one or more"
        raise SynmtError(f"{what}, not {lengths}")


def read_aligned(paths: Sequence[str | Path]) -> list[list[str]]:
    """Read parallel texts, which have the same number of lines."""
    texts = {printable(path): list(read_lines(path)) for path in paths}
    counts = {name: len(lines) for name, lines in texts.items()}
    if len({*counts.values()}) > 1 or 0 in counts.values():
        raise SynmtError(
            f"texts must have equally many lines, and one or more, not {counts}",
            do="Line n of all must belong together",
        )
    return list(texts.values())


def read_table(path: str | Path) -> tuple[list[str], list[list[str]]]:
    """Read the names of tab-separated columns, and the rows below, which have as many cells."""
    table = [line.split("\t") for line in read_lines(path)] or [[]]
    columns = len(set(table[0]))
    for number, row in enumerate(table, start=1):
        if len(row) != columns:
            raise SynmtError(
                f"{len(row)} cells, but the first row names {columns} different columns",
                where=f"{path}: line {number}",
            )
    return table[0], table[1:]


def printable(path: Path | str) -> str:
    """Write a path as text: a file name may not be UTF-8, but the output is."""
    return (
        "standard input"
        if str(path) == "-"
        else os.fsencode(path).decode(errors="backslashreplace")
    )
