"""Words without a piece are merged into others, with their arc probabilities."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from each import of_seeds
from notation import arcs_in, by_arc
from small import is_tree, random_arcs

from synmt.data.vocabulary import word_of
from synmt.syntax.merging import merge_unowned
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree


def parse_of(parents, spans):
    """Make a tree of words, at the spans, that can be told apart."""
    words = [f"w{word}" for word in range(len(parents))]
    relations = ["root" if parent == word else f"r{word}" for word, parent in enumerate(parents)]
    return Parse(words, np.array(spans), np.array(parents), relations)


def drawn_parse(words, random):
    tree = parse_of(random_tree(words, random), [(word, word + 1) for word in range(words)])
    return replace(tree, arcs=random_arcs(words, random))


# parents of the words | the words | pieces | their owners, if they are not found by their places |
# words that are left | their parents | owners of the pieces
MERGED = """
# "cannot go": can <- go, not <- go, go root; the piece ▁cannot has both words
2 2 2 | 0-3 3-6 7-9 | 0-6 6-9 | | 0 2 | 1 1 | 0 1
# w1 is the root and has no piece; w0, its child, shares one with it and becomes the root
1 1 1 | 0-3 3-6 7-9 | 0-6 6-9 | | 0 2 | 0 0 | 0 1
# 2 -> 1 -> 0 -> 3 (root); 1 owns the piece that it shares with 2 (unowned), 2's child 0 stays below
3 0 1 3 | 6-9 0-2 2-4 12-14 | 0-3 3-4 5-9 11-14 | 1 1 0 3 | 0 1 3 | 2 0 2 | 1 1 0 2
# "a \u200b b": w1 has no piece; w0 hangs on w1, w1 on w2
1 2 2 | 0-1 2-3 4-5 | 0-1 3-5 | | 0 2 | 1 1 | 0 1
# a lost root
1 1 1 | 0-1 2-3 4-5 | 0-1 3-5 | | 0 2 | 0 0 | 0 1
# a chain 0 <- 1 <- 2 <- 3 <- 4 (root 0) in which 2 is lost: 3 hangs on 1
0 0 1 2 3 | 0-2 3-5 6-8 9-11 12-14 | 0-2 2-5 8-11 11-14 | 0 1 3 4 | 0 1 3 4 | 0 0 1 2 | 0 1 2 3
"""


@pytest.mark.parametrize("row", cases(MERGED, "|"))
def test_words_without_a_piece_pass_on_their_arcs(row):
    cells = [
        np.array([list(map(int, re.findall(r"\d+", item))) for item in cell.split()])
        for cell in row
    ]
    parents, words, pieces, owners, kept, merged_parents, merged_owners = cells
    parse = parse_of(parents.ravel(), words)
    owners = owners.ravel() if len(owners) else word_of(pieces, words)
    merged, after = merge_unowned(parse, pieces, owners)
    kept, merged_parents = kept.ravel().tolist(), merged_parents.ravel().tolist()
    assert merged.words == [f"w{word}" for word in kept]
    assert merged.parents.tolist() == merged_parents
    assert merged.relations == [
        "root" if merged_parents[i] == i else f"r{word}" for i, word in enumerate(kept)
    ]
    assert after.tolist() == merged_owners.ravel().tolist()


def test_merging_leaves_a_tree_in_which_every_word_owns_a_piece():
    random = np.random.default_rng(5)
    for _ in range(1000):
        lengths = random.integers(1, 4, random.integers(1, 10))
        ends = np.cumsum(lengths)
        parse = parse_of(random_tree(len(ends), random), np.stack([ends - lengths, ends], 1))
        cuts = {0, int(ends[-1]), *random.integers(0, ends[-1] + 1, random.integers(0, 5)).tolist()}
        drawn = [span for span in itertools.pairwise(sorted(cuts)) if random.random() < 0.8]
        spans = np.array(drawn).reshape(-1, 2)
        owners = word_of(spans, parse.spans)
        merged, after = merge_unowned(parse, spans, owners)
        assert is_tree(merged.parents)
        [root] = np.flatnonzero(merged.parents == np.arange(len(merged)))
        assert [word for word, name in enumerate(merged.relations) if name == "root"] == [root]
        if len(spans):
            assert set(after.tolist()) == set(range(len(merged)))
            assert [merged.words[w] for w in after] == [parse.words[w] for w in owners]


def test_two_words_in_one_piece_become_one_with_the_row_of_the_upper_one():
    # a b c: the parent of b is c, that of a is b; a and b share a piece that belongs to a, so b is
    # merged into a
    arcs = arcs_in(
        "0>1 x 0.9, 0>2 x 0.1, 1>2 y 0.75, 1>0 y 0.25, 2>2 root 0.5, 2>0 x 0.2, 2>1 x 0.3"
    )
    spans = np.array([[0, 1], [1, 2], [3, 4]])
    parse = Parse(["a", "b", "c"], spans, np.array([1, 2, 2]), ["x", "y", "root"], arcs=arcs)
    merged, owners = merge_unowned(parse, np.array([[0, 2], [2, 4]]), np.array([0, 2]))
    assert owners.tolist() == [0, 1]
    assert (merged.parents.tolist(), merged.relations) == ([1, 1], ["y", "root"])
    # b's row is left: what it gave to a (0.25) is inside the merged word, so c gets all; c's mass
    # on a and b is on both
    expected = arcs_in("0>1 y 1, 1>1 root 0.5, 1>0 x 0.5")
    assert by_arc(merged.arcs) == pytest.approx(by_arc(expected))


@of_seeds(40)
def test_rows_keep_their_mass_and_stay_in_order(random):
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
    drawn = drawn_parse(5, np.random.default_rng(0))
    plain = parse_of([1, 1], [(0, 2), (3, 5)])
    for parse, pieces in ((drawn, drawn.spans), (plain, np.array([(0, 2), (2, 5)]))):
        assert merge_unowned(parse, pieces, word_of(pieces, parse.spans))[0] is parse
