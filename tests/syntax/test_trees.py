"""Trees against loops from their definitions, on every tree of few words and on the trees of
treebanks."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from notation import tree
from small import MONKEY, all_trees, slow_distances
from walks import way_up

from synmt.syntax.trees import (
    ancestors,
    depths,
    is_tree,
    linearise,
    random_tree,
    tree_distances,
    tree_of_map,
)

CHAINS_AND_STARS = {
    "right": np.maximum(np.arange(60) - 1, 0),
    "left": np.minimum(np.arange(60) + 1, 59),
    "star": np.full(60, 7),
}


def all_maps(words):
    return [np.array(targets) for targets in product(range(words), repeat=words)]


def recursive_brackets(parse, word):
    below = [child for child, parent in enumerate(parse.parents) if parent == word != child]
    return " ".join(
        [f"({parse.relations[word]}", *(recursive_brackets(parse, child) for child in below), ")"]
    )


def check(parents):
    assert is_tree(parents)
    words = range(len(parents))
    paths = [way_up(parents, word) for word in words]
    assert depths(parents).tolist() == [len(path) - 1 for path in paths]
    assert ancestors(parents).tolist() == [[above in path for above in words] for path in paths]
    assert tree_distances(parents).tolist() == slow_distances(parents)


@pytest.mark.parametrize("words", range(1, 6))
def test_every_tree_of_few_words_has_the_ancestors_and_distances_of_the_loops(words):
    trees = all_trees(words)
    assert len(trees) == words ** (words - 1) == sum(map(is_tree, all_maps(words)))
    for parents in trees:
        check(parents)


@pytest.mark.parametrize("parents", CHAINS_AND_STARS.values(), ids=CHAINS_AND_STARS)
def test_distances_of_chains_and_stars_equal_the_loop(parents):
    check(parents)


@pytest.mark.parametrize("words", [*range(1, 61, 4), 16, 32, 64])
def test_distances_of_random_trees_equal_the_loop(words):
    random = np.random.default_rng(words)
    for _ in range(3):
        check(random_tree(words, random))


def test_no_words_have_no_distances():
    none = np.zeros(0, dtype=np.int64)
    assert tree_distances(none).shape == ancestors(none).shape == (0, 0)
    assert random_tree(0, np.random.default_rng(1)).shape == (0,)


def test_brackets_have_children_in_the_order_of_their_words():
    assert linearise(MONKEY) == "(root (nsubj (det ) ) (obj (det ) ) )"
    assert linearise(tree([], [])) == ""
    assert linearise(tree([0], ["root"])) == "(root )"
    children = tree([3, 3, 1, 3, 3], ["a", "nmod:poss", "c", "root", "e"])
    assert linearise(children) == "(root (a ) (nmod:poss (c ) ) (e ) )"


@pytest.mark.parametrize("words", [1, 2, 7, 30])
def test_brackets_equal_those_of_a_recursion(words):
    random = np.random.default_rng(words)
    for _ in range(10):
        parents = random_tree(words, random)
        parse = tree(parents, [f"r{number}" for number in random.integers(9, size=words)])
        root = int(np.flatnonzero(parents == np.arange(words))[0])
        assert linearise(parse) == recursive_brackets(parse, root)


def test_a_chain_of_thousands_of_words_has_its_brackets():
    words = 5000
    parse = tree(np.maximum(np.arange(words) - 1, 0), ["root"] + ["dep"] * (words - 1))
    assert linearise(parse) == "(root " + "(dep " * (words - 1) + " ".join([")"] * words)


@pytest.mark.parametrize("words", range(1, 6))
def test_every_tree_comes_from_as_many_maps(words):
    found = Counter(tuple(tree_of_map(targets).tolist()) for targets in all_maps(words))
    assert set(found) == {tuple(parents.tolist()) for parents in all_trees(words)}
    assert set(found.values()) == {words}


@pytest.mark.journey
@pytest.mark.parametrize("words", [3, 4])
def test_random_trees_are_uniform(words):
    random, draws, trees = np.random.default_rng(words), 6400, words ** (words - 1)
    found = Counter(tuple(random_tree(words, random).tolist()) for _ in range(draws))
    assert len(found) == trees
    expected = draws / trees
    chi_square = sum((count - expected) ** 2 / expected for count in found.values())
    # mean trees - 1, deviation √(2 (trees - 1)): four deviations
    assert chi_square < trees - 1 + 4 * (2 * (trees - 1)) ** 0.5
