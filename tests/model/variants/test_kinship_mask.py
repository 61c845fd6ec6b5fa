"""Mixtures of masks against loops over the kin of each word, and kinds of kinship against their
definitions."""

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
from small import MONKEY, MONKEY_WORD_OF, all_trees, random_batch, random_tree, small_model

from synmt.data.corpus import Tree
from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.kinship_mask import MEMBERS, KinshipMask
from synmt.syntax.kinship import KINDS, KINSHIP, kinship
from synmt.syntax.parse import Parse

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)
EVERY = tuple(MEMBERS)
NO_WORDS = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])


def above(parents, word):
    """Walk up: all words above a word, the parent first."""
    found = []
    while parents[word] != word:
        word = parents[word]
        found.append(word)
    return found


def in_mask(name, parents, i, j):
    """Tell whether word j is in a mask of word i; -1 is not a word."""
    if name == "all":
        return True
    if i < 0 or j < 0:
        return False
    up, down = above(parents, i), above(parents, j)
    return {
        "self": i == j,
        "parent": up[:1] == [j],
        "children": down[:1] == [i],
        "siblings": i != j and up[:1] == down[:1] != [],
        "ancestors": j in up,
        "descendants": i in down,
    }[name]


@pytest.mark.parametrize(
    "masks", [("all",), ("all", "self", "parent", "children", "siblings"), EVERY[::-1]], ids=str
)
def test_it_equals_loops_over_the_kin_of_each_word_gradients_too(masks):
    trees = random_trees(len(masks), words=(1, 4, 7))
    torch.manual_seed(2)
    variant = KinshipMask(PLACE, masks=masks).double()
    torch.nn.init.normal_(variant.mixture)
    syntax, mask = read(variant, trees)
    terms, sentences = random_terms(3, 2, mask.size(-1), 4, mask, seed=1), with_eos(trees)

    def score(b, h, i, j):
        (parse, word_of), shares = sentences[b], variant.mixture[h].softmax(0)
        parents, (one, other) = parse.parents.tolist(), word_of[[i, j]]
        mixed = sum(
            share
            for share, name in zip(shares, masks, strict=True)
            if in_mask(name, parents, one, other)
        )
        return terms.q[b, h, i] @ terms.k[b, h, j] / math.sqrt(4) + torch.log(mixed)

    expected = slow_attend(terms, score, lengths=[len(word_of) for _, word_of in sentences])
    leaves = (terms.q, terms.k, terms.v, variant.mixture)
    assert_same_with_gradients(attend(variant.edit(terms, syntax)) * mask.mT, expected, leaves)


def test_the_gradient_of_the_mixture_is_that_of_finite_differences():
    variant = KinshipMask(PLACE, masks=EVERY).double()
    syntax, mask = read(variant, random_trees(0))
    terms = random_terms(3, 2, mask.size(-1), 4, mask)

    def output(mixture):
        with torch.nn.utils.stateless._reparametrize_module(variant, {"mixture": mixture}):
            return attend(variant.edit(terms, syntax)) * mask.mT

    assert torch.autograd.gradcheck(
        output, torch.randn(2, 7, dtype=torch.float64, requires_grad=True)
    )


def test_equal_shares_of_the_monkey():
    variant = KinshipMask(PLACE)
    syntax, mask = read(variant, [Tree(MONKEY, np.arange(5))])
    bias = variant.edit(alike_terms(torch.zeros(1, 2, 6, 4), mask), syntax).bias
    # banana: The is not kin, monkey its sibling, eats its parent, a its child; EOS is in `all` only
    torch.testing.assert_close(bias[0, 0, 4].exp(), torch.tensor([0.2, 0.4, 0.4, 0.4, 0.4, 0.2]))
    torch.testing.assert_close(bias[0, 1, 5].exp(), torch.full((6,), 0.2))


def test_the_mask_of_all_alone_is_plain_attention():
    torch.manual_seed(0)
    terms = alike_terms(torch.randn(1, 2, 8, 4))
    edited = KinshipMask(PLACE, masks=("all",)).edit(
        terms, Syntax({"kinship": torch.zeros(1, 8, 8, dtype=torch.long)})
    )
    torch.testing.assert_close(attend(edited), attend(terms))


def test_far_shares_stay_finite():
    variant = KinshipMask(PLACE)
    with torch.no_grad():
        variant.mixture.copy_(torch.tensor([[-200.0, 0, 0, 0, 0], [200.0, 0, 0, 0, 0]]))
    syntax, mask = read(variant, random_trees(0))
    bias = variant.edit(alike_terms(torch.zeros(3, 2, mask.size(-1), 4), mask), syntax).bias
    bias.sum().backward()
    assert bias.isfinite().all()
    assert variant.mixture.grad.isfinite().all()


def test_it_stands_on_all_heads_and_layers_with_a_mixture_for_each_head():
    model = small_model({"name": "kinship_mask"})
    assert [(v.place.layer, v.mixture.shape) for v in model.variants["source"]] == [
        (1, (4, 5)),
        (2, (4, 5)),
    ]
    assert model.reads("source") == (KINSHIP,)
    _, batch = random_batch(model, [3, 5])
    assert batch.source_signals["kinship"].shape == (2, *batch.source.ids.shape[1:] * 2)


# kinds of kinship


def slow_kind(parents, i, j):
    """Name what word j is to word i."""
    for name in ("self", "parent", "children", "siblings", "ancestors", "descendants"):
        if in_mask(name, parents, i, j):
            return {
                "children": "child",
                "siblings": "sibling",
                "ancestors": "ancestor",
                "descendants": "descendant",
            }.get(name, name)
    return "none"


def test_kinds_of_the_monkey():
    found = kinship(MONKEY, np.array([0, 1, 2, 3, 4, -1]))
    assert [[KINDS[kind] for kind in row] for row in found[[0, 4, 5]]] == [
        ["self", "parent", "ancestor", "none", "none", "none"],
        ["none", "sibling", "parent", "child", "self", "none"],
        ["none"] * 6,
    ]


def test_pieces_have_the_kinship_of_their_words():
    by_word = kinship(MONKEY, np.arange(5))
    assert (
        kinship(MONKEY, MONKEY_WORD_OF) == by_word[np.ix_(MONKEY_WORD_OF, MONKEY_WORD_OF)]
    ).all()


@pytest.mark.parametrize("words", range(1, 5))
def test_kinds_equal_walks_through_every_tree_of_few_words(words):
    for parents in all_trees(words):
        parse = Parse([""] * words, np.zeros((words, 2), int), parents, ["dep"] * words)
        expected = [[slow_kind(parents.tolist(), i, j) for j in range(words)] for i in range(words)]
        assert [
            [KINDS[kind] for kind in row] for row in kinship(parse, np.arange(words))
        ] == expected


def test_kinds_equal_walks_through_a_large_tree():
    parse = random_tree(40, np.random.default_rng(4))
    expected = [[slow_kind(parse.parents.tolist(), i, j) for j in range(40)] for i in range(40)]
    assert [[KINDS[kind] for kind in row] for row in kinship(parse, np.arange(40))] == expected


def test_a_sentence_without_words_has_no_kin():
    assert kinship(NO_WORDS, np.array([-1, -1])).tolist() == [[0, 0], [0, 0]]
