"""An edit is blended in: nothing of it counts at first, all of it at the end."""

import pytest
import torch
from refusing import assert_refused
from small import random_batch, small_model
from variant_cases import DEFAULTS, EDITS_ATTENTION, redrawn, sizes, variant_of

from synmt.model.attention import softmax
from synmt.model.build import variant_class

CASES = [
    case
    for case in DEFAULTS
    if (case in EDITS_ATTENTION or variant_class(case.values[0]["name"]).edits_embeddings())
]
KINDS = [variant_class(case.values[0]["name"]) for case in CASES]
PAIRS = zip(CASES, KINDS, strict=True)
BLENDED = [case for case, kind in PAIRS if kind.can_blend and not kind.only_learns]


def model_of(recipe, **options):
    """Build the model of a case; its variants have drawn parameters, the same for all options."""
    model = small_model({**variant_of(recipe), **options}, **sizes(recipe))
    share = [variant.share for side in model.variants.values() for variant in side]
    redrawn(model)
    for parameter in filter(lambda one: one is not None, share):
        parameter.data.fill_(1.0)
    return model


@pytest.mark.parametrize("recipe", BLENDED)
def test_it_goes_from_the_plain_model_to_the_edited_one(recipe):
    edited, blended = model_of(recipe), model_of(recipe, warm=10)
    weights = dict(edited.named_parameters())
    for name, parameter in blended.named_parameters():
        if name in weights:
            parameter.data.copy_(weights[name].data)
    plain = small_model(**sizes(recipe)).eval()
    for name, parameter in plain.named_parameters():
        parameter.data.copy_(weights[name].data)
    _, batch = random_batch(edited, [5, 3, 8])

    def states(model, step=None):
        for variant in model.variants[recipe["side"]]:
            variant.enter_step(step or 1)
        with torch.no_grad():
            return model(batch).states

    torch.testing.assert_close(states(blended, 1), states(plain), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(states(blended, 11), states(edited), rtol=1e-5, atol=1e-5)
    assert torch.equal(states(blended, 99), states(blended, 11))
    half = states(blended, 6)
    assert not torch.allclose(half, states(plain), atol=1e-4)
    assert not torch.allclose(half, states(edited), atol=1e-4)


def test_factors_begin_at_one_biases_at_zero_and_weights_at_the_softmax():
    for name, options, read in (
        ("pascal", {}, lambda terms: terms.factor - 1),
        ("pascal", {"combine": "add"}, lambda terms: terms.bias),
        ("deps_san", {"combine": "weights"}, lambda terms: terms.normalize(terms.scores())),
    ):
        model = small_model({"name": name, "layers": [1], "heads": 2, "warm": 4, **options}).eval()
        _, batch = random_batch(model, [4, 6])
        attention = model.encoder[0].self_attention
        variant = model.variants["source"][0]
        mask = batch.source.mask[:, None, None]
        x = torch.randn(*batch.source.ids.shape, model.output_weight.size(1))
        syntax = model.syntax("source", batch.source_signals, batch.source.ids)

        def of_share(step, variant=variant, attention=attention, x=x, syntax=syntax, mask=mask):
            variant.enter_step(step)
            return attention.terms(x, mask, syntax)[0]

        whole = of_share(5)
        base = softmax(whole.scores()) if name == "deps_san" else 0.0
        expected = (read(whole) + base) / 2
        torch.testing.assert_close(read(of_share(3)), expected)


@pytest.mark.parametrize(
    "variant",
    [
        {"name": "deps_san", "window": 2.0},
        {"name": "distance_mask"},
        {"name": "scene_mask"},
        {"name": "tree_planting", "layers": [1]},
    ],
    ids=lambda variant: variant["name"],
)
def test_a_mask_and_a_loss_cannot_be_blended_in(variant):
    assert_refused("cannot be blended in: it hides pieces", small_model, {**variant, "warm": 5})


def test_the_share_is_stored_with_the_weights_and_is_not_trained():
    model = small_model({"name": "pascal", "layers": [1], "warm": 4})
    share = dict(model.named_parameters())["encoder.0.self_attention.variants.0.share"]
    assert not share.requires_grad
    assert "share" not in " ".join(dict(small_model({"name": "pascal"}).named_parameters()))
