"""Precision, recall and F1 of groups of words, for any number of systems, with intervals and
differences.

    precision = matches / words of the translation        recall = matches / words of the reference
    F1 = 2 · precision · recall / (precision + recall) = 2 · matches / (words of the translation +
        of the reference)

A word that matches belongs to the group of its word in the reference; any other word of a
translation to its own. Intervals come from resamples of the sentences, the same ones for all
systems. The value of a system with several seeds is the mean over them, and its resamples have
resampled seeds too (see synmt.evaluation.significance).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from synmt.analysis.groups.results import FEW_SENTENCES, GroupResult, GroupRow, ResultTable, correct
from synmt.analysis.words.texts import TokenizedText, TranslatedText, WordTexts, found_words
from synmt.arrays import BoolArray, DoubleArray, IntArray, Side
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval, resamples
from synmt.evaluation.significance import Comparison, resample_seeds, seeded_bootstrap
from synmt.reporting.values import Column, count_column, share_column

_SAMPLES_EACH = 100
"""Resamples for each comparison: the smallest p-value is then 0.01 after Holm's correction."""

RECALL = Column(
    title="recall", digits=1, about="share of the reference's words that the translation has"
)
MEASURES = (
    Column(
        title="precision", digits=1, about="share of the translated words that the reference has"
    ),
    RECALL,
    Column(title="F1", digits=1, about="harmonic mean of precision and recall", name="f1"),
)
SOURCE_RECALL = Column(
    title="recall",
    digits=1,
    about="share of the source words whose aligned words of the reference are all in the "
    "translation; "
    "words without an alignment do not count",
)


@dataclass(frozen=True, eq=False)
class WordGroups:
    """Groups of words, G of them; the group of a word is its number, or -1 if it is in none.

    by: what the groups are made from, such as `frequency`.
    unit: unit of the values in the names, which are then in order; empty for names such as those of
        relations.
    names: names of the groups, in display order.
    words: (M,) groups of the words that can be found: of the reference, or of the source.
    translated: (M',) groups of the words of each translation; empty if they are not known.
    about: explanation of the groups for the legend.
    side: whose words.
    """

    by: str
    unit: str
    names: list[str]
    words: IntArray
    translated: Sequence[IntArray]
    about: str = ""
    side: Side = "target"


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts for each sentence and group of one translation, (N, G+1) each; the last column is all
    words.

    words: that can be found, in the reference or in the source.
    matches: those of them that were.
    translated: words of the translation; None where only recall is known, as for source words.
    """

    words: DoubleArray
    matches: DoubleArray
    translated: DoubleArray | None = None

    def accuracy(self, measure: str, times: DoubleArray) -> DoubleArray:
        """Compute a measure in percent with each sentence a number of times; NaN without words: (R,
        N) -> (R, G+1)."""
        above, below = times @ self.matches, times @ self.words
        if measure != "recall":
            assert self.translated is not None
            translated = times @ self.translated
            above, below = (
                (above, translated) if measure == "precision" else (2 * above, below + translated)
            )
        return np.divide(100 * above, below, out=np.full_like(below, np.nan), where=below > 0)


Counts = Mapping[str, Sequence[WordCounts]]
"""The counts of each system and seed; the first system is the baseline of the others."""


def count_words(
    texts: WordTexts, groups: WordGroups, pairs: IntArray
) -> dict[str, list[WordCounts]]:
    """Count words by group, for each system and seed.

    pairs: (A, 2) aligned words of source and references, for groups of source words.
    """
    if groups.side == "source":
        return texts.by_system(
            count_source(groups, texts, one, pairs) for one in texts.translations
        )
    pairs_of = zip(texts.translations, groups.translated or repeat(None), strict=False)
    return texts.by_system(count_target(groups, texts.reference, one, own) for one, own in pairs_of)


def count_target(
    groups: WordGroups, reference: TokenizedText, one: TranslatedText, translated: IntArray | None
) -> WordCounts:
    """Count target words by group; without groups of translated words, (M',), only the words
    found."""
    found, names = found_words(one.matches, len(reference)), len(groups.names)
    words = count_groups(groups.words, reference, names)
    matches = count_groups(groups.words, reference, names, only=found)
    if translated is None:
        return WordCounts(words, matches)
    if len(reference):
        translated = np.where(one.matches >= 0, groups.words[one.matches], translated)  # (M',)
    return WordCounts(words, matches, count_groups(translated, one.words, names))


def count_source(
    groups: WordGroups, texts: WordTexts, one: TranslatedText, pairs: IntArray
) -> WordCounts:
    """Count source words, and those that have all their words of the reference in a translation, by
    group.

    Words without an alignment do not count.
    """
    source, names = texts.source, len(groups.names)
    found = found_words(one.matches, len(texts.reference))
    aligned, missed = np.zeros((2, len(source)), dtype=np.bool_)
    aligned[pairs[:, 0]] = True
    missed[pairs[~found[pairs[:, 1]], 0]] = True
    words = count_groups(groups.words, source, names, only=aligned)
    return WordCounts(words, count_groups(groups.words, source, names, only=aligned & ~missed))


def count_groups(
    groups: IntArray, text: TokenizedText, names: int, *, only: BoolArray | None = None
) -> DoubleArray:
    """Count the words of each sentence and group, and of each sentence: (M,) -> (N, G+1).

    only: (M,) which words count; None for all.
    """
    chosen = np.ones(len(text), dtype=np.bool_) if only is None else only  # (M,)
    sentence, shape = text.sentence[chosen], (len(text.lines), names + 1)
    counts = np.zeros(shape)
    # -1 is the last column, which is overwritten below
    np.add.at(counts, (sentence, groups[chosen]), 1.0)
    counts[:, -1] = np.bincount(sentence, minlength=shape[0])
    return counts


def tabulate_words(groups: WordGroups, counts: Counts, *, notes: Sequence[str] = ()) -> ResultTable:
    """Compute a table from counts; groups without an order, such as relations, are sorted by their
    number of words."""
    [first, *_], *_ = counts.values()
    measures = [SOURCE_RECALL if groups.side == "source" else RECALL]
    if first.translated is not None:
        measures = MEASURES
    totals, present = first.words.sum(0), (first.words > 0).sum(0)  # (G+1,) both
    known = {measure.key: _results(counts, measure.key) for measure in measures}
    rows = []
    for group, name in enumerate([*groups.names, "all"]):
        words, sentences = int(totals[group]), int(present[group])
        shares = sentences / len(first.words), words / max(float(totals[-1]), 1)
        results = {
            system: {key: found[system][group] for key, found in known.items()} for system in counts
        }
        rows.append(GroupRow(name, sentences, shares[0], words, shares[1], results))
    for key in known:
        rows = correct(rows, key)
    *rows, total = rows
    rows = [row for row in rows if row.text]
    if not groups.unit:
        rows.sort(key=lambda row: (-row.text, row.group))
    sizes = count_column("words", name="text"), share_column("share", name="text_share")
    table = ResultTable(
        groups.by, groups.unit, measures, sizes, rows, total, SAMPLES, groups.about, notes
    )
    return replace(table, samples=_samples(table.comparisons(table.key)))


def _samples(comparisons: int) -> int:
    return max(SAMPLES, _SAMPLES_EACH * comparisons)


def _results(counts: Counts, measure: str) -> dict[str, list[GroupResult]]:
    """Compute one measure for every system and group, with intervals for the groups in enough
    sentences."""
    enough = {name: _in_enough_sentences(seeds, measure) for name, seeds in counts.items()}
    base, *others = counts
    tested = sum(int((enough[base] & enough[one]).sum()) for one in others)
    drawn = _resampled(counts, measure, _samples(tested))
    found = dict[str, list[GroupResult]]()
    for name, seeds in counts.items():
        once = np.ones((1, len(seeds[0].words)))  # (1, N)
        values = np.concatenate([one.accuracy(measure, once) for one in seeds])  # (S, G+1)
        found[name] = []
        for group, own in enumerate(values.T):
            mean, *known = (
                None if np.isnan(value) else value for value in (float(own.mean()), *own.tolist())
            )
            result, comparison = GroupResult(mean, known), None
            samples = drawn[name][:, :, group]  # (R, S)
            if enough[name][group]:
                means = resample_seeds(samples, np.random.default_rng(SEED))  # (R,)
                low, high = interval(means).tolist()
                result = replace(result, low=low, high=high)
            if name != base:
                first = found[base][group]
                if enough[name][group] and enough[base][group] and mean is not None:
                    difference = mean - (first.value or 0)
                    comparison = _compare(drawn[base][:, :, group], samples, difference)
                result = result.above(first, comparison)
            found[name].append(result)
    return found


def _in_enough_sentences(seeds: Sequence[WordCounts], measure: str) -> BoolArray:
    """Find the groups with enough sentences for an interval, with words that a measure divides by:
    (G+1,)."""
    below = [seeds[0].words]
    if measure == "precision":
        below += [one.translated for one in seeds if one.translated is not None]
    return np.min([(one > 0).sum(0) for one in below], axis=0) >= FEW_SENTENCES


def _resampled(counts: Counts, measure: str, samples: int) -> dict[str, DoubleArray]:
    """Compute a measure on the same resamples for all systems: (R, seeds, G+1) each."""
    [first, *_], *_ = counts.values()
    found: dict[str, list[DoubleArray]] = {name: [] for name in counts}
    for times in resamples(len(first.words), samples=samples):
        for name, seeds in counts.items():
            found[name].append(np.stack([one.accuracy(measure, times) for one in seeds], axis=1))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _compare(base: DoubleArray, system: DoubleArray, observed: float) -> Comparison:
    """Compare two systems by a group: (R, n_a), (R, n_b); a resample without any word of the group
    does not count."""
    known = ~(np.isnan(base).any(1) | np.isnan(system).any(1))  # (R,)
    return seeded_bootstrap(base[known], system[known], observed)
