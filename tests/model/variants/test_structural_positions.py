"""Positions in the tree, relative and absolute, against slow loops over their equations, and worked
out by hand."""

import math

import numpy as np
import pytest
import torch
from attending import (
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    slow_attend,
    with_eos,
)
from small import MONKEY, MONKEY_WORD_OF, all_trees, random_batch, small_model

from synmt.model.attention import attend
from synmt.model.seq2seq import sinusoids
from synmt.model.variant import Place, Syntax
from synmt.model.variants.structural_depth import StructuralDepth, sinusoids_at
from synmt.model.variants.structural_positions import StructuralPositions, clipped_steps
from synmt.syntax.kinship import DEPTH, NO_STEPS, SIGNED_STEPS, signed_steps
from synmt.syntax.parse import Parse
from synmt.syntax.trees import tree_distances

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def made(kind, place=PLACE, **options):
    torch.manual_seed(1)
    variant = kind(place, **options).double()
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


def path_up(parents, word):
    """Walk to the root, which ends the path."""
    path = [word]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path


def slow_steps(parents, i, j):
    """depth_i - depth_j on one path to the root, else the sum of both, negative if i comes
    first."""
    up, down = path_up(parents, i), path_up(parents, j)
    if j in up or i in down:
        return len(up) - len(down)
    both = len(up) - 1 + len(down) - 1
    return both if i > j else -both


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("reach", [1, 2, 16])
def test_relative_positions_equal_loops_over_the_equation_gradients_too(reach, values):
    trees = random_trees(reach, words=(1, 4, 7))
    variant, sentences = made(StructuralPositions, reach=reach, values=values), with_eos(trees)
    syntax, mask = read(variant, trees)
    terms, vectors = random_terms(3, 2, mask.size(-1), 4, mask, seed=1), variant.vectors

    def row(b, i, j):
        parse, word_of = sentences[b]
        if word_of[i] < 0 or word_of[j] < 0:
            return 2 * reach + 1
        return (
            max(-reach, min(reach, slow_steps(parse.parents.tolist(), word_of[i], word_of[j])))
            + reach
        )

    def score(b, h, i, j):
        return terms.q[b, h, i] @ (terms.k[b, h, j] + vectors.key[row(b, i, j)]) / math.sqrt(4)

    def value(b, h, i, j):
        return terms.v[b, h, j] + (vectors.value[row(b, i, j)] if values else 0)

    expected = slow_attend(
        terms, score, value=value, lengths=[len(word_of) for _, word_of in sentences]
    )
    leaves = (terms.q, terms.k, terms.v, *variant.parameters())
    assert_same_with_gradients(attend(variant.edit(terms, syntax)) * mask.mT, expected, leaves)


def test_rows_of_the_tables_are_clipped_and_pairs_without_words_have_their_own():
    steps = torch.tensor([[[0, -5], [NO_STEPS, 1]]])
    assert clipped_steps(steps, 2).tolist() == [[[2, 0], [5, 3]]]


def test_they_stand_in_all_layers_and_heads():
    model = small_model({"name": "structural_positions"})
    assert [(v.place.layer, v.place.heads) for v in model.variants["source"]] == [(1, 4), (2, 4)]
    assert model.reads("source") == (SIGNED_STEPS,)


# signed steps


def test_signed_steps_of_the_monkey():
    assert signed_steps(MONKEY, np.arange(5)).tolist() == [
        [0, 1, 2, -4, -3],
        [-1, 0, 1, -3, -2],
        [-2, -1, 0, -2, -1],
        [4, 3, 2, 0, 1],
        [3, 2, 1, -1, 0],
    ]


@pytest.mark.parametrize("words", range(1, 6))
def test_signed_steps_equal_walks_through_every_tree_of_few_words(words):
    for parents in all_trees(words):
        parse = Parse([""] * words, np.zeros((words, 2), int), parents, ["dep"] * words)
        found = signed_steps(parse, np.arange(words))
        assert found.tolist() == [
            [slow_steps(parents.tolist(), i, j) for j in range(words)] for i in range(words)
        ]
        assert (found == -found.T).all()
        assert (abs(found) >= tree_distances(parents)).all()


def test_pieces_have_the_steps_of_their_words_and_specials_none():
    found = signed_steps(MONKEY, np.append(MONKEY_WORD_OF, -1))
    by_word = signed_steps(MONKEY, np.arange(5))
    assert (found[:7, :7] == by_word[np.ix_(MONKEY_WORD_OF, MONKEY_WORD_OF)]).all()
    assert (found[7] == NO_STEPS).all()
    assert (found[:, 7] == NO_STEPS).all()
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert signed_steps(nothing, np.array([-1])).tolist() == [[NO_STEPS]]


# absolute positions


def test_the_depth_of_each_word_is_added_to_its_embedding_gradients_too():
    trees = random_trees(3, words=(1, 4, 7))
    variant = made(StructuralDepth)
    syntax, mask = read(variant, trees)
    x = torch.randn(3, mask.size(-1), 8, dtype=torch.float64, requires_grad=True)
    weight, bias = variant.project.weight, variant.project.bias
    rows = []
    for b, (parse, word_of) in enumerate(with_eos(trees)):
        padding = [-1] * (mask.size(-1) - len(word_of))
        for t, word in enumerate([*word_of, *padding]):
            if word < 0:
                rows.append(x[b, t])
                continue
            depth = len(path_up(parse.parents.tolist(), word)) - 1
            angles = [depth * 10_000 ** (-n / 3) for n in range(4)]
            waves = torch.tensor(
                [*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float64
            )
            rows.append(x[b, t] + torch.tanh(weight @ waves + bias))
    expected = torch.stack(rows).view_as(x)
    assert_same_with_gradients(variant.embed(x, syntax), expected, (x, weight, bias))


def test_the_sinusoids_are_those_of_the_positions():
    torch.testing.assert_close(
        sinusoids_at(torch.arange(30)[None], 16)[0], sinusoids(30, 16), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("architecture", ["transformer", "lstm"])
def test_it_stands_once_before_the_first_layer_of_both_architectures(architecture):
    model = small_model({"name": "structural_depth"}, architecture=architecture)
    assert [v.place.heads for v in model.variants["source"]] == [0]
    assert model.reads("source") == (DEPTH,)
    _, batch = random_batch(model, [3, 6])
    assert model(batch).states.isfinite().all()


def test_an_odd_width_of_the_embedding_has_one_sinusoid_less():
    variant = StructuralDepth(Place("source", 1, 0, 8, 4, embedding_dim=7))
    x, depths = torch.zeros(1, 2, 7), torch.tensor([[3, -1]])
    added = variant.embed(x, Syntax({"depth": depths}))
    assert added.shape == x.shape
    assert added[0, 0].any()
    assert not added[0, 1].any()
