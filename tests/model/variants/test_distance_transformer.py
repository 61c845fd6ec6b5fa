"""The Distance Transformer against a loop over its equation."""

import math

import pytest
import torch
from attending import PLACE, assert_attends, drawn, random_terms, random_trees

from synmt.model.attention import attend
from synmt.model.variant import Syntax
from synmt.model.variants.distance_transformer import DistanceTransformer
from synmt.syntax.constituent_signals import boundaries


@pytest.mark.parametrize("temperature", [0.5, 1, 10])
def test_it_equals_loops_over_the_equation(temperature):
    def score(pair):
        """Multiply ½ (1 + tanh((δ - δ_m) / τ)) over the boundaries between two pieces."""
        heights, (i, j) = boundaries(pair.parse, pair.word_of), (pair.i, pair.j)
        own, between = (i, range(i + 1, j)) if j > i else (i - 1, range(j, i - 1))
        factors = [(1 + math.tanh((heights[own] - heights[m]) / temperature)) / 2 for m in between]
        factor = math.prod(factors)
        return pair.plain + (math.log(factor) if factor else -math.inf)

    trees = random_trees(int(10 * temperature))
    assert_attends(drawn(DistanceTransformer, temperature=temperature), trees, score)


def test_its_bias_stays_finite_in_half_precision_with_sharp_boundaries():
    variant, terms = DistanceTransformer(PLACE, temperature=1e-2), random_terms(1, 2, 5, 4)
    q, k, v = (part.bfloat16() for part in (terms.q, terms.k, terms.v))
    heights = torch.tensor([[2, 3, 1, 2000, 2000]])
    edited = variant.edit(terms.edit(q=q, k=k, v=v), Syntax({"boundaries": heights}))
    assert edited.bias.isfinite().all()
    assert attend(edited).isfinite().all()
