"""N-grams that one system gets right and another gets wrong: scores and counts are those of
compare-mt 0.2.10."""

import numpy as np
import pytest
from each import of_seeds
from word_texts import REFERENCE, A, B, random_lines

from synmt.analysis.words.ngrams import compare_ngrams, count_ngrams, count_right


def lines(texts):
    return [text.split() for text in texts]


def compare(a, b, reference, top=100):
    expected = count_ngrams(lines(reference))
    right = [count_right([lines(one) for one in seeds], lines(reference)) for seeds in (a, b)]
    return compare_ngrams(*right, expected, top=top)


def test_the_ngrams_of_a_small_text_are_those_of_compare_mt():
    more, _ = compare([A], [B], REFERENCE)
    # of equal scores, what is right more often comes first, then the longer one
    assert [one.text for one in more[:7]] == [
        *("der Hund sieht", "der Mann", "schläft und", "lacht", "und", "Mann", "der")
    ]
    assert compare([A], [B], REFERENCE, top=2)[0] == more[:2]


def right_in_one_sentence(hypothesis, reference, ngram):
    """Count by hand: how often both sentences have the n-gram."""
    size = len(ngram)
    counts = [
        sum(tuple(words[n : n + size]) == ngram for n in range(len(words) - size + 1))
        for words in (hypothesis.split(), reference.split())
    ]
    return min(counts)


@of_seeds(3)
def test_counts_are_those_of_every_sentence_and_means_over_seeds(random):
    reference, *texts = (random_lines(random, 15) for _ in range(4))
    a, b = texts[:2], texts[2:]
    more, less = compare(a, b, reference, top=10**6)
    assert min(len(more), len(less)) > 0

    def counted(text, ngram):
        return sum(
            right_in_one_sentence(*pair, ngram) for pair in zip(text, reference, strict=True)
        )

    for one in [*more, *less]:
        ngram = tuple(one.text.split())
        assert 1 <= len(ngram) <= 4
        first, second = (np.mean([counted(text, ngram) for text in seeds]) for seeds in (a, b))
        assert (one.system, one.baseline) == pytest.approx((first, second))
        assert one.score == pytest.approx((first + 1) / (first + second + 2))
        assert one.reference == counted(reference, ngram)
    assert all(one.score > 0.5 for one in more)
    # the other way round, more and less change places
    swapped = compare(b, a, reference, top=10**6)
    assert [one.text for one in swapped[0]] == [one.text for one in less]
