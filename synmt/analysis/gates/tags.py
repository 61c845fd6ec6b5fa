"""How often each part of speech has the highest gate norm of a sentence, relative to chance (Tran & Bisk, 2018).

    ratio = share of sentences in which a word with the tag has the highest norm / expected share

By chance every word of a sentence is equally likely to have the highest norm, so the expected share of a tag in a
sentence is its share of the words. Words with equal norms share the first place. Only words with a norm count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synmt.analysis.gates.norms import GatedSentence
from synmt.arrays import DoubleArray, IntArray
from synmt.errors import SynmtError
from synmt.evaluation.bootstrap import ratio_intervals, sum_by_sentence

MIN_WORDS = 10
"""Tags with fewer words are marked and have no interval."""

PUNCTUATION = "PUNCT"
"""Left out for the second ratio: if the full stop has the highest norm of every sentence, all other ratios are 0."""


@dataclass(frozen=True)
class TagRow:
    """One part of speech.

    words: number of words with the tag.
    share: share of all words, 0 to 1.
    norm, deviation: mean and standard deviation of the norms.
    highest: share of sentences in which a word with the tag has the highest norm, 0 to 1.
    expected: the expected share by chance.
    interval: 95 % bootstrap interval of the ratio; None for few words, or if none ever has the highest norm.
    unpunctuated: the ratio among words that are not punctuation; None for punctuation.
    """

    tag: str
    words: int
    share: float
    norm: float
    deviation: float
    highest: float
    expected: float
    interval: tuple[float, float] | None
    unpunctuated: float | None

    @property
    def ratio(self) -> float:
        """How many times as often as by chance the tag has the highest norm."""
        return self.highest / self.expected

    @property
    def few(self) -> bool:
        """Whether there are too few words for a reliable ratio."""
        return self.words < MIN_WORDS


@dataclass(frozen=True)
class GatedWords:
    """The M words with a norm: tag, norm, number of the sentence, share of its first place, and chance of that."""

    tags: npt.NDArray[np.str_]
    norms: DoubleArray
    sentences: IntArray
    highest: DoubleArray
    chance: DoubleArray


def gated_words(sentences: Iterable[GatedSentence], *, without: str = "") -> GatedWords:
    """Collect the words with a norm, except those with the tag `without`; sentences without such words are skipped."""
    # starts with empty arrays: np.concatenate needs at least one
    columns = [(np.zeros(0, str), np.zeros(0), np.zeros(0, int), np.zeros(0), np.zeros(0))]
    for one in sentences:
        tags = np.array(one.tags, dtype=str)  # (W,)
        real = ~np.isnan(one.norms) & (tags != without)  # (W,)
        norms, count = one.norms[real], int(real.sum())
        if count:
            number, chance = np.full(count, len(columns) - 1), np.full(count, 1 / count)  # (W,) both
            columns.append((tags[real], norms, number, highest_shares(norms), chance))
    return GatedWords(*map(np.concatenate, zip(*columns, strict=True)))


def highest_shares(norms: DoubleArray) -> DoubleArray:
    """Mark the word with the highest norm: (W,) -> (W,) of 0 and 1; words with equal norms share the 1."""
    first = norms == norms.max()  # (W,)
    return first / first.sum()


def tag_rows(words: GatedWords, unpunctuated: GatedWords) -> list[TagRow]:
    """List the parts of speech by ratio, with those of few words last; the second ratio is of `unpunctuated`."""
    if not len(words.tags):
        raise SynmtError(
            "there are no gates of target words: all lines are empty, or longer than the model takes",
            do="Choose another test set with `--test`",
        )
    names, tags = np.unique(words.tags, return_inverse=True)  # (G,), (M,)
    tagged = tags[:, None] == np.arange(len(names))  # (M, G)
    highest, expected = (
        sum_by_sentence(values[:, None] * tagged, words.sentences, words.sentences[-1] + 1)  # (N, G)
        for values in (words.highest, words.chance)
    )
    intervals = ratio_intervals(highest, expected)
    rows = []
    for number, name in enumerate(names.tolist()):
        norms = words.norms[tags == number]
        reliable = len(norms) >= MIN_WORDS and highest[:, number].any()
        row = TagRow(
            tag=name,
            words=len(norms),
            share=len(norms) / len(tags),
            norm=float(norms.mean()),
            deviation=float(norms.std()),
            highest=float(highest[:, number].mean()),
            expected=float(expected[:, number].mean()),
            interval=intervals[number] if reliable else None,
            unpunctuated=_ratio(unpunctuated, name),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.few, -row.ratio, row.tag))


def _ratio(words: GatedWords, tag: str) -> float | None:
    tagged = words.tags == tag  # (M,)
    return sum(words.highest[tagged].tolist()) / sum(words.chance[tagged].tolist()) if tagged.any() else None
