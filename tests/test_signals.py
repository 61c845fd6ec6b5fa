"""Signals against loops written from their definitions."""

import numpy as np
import pytest
from small import MONKEY, MONKEY_WORD_OF, random_tree

from synmt.syntax.conllu import read_conllu
from synmt.syntax.signals import parent_middle, word_middles


def slow_parent_middle(parse, word_of):
    """Loop over pieces: the mean of the first and the last position of the parent's pieces."""
    result = []
    for position, word in enumerate(word_of):
        if word < 0:
            result.append(float(position))
            continue
        theirs = [place for place, owner in enumerate(word_of) if owner == parse.parents[word]]
        result.append((theirs[0] + theirs[-1]) / 2)
    return result


def test_parent_middle_of_a_split_word_lies_between_its_pieces():
    assert parent_middle(MONKEY, np.append(MONKEY_WORD_OF, -1)).tolist() == [1.5, 3, 3, 3, 5.5, 3, 3, 7]


def test_middles_of_the_monkeys_words():
    assert word_middles(MONKEY_WORD_OF, 5).tolist() == [0, 1.5, 3, 4, 5.5]


def test_a_word_without_pieces_has_no_middle():
    np.testing.assert_array_equal(word_middles(np.array([0, 2, 2]), 3), [0, np.nan, 1.5])


def test_a_sentence_without_words_points_at_itself():
    empty = random_tree(1, np.random.default_rng(0))
    empty = type(empty)([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert parent_middle(empty, np.array([-1, -1])).tolist() == [0, 1]


def test_a_parent_without_pieces_is_our_own_mistake():
    with pytest.raises(AssertionError, match="a parent without pieces"):
        parent_middle(MONKEY, np.array([0, 0, 3, -1]))


@pytest.mark.parametrize("seed", range(20))
def test_parent_middle_equals_a_loop_on_random_trees(seed):
    random = np.random.default_rng(seed)
    words = int(random.integers(1, 30))
    # specials before, between and after the pieces
    word_of = np.repeat(np.arange(words), random.integers(1, 5, words))
    word_of = np.concatenate(([-1], word_of, [-1, -1]))
    parse = random_tree(words, random)
    assert parent_middle(parse, word_of).tolist() == slow_parent_middle(parse, word_of)


@pytest.mark.parametrize("name", ["en_ewt-ud-dev", "en_ewt-ud-test", "de_gsd-ud-dev"])
def test_parent_middle_equals_a_loop_on_all_trees_of_a_treebank(name, data_folder):
    random, trees = np.random.default_rng(1), 0
    for _, parse in read_conllu(data_folder / "ud" / f"{name}.conllu.gz"):
        word_of = np.repeat(np.arange(len(parse)), random.integers(1, 4, len(parse)))
        word_of = np.append(word_of, -1)
        assert parent_middle(parse, word_of).tolist() == slow_parent_middle(parse, word_of)
        trees += 1
    assert trees > 700
