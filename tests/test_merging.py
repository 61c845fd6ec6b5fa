"""Words without a piece are merged into others, with their arc probabilities."""

import numpy as np
import pytest
from small import random_arcs

from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Arcs, Parse
from synmt.syntax.trees import random_tree


def drawn_parse(words, random):
    parents = random_tree(words, random)
    spans = np.stack((np.arange(words), np.arange(1, words + 1)), 1)
    relations = ["root" if parent == word else "dep" for word, parent in enumerate(parents)]
    return Parse(list("abcdefghijklmnop"[:words]), spans, parents, relations, arcs=random_arcs(words, random))


def table_of(arcs, words):
    """Spread arcs out: (W, W, relations)."""
    table = np.zeros((words, words, len(arcs.names)))
    for word, parent, relation, value in zip(arcs.words, arcs.parents, arcs.relations, arcs.probabilities, strict=True):
        table[word, parent, relation] += value
    return table


def test_two_words_in_one_piece_become_one_with_the_row_of_the_upper_one():
    # a b c: the parent of b is c, that of a is b; a and b share a piece that belongs to a, so b is merged into a
    arcs = Arcs(
        words=np.array([0, 0, 1, 1, 2, 2, 2]),
        parents=np.array([1, 2, 2, 0, 2, 0, 1]),
        relations=np.array([1, 1, 2, 2, 0, 1, 1]),
        probabilities=np.array([0.9, 0.1, 0.75, 0.25, 0.5, 0.2, 0.3], np.float32),
        names=("root", "x", "y"),
    )
    parse = Parse(
        ["a", "b", "c"], np.array([[0, 1], [1, 2], [3, 4]]), np.array([1, 2, 2]), ["x", "y", "root"], arcs=arcs
    )
    merged, owners = merge_unowned(parse, np.array([[0, 2], [2, 4]]), np.array([0, 2]))
    assert owners.tolist() == [0, 1]
    assert (merged.parents.tolist(), merged.relations) == ([1, 1], ["y", "root"])
    # b's row is left: what it gave to a (0.25) is inside the merged word, so c gets all; c's mass on a and b is on both
    expected = np.zeros((2, 2, 3))
    expected[0, 1, 2] = 1.0
    expected[1, 1, 0], expected[1, 0, 1] = 0.5, 0.5
    np.testing.assert_allclose(table_of(merged.arcs, 2), expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_rows_keep_their_mass_and_stay_in_order(seed):
    random = np.random.default_rng(seed)
    words = int(random.integers(2, 12))
    parse = drawn_parse(words, random)
    # some neighbours share a piece that belongs to the first of them
    ends = np.sort(random.choice(np.arange(1, words), random.integers(0, words), replace=False))
    starts = np.append(0, ends)
    spans = np.stack((starts, np.append(ends, words)), 1)
    merged, owners = merge_unowned(parse, spans, starts)
    assert owners.tolist() == list(range(len(merged)))
    assert (np.diff(merged.arcs.words) >= 0).all()
    sums = np.bincount(merged.arcs.words, weights=merged.arcs.probabilities, minlength=len(merged))
    # also of a word that had all its mass on one that it has become one with
    np.testing.assert_allclose(sums, 1, atol=1e-5)
    assert (merged.arcs.parents < len(merged)).all()


def test_a_tree_of_which_every_word_owns_a_piece_is_the_same_object():
    parse = drawn_parse(5, np.random.default_rng(0))
    assert merge_unowned(parse, parse.spans, np.arange(5))[0] is parse
