"""Sentence-level comparison of two systems: the sentences in which B gains most over A, and loses
most.

    gain[n] = score of B in sentence n - score of A in sentence n
    the opposite for an error rate

Sentences are ranked by the metric itself, except that chrF replaces BLEU: most sentences have no
4-gram in common with their reference, so BLEU is uninformative for single sentences.

The words in which translations of a sentence differ, and which of them are in the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from string import ascii_uppercase
from typing import Literal

import numpy as np
import regex

from synmt.arrays import DoubleArray, IntArray, Strings, Texts, int_pairs
from synmt.evaluation.metrics import Metric, MetricOptions, Score, make_metric
from synmt.evaluation.outputs import Outputs
from synmt.evaluation.significance import Comparison, compare_on_resamples, holm


@dataclass(frozen=True)
class ComparedSentence:
    """One sentence with the translations of all systems.

    line: number of the line, from 1.
    source: empty if there is no source.
    translations, scores: of each system; scores are sentence-level.
    gain: by how much the other systems are better than the first, on average.
    """

    line: int
    source: str
    reference: str
    translations: Strings
    scores: tuple[float, ...]
    gain: float


@dataclass(frozen=True, eq=False)
class ComparedSystem:
    """One of the systems.

    score: of the whole test set.
    sentences: (N,) sentence-level scores.
    difference: of the score from that of the first system, which has none.
    holm_p: its p-value, corrected for the number of systems.
    gains: (N,) by how much each sentence is better than that of the first system.
    """

    name: str
    score: float
    sentences: DoubleArray
    difference: Comparison | None
    holm_p: float | None
    gains: DoubleArray


@dataclass(frozen=True)
class ComparedSystems:
    """Systems on one test set.

    test: name of the test set; empty for files.
    ranking: the metric for single sentences.
    sentences: those with the largest gains of the systems after the first, then those with the
        largest losses.
    """

    systems: list[ComparedSystem]
    test: str
    metric: Metric
    ranking: Metric
    sentences: list[ComparedSentence]

    @property
    def letters(self) -> list[str]:
        """The letters that name the systems."""
        return list(ascii_uppercase[: len(self.systems)])


MARKED = "words of A that no other translation has, words of the others that A does not have"
"""Which words of the translations are marked."""


def ranking_metric(name: str, options: MetricOptions) -> Metric:
    """Make the metric for single sentences from the name of the metric for the test set."""
    return make_metric("chrf" if name.strip().lower().startswith("bleu") else name, options)


def rank_differences(
    outputs: Sequence[Outputs],
    scores: Sequence[Score],
    ranks: Sequence[Score],
    *,
    top: int,
    line: int | None = None,
) -> ComparedSystems:
    """Find the sentences that systems translate most differently from the first one.

    scores, ranks: of each system by the metric for the test set, and by the metric for single
    sentences.
    top: number of sentences, half of them gains; if there are fewer gains, there are more losses,
        and vice versa.
    line: the only sentence, counted from 1, instead.
    """
    first, ranking = outputs[0], ranks[0].metric
    points = np.array([ranking.segment_scores(score.statistics) for score in ranks])  # (M, N)
    gains = (points - points[0]) * (1 if ranking.higher_is_better else -1)  # (M, N)
    mean_gains = gains[1:].mean(0)  # (N,)
    differences = compare_on_resamples(
        [[score.statistics] for score in scores], scores[0].metric.aggregate
    )
    names, values = [output.system for output in outputs], [score.value for score in scores]
    against = [None, *differences], [None, *holm([other.p_value for other in differences])]
    systems = list(map(ComparedSystem, names, values, points, *against, gains))
    sentences = [
        ComparedSentence(
            line=index + 1,
            source=first.source[index] if first.source else "",
            reference=first.reference[index],
            translations=tuple(output.hypothesis[index] for output in outputs),
            scores=tuple(points[:, index].tolist()),
            gain=float(mean_gains[index]),
        )
        for index in ([line - 1] if line else largest_gains_and_losses(mean_gains, top))
    ]
    return ComparedSystems(systems, first.test, scores[0].metric, ranking, sentences)


def largest_gains_and_losses(gains: DoubleArray, top: int) -> list[int]:
    """Choose the sentences with the largest gains, then those with the largest losses (N,); ties in
    order of lines."""
    better, worse = (
        np.argsort(-signed, kind="stable")[: int((signed > 0).sum())].tolist()
        for signed in (gains, -gains)
    )
    gaining = better[: max(top - top // 2, top - len(worse))]
    return gaining + worse[: top - len(gaining)]


WordKind = Literal["same", "right", "other"]
"""A word is the same in both translations, or it differs and is in the reference (`right`) or not
(`other`).

Each word of the reference makes at most one word `right`, so repeated words are `other`.
"""

_ALONE = r"\p{P}\p{S}\p{Han}\p{Hiragana}\p{Katakana}ー"
_WORD = regex.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
"""Punctuation, symbols, and Chinese and Japanese characters are words of one character."""


def word_spans(line: str) -> IntArray:
    """Split a line at spaces, punctuation, and Chinese and Japanese characters: character spans (W,
    2)."""
    return int_pairs([word.span() for word in _WORD.finditer(line)])


def classify_words(line: str, other: str, reference: str) -> list[WordKind]:
    """Classify the W words of a translation, `line`, by another translation and the reference."""
    words, left = _WORD.findall(line), Counter(_WORD.findall(reference))
    kinds = list[WordKind]()
    for word in words:
        kinds.append("right" if left[word] > 0 else "other")
        left[word] -= 1
    matcher = SequenceMatcher(None, words, _WORD.findall(other), autojunk=False)
    for start, _, length in matcher.get_matching_blocks():
        for place in range(start, start + length):
            kinds[place] = "same"
    return kinds


def classify_all(lines: Texts, reference: str) -> list[list[WordKind]]:
    """Classify the words of several translations: those of the first by all others, and those of
    the others by it.

    A word of the first translation is the same if any other has it.
    """
    first, *others = lines
    of_first = [classify_words(first, line, reference) for line in others]
    merged: list[WordKind] = [
        "same" if "same" in kinds else kinds[0] for kinds in zip(*of_first, strict=True)
    ]
    return [merged, *(classify_words(line, first, reference) for line in others)]


def stretches(line: str, kinds: Texts) -> Iterator[tuple[str, str]]:
    """Split a line into neighbouring words of one kind, with the spaces between them, given the
    kind of each word.

    Spaces between words of different kinds are `same`.
    """
    spans, end = word_spans(line).tolist(), 0
    for kind, words in groupby(zip(kinds, spans, strict=True), key=lambda word: word[0]):
        places = [span for _, span in words]
        yield line[end : places[0][0]], "same"
        end = places[-1][1]
        yield line[places[0][0] : end], kind
    yield line[end:], "same"


def bracketed(line: str, kinds: Sequence[WordKind]) -> str:
    """Put brackets around the words that differ."""
    differs = ["same" if kind == "same" else "other" for kind in kinds]
    return "".join(
        text if kind == "same" else f"[{text}]" for text, kind in stretches(line, differs)
    )
