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
from synmt.arrays import BoolArray, DoubleArray, Side
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval, resamples
from synmt.evaluation.seeds import resample_seeds, seeded_bootstrap
from synmt.evaluation.significance import Comparison, holm


@dataclass(frozen=True)
class WordAccuracy:
    """The accuracy of one system on one group, by one measure, in percent.

    value: mean over the seeds; None if nothing can be divided by.
    seeds: the value of each seed.
    low, high: the 95 % interval; None for a group in few sentences.
    comparison: difference from the baseline in points; None for the baseline, and for a group in few sentences.
    holm_p: p-value of the comparison after Holm's correction over all comparisons of the table by this measure.
    """

    value: float | None
    seeds: tuple[float | None, ...] = ()
    low: float | None = None
    high: float | None = None
    comparison: Comparison | None = None
    holm_p: float | None = None


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
    comparisons: how many comparisons Holm's correction covers, by measure.
    remarks: on the alignments and trees that the groups were made with.
    """

    by: str
    unit: str
    about: str
    side: Side
    measures: tuple[Measure, ...]
    rows: list[WordRow]
    total: WordRow
    comparisons: dict[Measure, int]
    remarks: tuple[str, ...] = ()

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the table as plain values, with the systems by their names."""
        return {
            "by": self.by,
            "unit": self.unit,
            "about": self.about,
            "comparisons": {measure.lower(): count for measure, count in self.comparisons.items()},
            "rows": [row.to_json(names) for row in self.rows],
            "all": self.total.to_json(names),
        }

    @property
    def shown(self) -> Measure:
        """The measure to show where there is room for one."""
        return self.measures[-1]


def tabulate_words(groups: WordGroups, counts: Sequence[Sequence[WordCounts]]) -> WordTable:
    """Compute a table from the counts of each system and seed; the first system is the baseline of the others.

    Groups without an order, such as relations, are sorted by their number of words.
    """
    known: dict[Measure, list[list[WordAccuracy]]] = {
        measure: _accuracies(counts, measure) for measure in measures_of(counts)
    }
    words = counts[0][0].words  # (N, G+1)
    totals, present = words.sum(0), (words > 0).sum(0)  # (G+1,) both

    def row(group: int, name: str) -> WordRow:
        systems: list[dict[Measure, WordAccuracy]] = [
            {measure: values[system][group] for measure, values in known.items()} for system in range(len(counts))
        ]
        share = float(totals[group] / max(totals[-1], 1))
        return WordRow(name, int(totals[group]), share, int(present[group]), systems)

    rows = [row(group, name) for group, name in enumerate([*groups.names, "all"])]
    found = [one for one in rows[:-1] if one.words]
    if not groups.unit:
        found.sort(key=lambda one: (-one.words, one.group))
    comparisons: dict[Measure, int] = {
        measure: sum(one.comparison is not None for system in values for one in system)
        for measure, values in known.items()
    }
    return WordTable(groups.by, groups.unit, groups.about, groups.side, tuple(known), found, rows[-1], comparisons)


def resamples_for(comparisons: int) -> int:
    """Choose how many resamples are drawn, so that the smallest p-value is 0.01 after Holm's correction."""
    return max(SAMPLES, 100 * comparisons)


def _accuracies(counts: Sequence[Sequence[WordCounts]], measure: Measure) -> list[list[WordAccuracy]]:
    """Compute one measure for every system and group, with intervals for the groups in enough sentences."""
    once = np.ones((1, len(counts[0][0].words)))  # (1, N)
    by_seed = [np.array([accuracy(measure, one.total(once))[0] for one in seeds]) for seeds in counts]  # (S, G+1) each
    enough = [_in_enough_sentences(seeds, measure) for seeds in counts]  # (G+1,) each
    comparisons = sum(int((enough[0] & one).sum()) for one in enough[1:])
    samples = _resampled(counts, measure, resamples_for(comparisons))

    def describe(system: int, group: int) -> WordAccuracy:
        values = by_seed[system][:, group]  # (S,)
        mean, *seeds = (None if np.isnan(value) else value for value in (float(values.mean()), *values.tolist()))
        if not enough[system][group]:
            return WordAccuracy(mean, tuple(seeds))
        own, compared = samples[system][:, :, group], None  # (R, S)
        if system and enough[0][group]:
            difference = float(values.mean() - by_seed[0][:, group].mean())
            compared = _compare(samples[0][:, :, group], own, difference)
        low, high = interval(resample_seeds(own, np.random.default_rng(SEED))).tolist()
        return WordAccuracy(mean, tuple(seeds), low, high, compared)

    groups = range(by_seed[0].shape[1])
    return _adjusted([[describe(system, group) for group in groups] for system in range(len(counts))])


def _in_enough_sentences(seeds: Sequence[WordCounts], measure: Measure) -> BoolArray:
    """Tell which groups have enough sentences for an interval, with words that a measure divides by: (G+1,)."""
    below = [seeds[0].words]
    if measure == "precision":
        below += [one.translated for one in seeds if one.translated is not None]
    return np.min([(one > 0).sum(0) for one in below], axis=0) >= FEW_SENTENCES


def _resampled(counts: Sequence[Sequence[WordCounts]], measure: Measure, samples: int) -> list[DoubleArray]:
    """Compute a measure on the same resamples for all systems: (R, seeds, G+1) each."""
    found: list[list[DoubleArray]] = [[] for _ in counts]
    for times in resamples(len(counts[0][0].words), samples=samples):
        for system, seeds in enumerate(counts):
            found[system].append(np.stack([accuracy(measure, one.total(times)) for one in seeds], axis=1))
    return [np.concatenate(parts) for parts in found]


def _compare(base: DoubleArray, system: DoubleArray, observed: float) -> Comparison:
    """Compare two systems by a group: (R, n_a), (R, n_b); a resample without any word of the group does not count."""
    known = ~(np.isnan(base).any(1) | np.isnan(system).any(1))  # (R,)
    return seeded_bootstrap(base[known], system[known], observed)


def _adjusted(found: list[list[WordAccuracy]]) -> list[list[WordAccuracy]]:
    """Correct the p-values of all comparisons for their number."""
    p_values = [one.comparison.p_value for row in found for one in row if one.comparison]
    adjusted = iter(holm(p_values))
    return [[replace(one, holm_p=next(adjusted)) if one.comparison else one for one in row] for row in found]
