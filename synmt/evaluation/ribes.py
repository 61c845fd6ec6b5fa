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

from collections.abc import Sequence
from itertools import combinations
from math import exp

from synmt.arrays import Strings, Texts
from synmt.evaluation.metrics import MeanMetric, MetricOptions

ALPHA, BETA = 0.25, 0.10
"""Exponents of the precision and of the brevity penalty, as in the script."""

_VERSION = "1.03"


class Ribes(MeanMetric):
    """RIBES, which ignores case as its authors' script does."""

    title = "RIBES"
    signature = f"nrefs:1|case:lc|tok:space|alpha:{ALPHA}|beta:{BETA}|scale:100|version:{_VERSION}"

    def __init__(self, options: MetricOptions) -> None:
        """Take no options."""

    def score_segments(
        self, hypotheses: Texts, references: Texts, sources: Texts | None
    ) -> Sequence[float]:
        return [
            100 * sentence_ribes(_words(hypothesis), _words(reference))
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]


def sentence_ribes(hypothesis: Texts, reference: Texts) -> float:
    """Score the words of one sentence, from 0 to 1."""
    positions = align(hypothesis, reference)
    precision = len(positions) / len(hypothesis)
    brevity_penalty = min(1.0, exp(1 - len(reference) / len(hypothesis)))
    return _order(positions, len(reference)) * precision**ALPHA * brevity_penalty**BETA


def align(hypothesis: Texts, reference: Texts) -> list[int]:
    """Find the positions in the reference of those words of a translation that can be aligned, in
    its order.

    A word that is unique in both texts is aligned with itself. A repeated word is aligned by its
    context: by the shortest n-gram that ends or begins at the word and is unique in both texts; of
    two equally short ones, by the one that ends there. A word without such an n-gram is not
    aligned.
    """
    positions = dict[int, int]()
    remaining, length = list(range(len(hypothesis))), 0
    while remaining:
        length += 1
        of_hypothesis, of_reference = _ngrams(hypothesis, length), _ngrams(reference, length)
        matching = []
        for index in remaining:
            # an n-gram beyond an end of the sentence is shorter, and not found
            before = tuple(hypothesis[max(0, index + 1 - length) : index + 1])
            after = tuple(hypothesis[index : index + length])
            for ngram, offset in ((after, 0), (before, length - 1)):
                if len(of_hypothesis.get(ngram, ())) == len(of_reference.get(ngram, ())) == 1:
                    positions[index] = of_reference[ngram][0] + offset
            if index not in positions and (before in of_reference or after in of_reference):
                matching.append(index)
        remaining = matching
    return [positions[index] for index in sorted(positions)]


def _ngrams(words: Texts, length: int) -> dict[Strings, list[int]]:
    """List the places where each n-gram of a text begins."""
    places = {}
    for start in range(len(words) - length + 1):
        places.setdefault(tuple(words[start : start + length]), []).append(start)
    return places


def _order(positions: list[int], reference_length: int) -> float:
    """Compute Kendall's τ from 0 to 1: the proportion of ascending pairs."""
    if len(positions) < 2:
        # one word has no order; it is right only if the reference has no second word
        return float(len(positions) == reference_length == 1)
    pairs = len(positions) * (len(positions) - 1) / 2
    return sum(first < second for first, second in combinations(positions, 2)) / pairs


def _words(line: str) -> list[str]:
    return line.lower().split() or [""]
