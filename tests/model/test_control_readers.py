"""A control changes something that a recipe reads, or the recipe is refused: every variant with
every control."""

import numpy as np
import pytest
import torch
from small import random_example, small_recipe

from synmt.data.batch import collate_signals
from synmt.errors import UsageError
from synmt.model.build import place_variants, variant_names
from synmt.recipe.data import ParserRecipe
from synmt.syntax.reading import reading_of
from synmt.training.tree_sources import tree_requirements

OF_LSTMS = {"latent_graph", "latent_tree"}
FEATURES = ("relation", "tag", "fine_tag", "lemma", "morphology", "subword", "case")
VARIANTS = [
    *({"name": name} for name in variant_names()),
    *(
        {"name": "dependency_distribution", "kind": kind}
        for kind in ("lda", "ldp", "udp", "udd", "uldd", "uudd")
    ),
    *({"name": "tag_embedding", "features": {name: 2}} for name in FEATURES),
    *({"name": "syntax_infused", "features": [name]} for name in FEATURES),
    {"name": "tag_embedding", "features": {"case": 2, "relation": 2}},
    {"name": "tag_embedding", "relations": ["det", "nsubj"]},
    {"name": "graph_relations", "labelled": False},
    {"name": "latent_graph", "supervised": True},
]
CONTROLS = [{"control": kind} for kind in ("random", "left", "right", "shuffled")]
REWIRED = [{"rewire": 0.5}, {"control": "gold", "rewire": 0.5}]


def recipe_of(variant, parser):
    sizes = {"encoder_heads": [16] * 6}
    model = {"architecture": "lstm"} if variant["name"] in OF_LSTMS else sizes
    return small_recipe(model=model, syntax={"variants": [variant]}, parser=parser)


def signals_of(variant):
    recipe = recipe_of(variant, {})
    layers = place_variants(recipe.model, recipe.syntax)["source"]
    return [signal for layer in layers for placed in layer for signal in placed.signals]


def refusal(variant, parser):
    try:
        tree_requirements(recipe_of(variant, parser))
    except UsageError as error:
        return str(error)
    return ""


def changes(variant, parser):
    """Return whether anything that the variant reads or learns of some sentences changes under a
    control."""
    signals, random = signals_of(variant), np.random.default_rng(3)
    examples = [random_example(words, random) for words in range(4, 12)]
    plain, controlled = (
        collate_signals(
            examples, "source", reading_of(signals, ParserRecipe(**{"control": "gold", **settings}))
        )
        for settings in ({}, parser)
    )
    return any(not torch.equal(plain[name], controlled[name]) for name in plain)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("parser", [*CONTROLS, *REWIRED], ids=str)
def test_a_control_is_refused_where_it_changes_nothing_and_only_there(variant, parser):
    assert (refusal(variant, parser) == "") == changes(variant, parser)
