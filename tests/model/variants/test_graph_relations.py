"""Graph2Graph's vectors of arcs against a slow loop over their equation, and the numbers of arcs by
hand."""

import math
from functools import cache

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
from small import MONKEY, MONKEY_WORD_OF, make_variant, random_tree, relation_warnings, small_model

from synmt.model.attention import attend
from synmt.model.variant import Place
from synmt.model.variants.graph_relations import GraphRelations
from synmt.syntax.kinship import arcs_of_pairs, edge_kinds, edges
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def made(**options):
    torch.manual_seed(1)
    variant = make_variant(GraphRelations, PLACE, **options).double()
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


def number(relation):
    """Number a relation of KNOWN from 1, without its subtype if the whole name is not there; 72 for
    others."""
    for name in (relation, relation.split(":")[0]):
        if name in KNOWN:
            return 1 + KNOWN.index(name)
    return 1 + len(KNOWN)


def slow_arc(parse, i, j, *, labelled):
    """0 without an arc, the relation's number towards the parent, and that plus all relations
    towards the child."""
    relations = len(KNOWN) + 1 if labelled else 1
    if i == j or i < 0 or j < 0:
        return 0
    if parse.parents[i] == j:
        return number(parse.relations[i]) if labelled else 1
    if parse.parents[j] == i:
        return relations + (number(parse.relations[j]) if labelled else 1)
    return 0


def normed(vector, weight):
    """(x - mean) / √(variance + 1e-5) · weight."""
    centred = vector - vector.mean()
    return centred / torch.sqrt(centred.square().mean() + 1e-5) * weight


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
def test_it_equals_loops_over_the_equation_gradients_too(labelled, values, norm):
    trees = random_trees(int(labelled), words=(1, 4, 6))
    variant, sentences = made(labelled=labelled, values=values, norm=norm), with_eos(trees)
    syntax, mask = read(variant, trees)
    terms, vectors = random_terms(3, 2, mask.size(-1), 4, mask, seed=1), variant.vectors

    def row(b, i, j):
        parse, word_of = sentences[b]
        return slow_arc(parse, word_of[i], word_of[j], labelled=labelled)

    @cache
    def key(row):
        return normed(vectors.key[row], vectors.norm.weight) if norm else vectors.key[row]

    def score(b, h, i, j):
        return terms.q[b, h, i] @ (terms.k[b, h, j] + key(row(b, i, j))) / math.sqrt(4)

    def value(b, h, i, j):
        return terms.v[b, h, j] + (vectors.value[row(b, i, j)] if values else 0)

    expected = slow_attend(
        terms, score, value=value, lengths=[len(word_of) for _, word_of in sentences]
    )
    leaves = (terms.q, terms.k, terms.v, *variant.parameters())
    assert_same_with_gradients(attend(variant.edit(terms, syntax)) * mask.mT, expected, leaves)


def test_it_stands_in_all_layers_and_heads_with_a_vector_for_each_direction_of_a_relation():
    model = small_model({"name": "graph_relations"})
    assert [(v.place.layer, v.place.heads) for v in model.variants["source"]] == [(1, 4), (2, 4)]
    # none, and 71 names and one for all others in two directions
    assert model.variants["source"][0].vectors.key.shape == (145, 4)
    assert model.reads("source") == (edges(KNOWN),)
    plain = small_model({"name": "graph_relations", "labelled": False})
    assert plain.variants["source"][0].vectors.key.shape == (3, 4)
    assert [signal.needs for signal in plain.reads("source")] == ["parents"]


def test_relations_that_no_scheme_has_are_named():
    found = relation_warnings(GraphRelations, {"nsubj": 4, "nsubj:odd": 2, "odd": 3})
    warning = (
        "1 relation (3 of 9 words) is unknown to graph_relations; these words share their "
        "vectors: odd (3)"
    )
    assert found == [warning]
    assert not relation_warnings(GraphRelations, {"odd": 3}, labelled=False)


# numbers of arcs


def test_arcs_of_the_monkey_without_relations():
    # 1 towards the parent, 2 towards a child
    assert arcs_of_pairs(MONKEY, np.array([0, 1, 2, 3, 4, -1]), names=None).tolist() == [
        [0, 1, 0, 0, 0, 0],
        [2, 0, 1, 0, 0, 0],
        [0, 2, 0, 0, 2, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 1, 2, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_arcs_of_the_monkey_with_relations():
    # nsubj 1, det 2, others 3; the other way 4, 5, 6
    found = arcs_of_pairs(MONKEY, np.arange(5), names=("nsubj", "det"))
    assert found.tolist() == [
        [0, 2, 0, 0, 0],
        [5, 0, 1, 0, 0],
        [0, 4, 0, 0, 6],
        [0, 0, 0, 0, 2],
        [0, 0, 3, 5, 0],
    ]
    assert edge_kinds(("nsubj", "det")) == 7


def test_all_pieces_have_the_arcs_of_their_words():
    by_word = arcs_of_pairs(MONKEY, np.arange(5), names=KNOWN)
    by_piece = arcs_of_pairs(MONKEY, MONKEY_WORD_OF, names=KNOWN)
    assert (by_piece == by_word[np.ix_(MONKEY_WORD_OF, MONKEY_WORD_OF)]).all()


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("words", [1, 2, 9, 30])
def test_arcs_equal_a_loop_on_random_trees(words, labelled):
    parse = random_tree(words, np.random.default_rng(words))
    expected = [
        [slow_arc(parse, i, j, labelled=labelled) for j in range(words)] for i in range(words)
    ]
    assert (
        arcs_of_pairs(parse, np.arange(words), names=KNOWN if labelled else None).tolist()
        == expected
    )


def test_a_sentence_without_words_has_no_arcs():
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert arcs_of_pairs(nothing, np.array([-1, -1]), names=KNOWN).tolist() == [[0, 0], [0, 0]]
