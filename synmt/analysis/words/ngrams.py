"""N-grams that one system gets right and another gets wrong, as in compare-mt (Neubig et al.,
2019).

    score(g) = (a + 1) / (a + b + 2)

a and b count how often n-gram g of a translation is in the reference of its sentence, at most as
often as there, for a system and for the one to compare with. With several seeds they are means over
the seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from synmt.analysis.words.texts import Lines
from synmt.arrays import Strings, Texts
from synmt.reporting.values import Column, Table, count_column, text_column

LONGEST = 4
"""The number of words of the longest n-grams."""

_LEGEND = (
    f"n-grams of 1 to {LONGEST} words. Numbers: how often those of the translations are in the "
    "reference of their sentence (mean over seeds), and how often the references have them. Score: "
    "(a + 1) / (a + b + 2) of the system's number a and the other's b, as in compare-mt."
)


class Ngram(NamedTuple):
    """An n-gram, and how often two systems have it right.

    score: above 0.5 if the system has it right more often than the one to compare with.
    reference: how often the references have it.
    """

    text: str
    score: float
    system: float
    baseline: float
    reference: int

    def rank(self) -> tuple[float, float, int, str]:
        """Order n-grams: of equal scores, the one with more occurrences comes first, then the
        longer one."""
        return (
            -abs(self.score - 0.5),
            -self.system - self.baseline,
            -len(self.text.split(" ")),
            self.text,
        )


def ngram_tables(
    systems: Mapping[str, Sequence[Lines]], reference: Lines, *, top: int
) -> list[Table]:
    """Compare each system with the first one by the translations of each seed.

    top: the number of n-grams to find of each kind.
    """
    expected, tables = count_ngrams(reference), []
    right = {name: count_right(seeds, reference) for name, seeds in systems.items()}
    [baseline, *others] = right
    for name in others:
        both = compare_ngrams(right[name], right[baseline], expected, top=top)
        rows = [
            [how_often, *ngram]
            for how_often, ngrams in zip(("more often", "less often"), both, strict=True)
            for ngram in ngrams
        ]
        columns = [
            text_column("is right", name="right"),
            text_column("n-gram", name="text"),
            Column("score", digits=3),
            # means over seeds have decimals
            Column(name, name="system"),
            Column(baseline, name="baseline"),
            count_column("references", name="reference"),
        ]
        title = f"n-grams that {name} gets right more or less often than {baseline}"
        tables.append(Table(columns=columns, rows=rows, title=title, shared=1, notes=[_LEGEND]))
    return tables


def count_ngrams(lines: Lines) -> Counter[Strings]:
    """Count the n-grams of a text."""
    counts = Counter()
    for words in lines:
        counts.update(_ngrams(words))
    return counts


def count_right(seeds: Sequence[Lines], reference: Lines) -> dict[Strings, float]:
    """Count how often each n-gram of a system's translations is right, on average over its
    seeds."""
    expected = [_ngrams(words) for words in reference]
    right = Counter[Strings]()
    for hypothesis in seeds:
        for words, others in zip(hypothesis, expected, strict=True):
            right.update(_ngrams(words) & others)
    # a single seed has whole numbers
    seeded = len(seeds) > 1
    return {ngram: count / len(seeds) if seeded else count for ngram, count in right.items()}


def compare_ngrams(
    system: dict[Strings, float],
    baseline: dict[Strings, float],
    reference: Counter[Strings],
    *,
    top: int,
) -> tuple[list[Ngram], list[Ngram]]:
    """Find the n-grams that a system gets right more often than another, and less often, at most
    `top` of each."""
    scored = []
    for ngram in {**system, **baseline}:
        a, b = system.get(ngram, 0), baseline.get(ngram, 0)
        if a != b:
            scored.append(Ngram(" ".join(ngram), (a + 1) / (a + b + 2), a, b, reference[ngram]))
    scored.sort(key=Ngram.rank)
    more = [ngram for ngram in scored if ngram.score > 0.5][:top]
    less = [ngram for ngram in scored if ngram.score < 0.5][:top]
    return more, less


def _ngrams(words: Texts) -> Counter[Strings]:
    counts = Counter()
    for size in range(1, LONGEST + 1):
        counts.update(zip(*(words[start:] for start in range(size)), strict=False))
    return counts
