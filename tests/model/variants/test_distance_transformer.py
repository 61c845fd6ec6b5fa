"""The Distance Transformer against a slow loop written from the paper's equation, and against its
worked example."""

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
from small import MONKEY, small_model

from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.distance_transformer import DistanceTransformer, log_locality
from synmt.syntax.constituent_signals import BOUNDARIES, boundaries

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def slow_locality(heights, i, j, temperature):
    """Multiply ½ (1 + tanh((δ - δ_m) / τ)) over the boundaries between two pieces."""
    if abs(i - j) <= 1:
        return 1.0
    own, between = (i, range(i + 1, j)) if j > i else (i - 1, range(j, i - 1))
    return math.prod(
        (1 + math.tanh((heights[own] - heights[m]) / temperature)) / 2 for m in between
    )


def test_the_factors_of_the_monkey():
    # δ = 2 4 3 2 between five words of one piece each; the fifth height is not read
    heights = torch.tensor([[2.0, 4, 3, 2, 0]], dtype=torch.float64)
    expected = [
        [1, 1, 0.4013, 0.1807, 0.0903],
        [1, 1, 1, 0.5498, 0.3292],
        [0.5987, 1, 1, 1, 0.5498],
        [0.2475, 0.4502, 1, 1, 1],
        [0.0903, 0.1807, 0.4502, 1, 1],
    ]
    np.testing.assert_allclose(log_locality(heights, 10.0).exp()[0], expected, atol=5e-5)


def test_eos_sees_all_pieces_and_only_the_last_word_sees_it():
    heights = boundaries(MONKEY, np.array([0, 1, 2, 3, 4, -1]))
    factors = log_locality(torch.from_numpy(heights)[None].double(), 10.0).exp()[0]
    torch.testing.assert_close(factors[5], torch.ones(6, dtype=torch.float64))
    np.testing.assert_allclose(factors[:, 5], [0, 0, 0, 0, 1, 1], atol=1e-100)


@pytest.mark.parametrize("temperature", [0.5, 1, 10])
def test_it_equals_loops_over_the_equation_gradients_too(temperature):
    trees = random_trees(int(10 * temperature))
    variant = DistanceTransformer(PLACE, temperature=temperature)
    syntax, mask = read(variant, trees)
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=1)
    output = attend(variant.edit(terms, syntax)) * mask.mT
    tables = [boundaries(*sentence).tolist() for sentence in with_eos(trees)]

    def score(b, h, i, j):
        factor = slow_locality(tables[b], i, j, temperature)
        return terms.q[b, h, i] @ terms.k[b, h, j] / 2 + (math.log(factor) if factor else -math.inf)

    expected = slow_attend(terms, score, lengths=[len(table) for table in tables])
    assert_same_with_gradients(output, expected, (terms.q, terms.k, terms.v))


def test_a_tree_of_equal_heights_is_a_decay_with_the_distance():
    factors = log_locality(torch.full((1, 6), 3.0), 10.0).exp()[0]
    steps = torch.arange(6)
    torch.testing.assert_close(
        factors, 0.5 ** ((steps[:, None] - steps).abs() - 1).clamp(min=0).float()
    )


def test_its_bias_stays_finite_in_half_precision_with_sharp_boundaries():
    variant, heights = (
        DistanceTransformer(PLACE, temperature=1e-2),
        torch.tensor([[2, 3, 1, 2000, 2000]]),
    )
    terms = random_terms(1, 2, 5, 4)
    half = terms.edit(
        **{name: getattr(terms, name).detach().bfloat16() for name in ("q", "k", "v")}
    )
    bias = variant.edit(half, Syntax({"boundaries": heights})).bias
    assert bias.isfinite().all()
    assert attend(half.edit(bias=bias)).isfinite().all()


def test_it_stands_on_four_heads_of_layer_1_and_reads_boundaries():
    model = small_model({"name": "distance_transformer"}, model_dim=32, encoder_heads=[8, 4])
    owned = [
        [variant.place.heads for variant in layer.self_attention.variants]
        for layer in model.encoder
    ]
    assert owned == [[4], []]
    assert model.reads("source") == (BOUNDARIES,)
