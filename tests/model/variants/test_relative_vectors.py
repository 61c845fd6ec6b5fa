"""Vectors of pairs, by distance, by depth, by steps and by arc, against loops over the equation of
Shaw et al."""

import math

import pytest
import torch
from attending import assert_attends, drawn, random_trees
from walks import arc, signed_steps, way_up

from synmt.model.variants.depth_relative import DepthRelative
from synmt.model.variants.graph_relations import GraphRelations
from synmt.model.variants.relative import Relative
from synmt.model.variants.structural_positions import StructuralPositions


def by_depth(pair):
    """How much deeper the key's word is."""
    query, key = (len(way_up(pair.parse.parents, word)) for word in pair.words)
    return key - query


def by_steps(pair):
    return signed_steps(pair.parse.parents, *pair.words)


def assert_adds_vectors(variant, tables, row_of, seed, key_of=lambda row: row):
    """O_i = Σ_j softmax_j(q_i · (k_j + a^K[row]) / √d) (v_j + a^V[row])."""
    keys, values = tables

    def score(pair):
        return pair.q @ (pair.k + key_of(keys[row_of(pair)])) / math.sqrt(len(pair.q))

    def value(pair):
        return pair.v if values is None else pair.v + values[row_of(pair)]

    assert_attends(variant, random_trees(seed, words=(1, 4, 7)), score, value)


@pytest.mark.parametrize("reach", [1, 2, 16])
@pytest.mark.parametrize("options", [{}, {"values": False}, {"shared": True}], ids=str)
def test_relative_positions_equal_loops_over_the_equation(options, reach):
    variant = drawn(Relative, reach=reach, **options)
    tables = variant.key, variant.key if "shared" in options else variant.value

    def row_of(pair):
        return reach + max(-reach, min(reach, pair.j - pair.i))

    assert_adds_vectors(variant, tables, row_of, reach)


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("reach", [1, 2, 16])
@pytest.mark.parametrize(
    ("kind", "steps"), [(DepthRelative, by_depth), (StructuralPositions, by_steps)]
)
def test_positions_in_the_tree_equal_loops_over_the_equation(kind, steps, reach, values):
    variant = drawn(kind, reach=reach, values=values)

    def row_of(pair):
        if min(pair.words) < 0:
            return 2 * reach + 1
        return reach + max(-reach, min(reach, steps(pair)))

    assert_adds_vectors(variant, (variant.vectors.key, variant.vectors.value), row_of, reach)


@pytest.mark.parametrize("norm", [True, False])
@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
def test_arcs_equal_loops_over_the_equation(labelled, values, norm):
    variant = drawn(GraphRelations, labelled=labelled, values=values, norm=norm)

    def normed(vector):
        """(x - mean) / √(variance + 1e-5) · weight."""
        centred = vector - vector.mean()
        return centred / torch.sqrt(centred.square().mean() + 1e-5) * variant.vectors.norm.weight

    def row_of(pair):
        return arc(pair.parse, *pair.words, labelled=labelled)

    tables = variant.vectors.key, variant.vectors.value
    assert_adds_vectors(variant, tables, row_of, 1, normed if norm else lambda row: row)
