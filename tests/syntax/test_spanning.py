"""The best tree with one root, against every tree there is."""

import numpy as np
import pytest
from small import all_trees, is_tree

from synmt.syntax.trees import maximum_spanning_tree


def total(scores, parents):
    return scores[np.arange(len(scores)), parents].sum(-1)


def forbidding(random, words):
    return np.where(
        random.random((words, words)) < 0.4, -np.inf, random.normal(size=(words, words))
    )


DRAWN = {
    "normal": lambda random, words: random.normal(size=(words, words)),
    "ties": lambda random, words: random.integers(3, size=(words, words)).astype(float),
    "roots are best": lambda random, words: random.random((words, words)) + 3 * np.eye(words),
    "huge": lambda random, words: random.normal(size=(words, words)) * 1e300,
    "tiny": lambda random, words: random.normal(size=(words, words)) * 1e-300,
    "forbidden": forbidding,
}


@pytest.mark.journey
@pytest.mark.parametrize("kind", DRAWN)
def test_no_tree_with_one_root_has_a_greater_sum(kind):
    for seed in range(200):
        words = 1 + seed % 6
        scores = DRAWN[kind](np.random.default_rng(seed), words)
        found = maximum_spanning_tree(scores)
        assert is_tree(found), (kind, seed)
        best, sum_ = total(scores, all_trees(words)).max(), total(scores, found)
        scale = np.abs(scores[np.isfinite(scores)]).max(initial=0)
        assert sum_ == best or abs(sum_ - best) <= 1e-12 * words * scale, (kind, seed)


def test_where_every_tree_is_forbidden_the_fewest_arcs_are():
    for seed in range(200):
        random = np.random.default_rng(seed)
        scores = np.where(random.random((4, 4)) < 0.8, -np.inf, random.random((4, 4)))
        forbidden = np.isinf(scores)
        fewest = total(forbidden, all_trees(4)).min()
        assert total(forbidden, maximum_spanning_tree(scores)) == fewest


@pytest.mark.journey
@pytest.mark.parametrize("words", [10, 25, 60])
def test_longer_sentences_agree_with_the_search_of_stanza(words):
    from stanza.models.common.chuliu_edmonds import chuliu_edmonds_one_root

    for seed in range(10):
        scores = np.random.default_rng(seed).normal(size=(words, words))
        scores -= scores.max()  # Stanza wants them negative
        theirs = np.zeros((words + 1, words + 1))
        theirs[1:, 1:], theirs[1:, 0] = scores, scores.diagonal()
        above = chuliu_edmonds_one_root(theirs)[1:]
        expected = np.where(above == 0, np.arange(words), above - 1)
        assert maximum_spanning_tree(scores).tolist() == expected.tolist()


def test_a_sentence_of_one_word_or_none_has_its_only_tree():
    assert maximum_spanning_tree(np.array([[-3.0]])).tolist() == [0]
    assert maximum_spanning_tree(np.zeros((0, 0))).tolist() == []


def test_the_scores_are_not_changed():
    scores = np.random.default_rng(0).random((5, 5))
    before = scores.copy()
    maximum_spanning_tree(scores)
    assert np.array_equal(scores, before)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_scores_that_are_not_numbers_are_refused(odd):
    scores = np.zeros((3, 3))
    scores[1, 2] = odd
    with pytest.raises(AssertionError, match="NaN or infinite"):
        maximum_spanning_tree(scores)
