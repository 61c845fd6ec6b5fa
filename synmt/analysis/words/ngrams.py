"""N-grams that one system gets right and another gets wrong, as in compare-mt (Neubig et al., 2019).

    score(g) = (a + 1) / (a + b + 2)

a and b count how often n-gram g of a translation is in the reference of its sentence, at most as often as there, for
a system and for the one to compare with. With several seeds they are means over the seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from synmt.analysis.words.matching import Lines

LONGEST = 4
"""The number of words of the longest n-grams."""


@dataclass(frozen=True)
class Ngram:
    """An n-gram, and how often two systems have it right.

    score: above 0.5 if the system has it right more often than the one to compare with.
    reference: how often the references have it.
    """

    text: str
    score: float
    system: float
    baseline: float
    reference: int


@dataclass(frozen=True)
class NgramTable:
    """The n-grams that tell a system from the one to compare with: those right more often, and less often."""

    system: str
    baseline: str
    more: list[Ngram]
    less: list[Ngram]


def tell_apart(systems: Sequence[tuple[str, Sequence[Lines]]], reference: Lines, *, top: int) -> list[NgramTable]:
    """Compare each system with the first one: names, and the translations of each seed.

    top: the number of n-grams to find of each kind.
    """
    expected = count_ngrams(reference)
    (baseline, base), *others = ((name, count_right(seeds, reference)) for name, seeds in systems)
    return [NgramTable(name, baseline, *compare_ngrams(right, base, expected, top=top)) for name, right in others]


def count_ngrams(lines: Lines) -> Counter[tuple[str, ...]]:
    """Count the n-grams of a text."""
    counts: Counter[tuple[str, ...]] = Counter()
    for words in lines:
        counts.update(_ngrams(words))
    return counts


def count_right(seeds: Sequence[Lines], reference: Lines) -> dict[tuple[str, ...], float]:
    """Count how often each n-gram of a system's translations is right, on average over its seeds."""
    expected = [_ngrams(words) for words in reference]
    found: Counter[tuple[str, ...]] = Counter()
    for hypothesis in seeds:
        for words, others in zip(hypothesis, expected, strict=True):
            found.update(_ngrams(words) & others)
    return {ngram: count / len(seeds) for ngram, count in found.items()}


def compare_ngrams(
    system: dict[tuple[str, ...], float],
    baseline: dict[tuple[str, ...], float],
    reference: Counter[tuple[str, ...]],
    *,
    top: int,
) -> tuple[list[Ngram], list[Ngram]]:
    """Find the n-grams that a system gets right more often than another, and less often, at most `top` of each.

    Of equal scores, the n-gram with more occurrences comes first, then the longer one.
    """
    scored = []
    for ngram in {**system, **baseline}:
        a, b = system.get(ngram, 0.0), baseline.get(ngram, 0.0)
        if a != b:
            scored.append((Ngram(" ".join(ngram), (a + 1) / (a + b + 2), a, b, reference[ngram]), len(ngram)))

    def order(one: tuple[Ngram, int]) -> tuple[float, float, int, str]:
        ngram, length = one
        return -abs(ngram.score - 0.5), -ngram.system - ngram.baseline, -length, ngram.text

    scored.sort(key=order)
    more = [ngram for ngram, _ in scored if ngram.score > 0.5][:top]
    less = [ngram for ngram, _ in scored if ngram.score < 0.5][:top]
    return more, less


def _ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    tuples = (words[start : start + n] for n in range(1, LONGEST + 1) for start in range(len(words) - n + 1))
    return Counter(map(tuple, tuples))
