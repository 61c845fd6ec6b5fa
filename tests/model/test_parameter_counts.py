"""The systems are as large as table 1 of the Deps-SAN paper says (Peng et al., 2022; IWSLT14).

Its counts, in millions and cut off after two decimals, follow from these assumptions: size `base`;
60,000 joint pieces; one table for source, target and output; localness in encoder layers 1 to 3,
its vectors of head size with biases and shared by the heads; context in all six encoder layers,
without biases; relative positions on both sides with reach 16 and one table for scores and values,
shared by the heads.
"""

import pytest
import torch

from synmt.model.build import build
from synmt.recipe.schema import ModelRecipe, SyntaxRecipe

pytestmark = pytest.mark.journey

PUBLISHED = {
    "plain": ([], 74.85),
    "pascal": ([{"name": "pascal"}], 74.85),
    "deps_san": ([{"name": "deps_san"}], 74.85),
    "localness fixed": ([{"name": "localness", "window": "fixed"}], 74.87),
    "localness layer": ([{"name": "localness", "window": "layer"}], 74.88),
    "localness query": ([{"name": "localness", "window": "query"}], 74.87),
    "context global": ([{"name": "context", "kind": "global"}], 74.90),
    "context deep": ([{"name": "context", "kind": "deep"}], 74.98),
    "context deep_global": ([{"name": "context", "kind": "deep_global"}], 75.03),
    "relative": (
        [{"name": "relative", "side": side, "shared": True} for side in ("source", "target")],
        74.88,
    ),
}
"""Variants of the recipe, and millions of parameters."""


def base_model(variants, pieces=60_000):
    syntax = SyntaxRecipe.model_validate({"variants": tuple(variants)})
    # no memory is filled: the parameters have shapes only
    with torch.device("meta"):
        return build(ModelRecipe(size="base"), syntax, source_pieces=pieces, target_pieces=pieces)


@pytest.mark.parametrize("system", PUBLISHED)
def test_a_system_has_as_many_weights_as_published(system):
    variants, millions = PUBLISHED[system]
    count = sum(parameter.numel() for parameter in base_model(variants).parameters())
    # whole ten thousands, so that nothing is rounded: 74,858,496 is 74.85
    assert count // 10_000 == round(100 * millions)


def test_the_parameters_of_each_layer_with_context():
    # head size 64: two U of 64 · (64 n), and four vectors of 64
    expected = {"global": [1] * 6, "deep": [0, 1, 2, 3, 4, 5], "deep_global": [1, 2, 3, 4, 5, 6]}
    for kind, layers in expected.items():
        variants = base_model([{"name": "context", "kind": kind}], pieces=10).variants["source"]
        counts = [sum(p.numel() for p in variant.parameters()) for variant in variants]
        assert counts == [2 * 64 * 64 * n + 4 * 64 if n else 0 for n in layers]
