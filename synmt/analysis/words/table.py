"""Precision, recall and F1 of each group of words, for any number of systems, with intervals and differences.

Intervals come from resamples of the sentences, the same ones for all systems. The value of a system with several seeds
is the mean over them, and its resamples have resampled seeds too (see synmt.evaluation.seeds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from synmt.analysis.groups.scores import FEW_SENTENCES
from synmt.analysis.words.counts import Measure, WordCounts, WordGroups, accuracy, measures_of
from synmt.arrays import DoubleArray
from synmt.evaluation.bootstrap import SEED, interval, resamples
from synmt.evaluation.seeds import resample_seeds, seeded_bootstrap
from synmt.evaluation.significance import Comparison, holm


@dataclass(frozen=True)
class WordAccuracy:
    """The accuracy of one system on one group, by one measure, in percent.

    value: mean over the seeds; None if nothing can be divided by.
    low, high: the 95 % interval; None for a group in few sentences.
    comparison: difference to the baseline in points; None for the baseline, and for a group in few sentences.
    adjusted: p-value of the comparison after Holm's correction over all comparisons of the table by this measure.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    comparison: Comparison | None = None
    adjusted: float | None = None


@dataclass(frozen=True)
class WordRow:
    """One group of words.

    words: that can be found: in the references, or aligned in the source.
    share: their share of all such words, 0 to 1.
    sentences: number of sentences that have some.
    systems: for each system, by measure.
    """

    group: str
    words: int
    share: float
    sentences: int
    systems: list[dict[Measure, WordAccuracy]]

    @property
    def few(self) -> bool:
        """Tell whether the group is in too few sentences for an interval."""
        return self.sentences < FEW_SENTENCES

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the row as plain values, with the systems by their names."""
        systems = {
            name: {measure.lower(): asdict(one) for measure, one in system.items()}
            for name, system in zip(names, self.systems, strict=True)
        }
        return {"group": self.group, "words": self.words, "share": self.share, "sentences": self.sentences} | {
            "systems": systems
        }


@dataclass(frozen=True)
class WordTable:
    """A row for each group with words, and a total for all words.

    measures: those that are known; recall only for source words.
    comparisons: how many comparisons Holm's correction covers, for each measure.
    """

    by: str
    unit: str
    about: str
    measures: tuple[Measure, ...]
    rows: list[WordRow]
    total: WordRow
    comparisons: int

    @property
    def shown(self) -> Measure:
        """The measure to show where there is room for one."""
        return self.measures[-1]


def tabulate_words(groups: WordGroups, counts: Sequence[Sequence[WordCounts]]) -> WordTable:
    """Compute a table from the counts of each system and seed; the first system is the baseline of the others."""
    measures = measures_of(counts)
    words = counts[0][0].words  # (N, G+1)
    totals, present = words.sum(0), (words > 0).sum(0)  # (G+1,) both
    known = [_accuracies(counts, measure, present >= FEW_SENTENCES) for measure in measures]
    names = [*groups.names, "all"]
    rows = [
        WordRow(
            name,
            int(totals[group]),
            float(totals[group] / max(totals[-1], 1)),
            int(present[group]),
            [
                {measure: values[system][group] for measure, values in zip(measures, known, strict=True)}
                for system in range(len(counts))
            ],
        )
        for group, name in enumerate(names)
    ]
    comparisons = sum(one.comparison is not None for system in known[-1] for one in system)
    shown = [row for row in rows[:-1] if row.words]
    return WordTable(groups.by, groups.unit, groups.about, measures, shown, rows[-1], comparisons)


def _accuracies(
    counts: Sequence[Sequence[WordCounts]], measure: Measure, enough: np.typing.NDArray[np.bool_]
) -> list[list[WordAccuracy]]:
    """Compute one measure for every system and group, with intervals for the groups in enough sentences."""
    observed = [np.array([_values(one, measure, None) for one in seeds]).mean(0) for seeds in counts]  # (G+1,) each
    samples = _resampled(counts, measure)
    found = []
    for system, values in enumerate(observed):
        row = []
        for group, value in enumerate(values.tolist()):
            one = WordAccuracy(None if np.isnan(value) else value)
            if enough[group] and one.value is not None:
                own = samples[system][:, :, group]  # (R, seeds)
                one = _with_interval(one, own)
                if system and not np.isnan(observed[0][group]):
                    difference = value - float(observed[0][group])
                    one = replace(one, comparison=_compare(samples[0][:, :, group], own, difference))
            row.append(one)
        found.append(row)
    return _adjusted(found)


def _values(counts: WordCounts, measure: Measure, times: DoubleArray | None) -> DoubleArray:
    """Compute a measure on all sentences (G+1,), or on resamples of them: (R, N) -> (R, G+1)."""
    parts = (counts.words, counts.matches, counts.translated)
    if times is None:
        return accuracy(measure, *(None if part is None else part.sum(0) for part in parts))
    return accuracy(measure, *(None if part is None else times @ part for part in parts))


def _resampled(counts: Sequence[Sequence[WordCounts]], measure: Measure) -> list[DoubleArray]:
    """Compute a measure on the same resamples for all systems: (R, seeds, G+1) each."""
    found: list[list[DoubleArray]] = [[] for _ in counts]
    for times in resamples(len(counts[0][0].words)):
        for system, seeds in enumerate(counts):
            found[system].append(np.stack([_values(one, measure, times) for one in seeds], axis=1))
    return [np.concatenate(parts) for parts in found]


def _with_interval(one: WordAccuracy, samples: DoubleArray) -> WordAccuracy:
    low, high = interval(resample_seeds(samples, np.random.default_rng(SEED))).tolist()
    return replace(one, low=low, high=high)


def _compare(base: DoubleArray, system: DoubleArray, observed: float) -> Comparison:
    """Compare two systems by a group: (R, n_a), (R, n_b); a resample without any word of the group does not count."""
    known = ~(np.isnan(base).any(1) | np.isnan(system).any(1))  # (R,)
    return seeded_bootstrap(base[known], system[known], observed)


def _adjusted(found: list[list[WordAccuracy]]) -> list[list[WordAccuracy]]:
    """Correct the p-values of all comparisons for their number."""
    p_values = [one.comparison.p_value for row in found for one in row if one.comparison]
    adjusted = iter(holm(p_values))
    return [[replace(one, adjusted=next(adjusted)) if one.comparison else one for one in row] for row in found]
