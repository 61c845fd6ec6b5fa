"""Resamples of sentences, and intervals of ratios of sums over them and of proportions."""

from dataclasses import astuple

import numpy as np
import pytest

from synmt.evaluation.bootstrap import interval, proportions, ratio_intervals, resamples, wilson


def drawn_one_by_one(above, below, samples, seed):
    """Draw whole sentences in the order in which numpy gives their numbers, and divide the sums."""
    chosen = (
        np.random.default_rng(seed)
        .choice(len(above), size=(samples, len(above)), replace=True)
        .tolist()
    )
    ratios = [[] for _ in above[0]]
    for sentences in chosen:
        for column, found in enumerate(ratios):
            under = sum(below[sentence][column] for sentence in sentences)
            if under:
                found.append(sum(above[sentence][column] for sentence in sentences) / under)
    return [np.quantile(found, (0.025, 0.975)).tolist() for found in ratios]


@pytest.mark.parametrize("seed", range(4))
def test_an_interval_is_that_of_sentences_drawn_one_by_one(seed):
    random = np.random.default_rng(seed)
    below = random.integers(0, 5, (6, 3)).astype(float)
    below[0] = 1
    above = below * random.random((6, 3))
    found = ratio_intervals(above, below, samples=80, seed=seed)
    np.testing.assert_allclose(found, drawn_one_by_one(above, below, 80, seed), atol=1e-12)


def test_a_resample_with_nothing_below_the_line_says_nothing():
    # the first sentence alone has words of this kind, and all of them are right
    above = np.array([[2.0], [0.0], [0.0]])
    assert ratio_intervals(above, above) == [(1.0, 1.0)]


def test_every_resample_has_as_many_sentences_as_there_are():
    # 4,000,000 counts at once: 9,000 sentences come in three parts
    parts = list(resamples(9000))
    assert len(parts) == 3
    assert sum(len(part) for part in parts) == 1000
    assert all((part.sum(1) == 9000).all() for part in parts)
    assert parts[0].mean() == 1


def test_an_interval_holds_the_middle_of_what_is_known():
    values = np.append(np.arange(1001.0), np.nan)
    assert interval(values).tolist() == [25, 975]
    assert interval(values[:, None]).shape == (2, 1)


def test_proportions_of_words_are_resampled_by_sentence():
    # three words of the first sentence, two of which are right, and one of the third; the second
    # has no words
    flags, sentence = np.array([[True], [True], [False], [True]]), np.array([0, 0, 0, 2])
    [found] = proportions(flags, sentence, 3)
    assert found.value == 0.75
    assert (found.low, found.high) == ratio_intervals(
        np.array([[2.0], [0], [1]]), np.array([[3.0], [0], [1]])
    )[0]


def test_wilsons_interval_by_hand():
    # one of one: (1 + z²/2) / (1 + z²) ± the same without the 1, z = 1.96
    square = 1.959963984540054**2
    assert astuple(wilson(1, 1)) == pytest.approx((1.0, 1 / (1 + square), 1.0))
