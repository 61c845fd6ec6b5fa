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

import numpy as np

from synmt.analysis.groups.grouping import Groups
from synmt.analysis.groups.results import FEW_SENTENCES, GroupResults, Result, results_table
from synmt.analysis.words.texts import TokenizedText, TranslatedText, WordTexts, found_words
from synmt.arrays import BoolArray, DoubleArray, IntArray, Side, Texts
from synmt.evaluation.bootstrap import SAMPLES, SEED, interval, resamples
from synmt.evaluation.significance import Comparison, resample_seeds, seeded_bootstrap
from synmt.reporting.values import Column, Interval, Table, count_column, share_column

_SAMPLES_EACH = 100
"""Resamples for each comparison: the smallest p-value is then 0.01 after Holm's correction."""

MEASURES = (
    Column("F1", digits=1, about="harmonic mean of precision and recall"),
    Column("precision", digits=1, about="share of the translated words that the reference has"),
    Column("recall", digits=1, about="share of the reference's words that the translation has"),
)
SOURCE_RECALL = Column(
    "recall",
    digits=1,
    about="share of the aligned source words whose words of the reference are all translated",
)


@dataclass(frozen=True, eq=False)
class WordGroups(Groups):
    """Groups of words; the group of a word is its number, or -1 if it is in none.

    words: (M,) groups of the words that can be found: of the reference, or of the source.
    translated: (M',) groups of the words of each translation; empty if they are not known.
    about: explanation of the groups for the legend.
    side: whose words.
    """

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
        return 100 * above / np.where(below > 0, below, np.nan)


Counts = Mapping[str, Sequence[WordCounts]]
"""The counts of each system and seed; the first system is the baseline of the others."""


def count_words(
    texts: WordTexts, groups: WordGroups, pairs: IntArray
) -> dict[str, list[WordCounts]]:
    """Count words by group, for each system and seed.

    A source word is right if all words that it is aligned with are found; words without an
    alignment do not count.

    pairs: (A, 2) aligned words of source and references, for groups of source words.
    """
    groups_of_words = groups.translated or [None] * len(texts.translations)
    places = zip(texts.translations, groups_of_words, strict=True)
    return texts.by_system(
        _count(texts, groups, pairs, translation, numbers) for translation, numbers in places
    )


def _count(
    texts: WordTexts,
    groups: WordGroups,
    pairs: IntArray,
    translation: TranslatedText,
    translated: IntArray | None,
) -> WordCounts:
    """Count the words of one translation; without the groups of its words, (M',), only the words
    found."""
    text, names = texts.text(groups.side), len(groups.names)
    is_right = found_words(translation.matches, len(texts.reference))  # (M,)
    counted = np.ones(len(text), dtype=bool)  # (M,)
    if groups.side == "source":
        counted = found_words(pairs[:, 0], len(text))
        is_right = counted & ~found_words(pairs[~is_right[pairs[:, 1]], 0], len(text))
    words = count_groups(groups.words, text, names, counted)
    matches = count_groups(groups.words, text, names, is_right)
    if translated is None:
        return WordCounts(words, matches)
    if len(text):
        translated = np.where(
            translation.matches >= 0, groups.words[translation.matches], translated
        )  # (M',)
    all_words = np.ones(len(translation.words), dtype=bool)
    return WordCounts(words, matches, count_groups(translated, translation.words, names, all_words))


def count_groups(
    groups: IntArray, text: TokenizedText, names: int, chosen: BoolArray
) -> DoubleArray:
    """Count the chosen words of each sentence and group, and of each sentence: (M,) -> (N, G+1)."""
    sentence, counts = text.sentence[chosen], np.zeros((len(text.lines), names + 1))
    # -1 is the last column, which is overwritten below
    np.add.at(counts, (sentence, groups[chosen]), 1.0)
    counts[:, -1] = np.bincount(sentence, minlength=len(text.lines))
    return counts


def tabulate_words(groups: WordGroups, counts: Counts, *, notes: Texts = ()) -> list[Table]:
    """Make a table for each measure, F1 first; groups without an order, such as relations, are
    sorted by their number of words."""
    [first, *_], *_ = counts.values()
    measures = MEASURES if first.translated is not None else MEASURES[-1:]
    names = [*groups.names, "all"]
    totals = first.words.sum(0)  # (G+1,)
    chosen = [group for group, words in enumerate(totals[:-1].tolist()) if words]
    if not groups.unit:
        chosen.sort(key=lambda group: (-totals[group], names[group]))
    tables = []
    for measure in measures:
        results, samples = _results(counts, measure.title)
        rows = [
            GroupResults(
                names[group],
                [int(totals[group]), totals[group] / max(totals[-1], 1)],
                [of_system[group] for of_system in results],
            )
            for group in (*chosen, len(names) - 1)
        ]
        if groups.side == "source":
            measure = SOURCE_RECALL
        tables.append(
            results_table(
                groups,
                [count_column("words"), share_column("share", name="share")],
                measure,
                list(counts),
                rows,
                samples=samples,
                notes=notes,
            )
        )
    return tables


def _results(counts: Counts, measure: str) -> tuple[list[list[Result]], int]:
    """Compute one measure for every system and group, with intervals for the groups in enough
    sentences; returns the number of resamples, too."""
    enough = [_in_enough_sentences(seeds, measure) for seeds in counts.values()]
    tested = sum(int((enough[0] & of_system).sum()) for of_system in enough[1:])
    samples = max(SAMPLES, _SAMPLES_EACH * tested)
    resampled = _resampled(counts, measure, samples)
    once = np.ones((1, len(next(iter(counts.values()))[0].words)))  # (1, N)
    by_system = list[list[Result]]()
    for system, seeds in enumerate(counts.values()):
        values = np.concatenate([seed.accuracy(measure, once) for seed in seeds])  # (S, G+1)
        results = list[Result]()
        for group, of_seeds in enumerate(values.T):
            result, drawn = Result(of_seeds.tolist()), resampled[system][:, :, group]  # (R, S)
            if enough[system][group]:
                means = resample_seeds(drawn, np.random.default_rng(SEED))  # (R,)
                result = replace(result, interval=Interval(*interval(means).tolist()))
                if system and enough[0][group]:
                    base = by_system[0][group].value
                    comparison = _compare(resampled[0][:, :, group], drawn, result.value - base)
                    result = replace(result, comparison=comparison)
            results.append(result)
        by_system.append(results)
    return by_system, samples


def _in_enough_sentences(seeds: Sequence[WordCounts], measure: str) -> BoolArray:
    """Find the groups with enough sentences for an interval, with words that a measure divides by:
    (G+1,)."""
    below = [seeds[0].words]
    if measure == "precision":
        below += [seed.translated for seed in seeds if seed.translated is not None]
    return np.min([(counts > 0).sum(0) for counts in below], axis=0) >= FEW_SENTENCES


def _resampled(counts: Counts, measure: str, samples: int) -> list[DoubleArray]:
    """Compute a measure on the same resamples for all systems: (R, seeds, G+1) each."""
    [first, *_], *_ = counts.values()
    parts = (
        [
            np.stack([seed.accuracy(measure, times) for seed in seeds], axis=1)
            for seeds in counts.values()
        ]
        for times in resamples(len(first.words), samples=samples)
    )
    return list(map(np.concatenate, zip(*parts, strict=True)))


def _compare(base: DoubleArray, system: DoubleArray, observed: float) -> Comparison:
    """Compare two systems by a group: (R, n_a), (R, n_b); a resample without any word of the group
    does not count."""
    known = ~(np.isnan(base).any(1) | np.isnan(system).any(1))  # (R,)
    return seeded_bootstrap(base[known], system[known], observed)
