"""Relative positions by depth against a slow loop over their equation, and the depths and vectors
of the monkey."""

import math

import numpy as np
import pytest
import torch
from attending import (
    alike_terms,
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    slow_attend,
    with_eos,
)
from small import MONKEY, MONKEY_WORD_OF, random_tree, small_model

from synmt.data.corpus import Tree
from synmt.model.attention import attend
from synmt.model.variant import Place
from synmt.model.variants.depth_relative import DepthRelative, depth_differences
from synmt.syntax.kinship import DEPTH, depth
from synmt.syntax.parse import Parse
from synmt.syntax.trees import depths

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def made(place=PLACE, **options):
    torch.manual_seed(1)
    variant = DepthRelative(place, **options).double()
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


def steps_up(parse, word):
    return 0 if parse.parents[word] == word else 1 + steps_up(parse, parse.parents[word])


def slow_depth_relative(terms, sentences, reach, keys, values):
    """O_i = Σ_j softmax_j(q_i · (k_j + a^K[r]) / √d) (v_j + a^V[r]), without padding."""

    def row(b, i, j):
        parse, word_of = sentences[b]
        if word_of[i] < 0 or word_of[j] < 0:
            return 2 * reach + 1
        return (
            max(-reach, min(reach, steps_up(parse, word_of[j]) - steps_up(parse, word_of[i])))
            + reach
        )

    def score(b, h, i, j):
        return terms.q[b, h, i] @ (terms.k[b, h, j] + keys[row(b, i, j)]) / math.sqrt(4)

    def value(b, h, i, j):
        return terms.v[b, h, j] + (0 if values is None else values[row(b, i, j)])

    return slow_attend(
        terms, score, value=value, lengths=[len(word_of) for _, word_of in sentences]
    )


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("reach", [1, 2, 16])
def test_it_equals_loops_over_the_equation_gradients_too(reach, values):
    trees = random_trees(reach, words=(1, 4, 7))
    variant = made(reach=reach, values=values)
    syntax, mask = read(variant, trees)
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=1)
    tables = (variant.vectors.key, variant.vectors.value)
    expected = slow_depth_relative(terms, with_eos(trees), reach, *tables)
    leaves = (terms.q, terms.k, terms.v, *variant.parameters())
    assert_same_with_gradients(attend(variant.edit(terms, syntax)) * mask.mT, expected, leaves)


def monkey_of_one_piece_a_word(reach=2, **changes):
    """Edit one head of width 1 whose vectors are the differences themselves."""
    variant = made(Place("source", 1, 1, 1, 1), reach=reach)
    with torch.no_grad():
        for table in variant.parameters():
            table.copy_(torch.tensor([*range(-reach, reach + 1), 0.0])[:, None])
    syntax, mask = read(variant, [Tree(MONKEY, np.arange(5))])
    q = torch.ones(1, 1, 6, 1, dtype=torch.float64)
    return variant.edit(alike_terms(q, mask).edit(**changes), syntax)


def test_the_row_of_the_monkeys_determiner():
    # depths 2 1 0 2 1: from The, the others are 0, -1, -2, 0 and -1 deeper
    assert monkey_of_one_piece_a_word().bias[0, 0, 0].tolist() == [0, -1, -2, 0, -1, 0]
    # clipped to one step
    assert monkey_of_one_piece_a_word(reach=1).bias[0, 0, 0].tolist() == [0, -1, -1, 0, -1, 0]


def test_even_weights_over_the_words_add_the_mean_difference():
    zeros = torch.zeros(1, 1, 6, 1, dtype=torch.float64)
    words = torch.tensor([True] * 5 + [False])[None, None, None]
    terms = monkey_of_one_piece_a_word().edit(k=zeros, v=zeros, bias=None, q=zeros, mask=words)
    # (0 - 1 - 2 + 0 - 1) / 5
    torch.testing.assert_close(attend(terms)[0, 0, 0].item(), -0.8)


def test_the_row_of_a_pair_without_words_is_its_own():
    rows = depth_differences(torch.tensor([[-1, 0, 3]]), 2)
    assert rows.tolist() == [[[5, 5, 5], [5, 2, 4], [5, 0, 2]]]


def test_it_stands_in_all_layers_and_heads():
    model = small_model({"name": "depth_relative"})
    assert [(v.place.layer, v.place.heads) for v in model.variants["source"]] == [(1, 4), (2, 4)]
    assert model.reads("source") == (DEPTH,)


# depths


def test_depths_of_the_monkeys_pieces():
    assert depth(MONKEY, np.append(MONKEY_WORD_OF, -1)).tolist() == [2, 1, 1, 0, 2, 1, 1, -1]
    assert depth(MONKEY, np.append(-1, MONKEY_WORD_OF)).tolist() == [-1, 2, 1, 1, 0, 2, 1, 1]


@pytest.mark.parametrize("words", [1, 2, 7, 40])
def test_depths_equal_walks_to_the_root(words):
    parse = random_tree(words, np.random.default_rng(words))
    assert depth(parse, np.arange(words)).tolist() == depths(parse.parents.tolist())


def test_a_sentence_without_words_has_no_depth():
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert depth(nothing, np.array([-1, -1])).tolist() == [-1, -1]
