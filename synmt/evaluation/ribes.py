"""RIBES: a metric of word order (Isozaki et al., 2010; Hirao et al., 2014).

    RIBES = NKT · P^alpha · BP^beta · 100        alpha = 0.25, beta = 0.10

    NKT = pairs of aligned words in the reference's order / all pairs of aligned words
    P   = aligned words / words of the translation
    BP  = min(1, exp(1 - words of the reference / words of the translation))

The scores are those of the authors' script, version 1.03, times 100: words are separated by white
space, case is ignored, an empty line is one empty word, and the score of a text is the mean over
its sentences. For languages written without spaces, and for punctuation to count as words, tokenize
the text first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import combinations
from math import exp
from typing import NamedTuple

from synmt.evaluation.metrics import Lines, MeanMetric, MetricOptions

ALPHA, BETA = 0.25, 0.10
"""Exponents of the precision and of the brevity penalty, as in the script."""

_VERSION = "1.03"


def ribes(options: MetricOptions) -> MeanMetric:
    """Make RIBES, which ignores case as its authors' script does."""
    return _Ribes()


class _Ribes(MeanMetric):
    title = "RIBES"
    signature = f"nrefs:1|case:lc|tok:space|alpha:{ALPHA}|beta:{BETA}|scale:100|version:{_VERSION}"

    def score_segments(
        self, hypotheses: Lines, references: Lines, sources: Lines | None
    ) -> Sequence[float]:
        pairs = zip(hypotheses, references, strict=True)
        return [
            100 * sentence_ribes(_words(hypothesis), _words(reference))
            for hypothesis, reference in pairs
        ]


def sentence_ribes(hypothesis: Lines, reference: Lines) -> float:
    """Score the words of one sentence, from 0 to 1."""
    positions = align(hypothesis, reference)
    precision = len(positions) / len(hypothesis)
    brevity_penalty = min(1.0, exp(1 - len(reference) / len(hypothesis)))
    return _order(positions, len(reference)) * precision**ALPHA * brevity_penalty**BETA


def align(hypothesis: Lines, reference: Lines) -> list[int]:
    """Find the positions in the reference of those words of a translation that can be aligned, in
    its order.

    A word that is unique in both texts is aligned with itself. A repeated word is aligned by its
    context: by the shortest n-gram that ends or begins at the word and is unique in both texts; of
    two equally short ones, by the one that ends there. A word without such an n-gram is not
    aligned.
    """
    ending = _contexts(hypothesis, reference)
    # an n-gram that begins at a word ends at it in the reversed texts
    beginning = [*_contexts(hypothesis[::-1], reference[::-1])][::-1]
    positions = []
    for before, after in zip(ending, beginning, strict=True):
        if before and (not after or before.length <= after.length):
            positions.append(before.position)
        elif after:
            positions.append(len(reference) - 1 - after.position)
    return positions


class _Context(NamedTuple):
    """An n-gram that is unique in both texts: its number of words, and where it ends in the
    reference."""

    length: int
    position: int


def _contexts(hypothesis: Lines, reference: Lines) -> Iterator[_Context | None]:
    """Find for each word of a translation the shortest n-gram that ends at it and is unique in both
    texts.

    An n-gram that ends at the word is unique in the translation if it is longer than all that end
    elsewhere too. It is unique in the reference if it is not longer than the longest match there,
    and longer than the second longest.
    """
    own = _shared_endings(hypothesis, hypothesis)
    other = _shared_endings(hypothesis, reference)
    for index, (repeated, matches) in enumerate(zip(own, other, strict=True)):
        (longest, position), (second, _), *_ = [
            *nlargest(2, ((n, k) for k, n in matches.items())),
            (0, -1),
            (0, -1),
        ]
        elsewhere = max((n for k, n in repeated.items() if k != index), default=0)
        length = 1 + max(elsewhere, second)
        yield _Context(length, position) if length <= longest else None


def _shared_endings(one: Lines, other: Lines) -> Iterator[dict[int, int]]:
    """Count how many words up to each word of one text match those up to each place of the same
    word in another.

        shared[i][k] = shared[i-1][k-1] + 1  where one[i] = other[k]

    Only equal words are stored, so the time usually grows with the length of a sentence, not with
    its square.
    """
    places = {}
    for position, word in enumerate(other):
        places.setdefault(word, []).append(position)
    shared = {}
    for word in one:
        shared = {k: shared.get(k - 1, 0) + 1 for k in places.get(word, ())}
        yield shared


def _order(positions: list[int], reference_length: int) -> float:
    """Compute Kendall's τ from 0 to 1: the proportion of ascending pairs."""
    if len(positions) < 2:
        # one word has no order; it is right only if the reference has no second word
        return float(len(positions) == reference_length == 1)
    pairs = len(positions) * (len(positions) - 1) / 2
    return sum(first < second for first, second in combinations(positions, 2)) / pairs


def _words(line: str) -> list[str]:
    return line.lower().split() or [""]
