"""The depth of trees, and the distances between words and their parents."""

import numpy as np
import pytest
import small
from test_attachment import with_full_stop

from synmt.analysis.groups.trees import depth, distances, longest_distance, mean_distance
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree


def tree(words, parents, relations=None):
    spans = np.array([(n, n + 1) for n in range(len(words))], dtype=np.int64).reshape(-1, 2)
    relations = relations or ["root" if n == parent else "dep" for n, parent in enumerate(parents)]
    return Parse(words, spans, np.array(parents, dtype=np.int64), relations)


MONKEY = with_full_stop(small.MONKEY)


def test_the_depth_is_that_of_the_deepest_word():
    # eats 0, monkey and banana 1, The and a 2
    assert depth(MONKEY) == 2
    assert depth(tree(["Go"], [0])) == 0


def test_distances_leave_out_the_root_and_punctuation():
    # The-monkey 1, monkey-eats 1, a-banana 1, banana-eats 2
    assert distances(MONKEY).tolist() == [1, 1, 1, 2]
    assert (longest_distance(MONKEY), mean_distance(MONKEY)) == (2, 5 / 4)


def test_punctuation_does_not_count():
    # a , b: b hangs on a, and the comma on b; without it a and b are neighbours
    assert distances(tree(["a", ",", "b"], [0, 2, 0], ["root", "punct", "conj"])).tolist() == [1]
    assert depth(tree(["a", "b", "!"], [0, 0, 1], ["root", "obj", "punct"])) == 1
    # a word below punctuation
    assert distances(tree(["a", ",", "b"], [0, 0, 1], ["root", "punct", "conj"])).tolist() == []


@pytest.mark.parametrize("words", [[], ["Go"]])
def test_a_sentence_without_arcs_measures_zero(words):
    parse = tree(words, list(range(len(words))))
    assert (depth(parse), longest_distance(parse), mean_distance(parse)) == (0, 0, 0.0)


def test_a_line_of_punctuation_measures_zero():
    parse = tree(["?", "!"], [0, 0], ["root", "punct"])
    parse.tags.extend(["PUNCT", "PUNCT"])
    assert (depth(parse), longest_distance(parse), mean_distance(parse)) == (0, 0, 0.0)


@pytest.mark.parametrize("seed", range(30))
def test_measures_are_those_of_walks_from_each_word_to_the_root(seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 15))
    parents = random_tree(size, random).tolist()
    punctuation = [bool(one) for one in random.random(size) < 0.2]
    relations = ["punct" if one else "dep" for one in punctuation]
    parse = tree(["w"] * size, parents, relations)
    depths, lengths = [0], []
    for word in range(size):
        if punctuation[word]:
            continue
        above, steps = word, 0
        while parents[above] != above:
            above, steps = parents[above], steps + 1
        depths.append(steps)
        parent = parents[word]
        if parent != word and not punctuation[parent]:
            low, high = sorted((word, parent))
            lengths.append(sum(not one for one in punctuation[low + 1 : high + 1]))
    assert depth(parse) == max(depths)
    assert distances(parse).tolist() == lengths
    assert mean_distance(parse) == (pytest.approx(sum(lengths) / len(lengths)) if lengths else 0)
