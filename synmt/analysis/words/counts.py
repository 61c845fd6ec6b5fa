"""Counts of words by sentence and group, and the accuracy of a group.

    precision = matches / words of the translation        recall = matches / words of the reference
    F1 = 2 · precision · recall / (precision + recall) = 2 · matches / (words of the translation + of the reference)

A word that matches belongs to the group of its word in the reference; any other word of a translation to its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from synmt.analysis.words.matching import TokenizedText
from synmt.arrays import BoolArray, DoubleArray, IntArray, Side

Measure = Literal["precision", "recall", "F1"]
MEASURES: tuple[Measure, ...] = ("precision", "recall", "F1")


@dataclass(frozen=True, eq=False)
class WordGroups:
    """Groups of words, G of them; the group of a word is its number, or -1 if it is in none.

    by: what the groups are made from, such as `frequency`.
    unit: unit of the values in the names, which are then in order; empty for names such as those of relations.
    names: names of the groups, in display order.
    words: (M,) groups of the words that can be found: of the reference, or of the source.
    translated: for each system and seed, (M',) groups of the words of the translation; empty if they are not known.
    about: explanation of the groups for the legend.
    side: whose words.
    """

    by: str
    unit: str
    names: list[str]
    words: IntArray
    translated: list[list[IntArray]] = field(default_factory=list)
    about: str = ""
    side: Side = "target"


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts for each sentence and group of one translation, (N, G+1) each; the last column is all words.

    words: that can be found, in the reference or in the source.
    matches: those of them that were.
    translated: words of the translation; None where only recall is known, as for source words.
    """

    words: DoubleArray
    matches: DoubleArray
    translated: DoubleArray | None = None

    def total(self, times: DoubleArray) -> WordCounts:
        """Sum the counts over the sentences, each of them a number of times: (R, N) -> (R, G+1) each."""
        translated = None if self.translated is None else times @ self.translated
        return WordCounts(times @ self.words, times @ self.matches, translated)


def count_target(
    groups: tuple[IntArray, IntArray], matches: IntArray, texts: tuple[TokenizedText, TokenizedText], names: int
) -> WordCounts:
    """Count the words of a translation by group.

    groups: of the words of the reference (M,) and of the translation (M',).
    matches: (M',) the word of the reference that each word of the translation matches, -1 for none.
    texts: the reference and the translation.
    names: number of groups.
    """
    (of_reference, own), (reference, hypothesis) = groups, texts
    matched = matches >= 0  # (M',)
    of_hypothesis = np.where(matched, of_reference[matches], own) if len(of_reference) else own  # (M',)
    return WordCounts(
        count_groups(of_reference, reference, names),
        count_groups(of_hypothesis, hypothesis, names, only=matched),
        count_groups(of_hypothesis, hypothesis, names),
    )


def count_source(
    groups: IntArray, source: TokenizedText, aligned: BoolArray, right: BoolArray, names: int
) -> WordCounts:
    """Count source words whose translations are found, by group; words without an alignment do not count.

    groups, aligned, right: (M,) of the source words (see `right_sources`).
    """
    return WordCounts(
        count_groups(groups, source, names, only=aligned), count_groups(groups, source, names, only=right)
    )


def count_groups(groups: IntArray, text: TokenizedText, names: int, *, only: BoolArray | None = None) -> DoubleArray:
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


def accuracy(measure: Measure, counts: WordCounts) -> DoubleArray:
    """Compute a measure in percent from counts of any shape; NaN where it would divide by zero."""
    above, below = counts.matches, counts.words
    if measure != "recall":
        assert counts.translated is not None
        above, below = (above, counts.translated) if measure == "precision" else (2 * above, below + counts.translated)
    return np.divide(100 * above, below, out=np.full_like(below, np.nan), where=below > 0)


def measures_of(counts: Sequence[Sequence[WordCounts]]) -> tuple[Measure, ...]:
    """List what can be computed from counts: recall only without counts of translated words."""
    return MEASURES if counts[0][0].translated is not None else ("recall",)
