"""Localness against a slow loop written from the paper's equation, by hand, and against the
published sizes."""

import math

import pytest
import torch
from attending import (
    alike_terms,
    assert_same_with_gradients,
    padding_mask,
    random_terms,
    slow_attend,
)
from small import random_batch, small_model

from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.localness import Localness

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)
LENGTHS = (1, 5, 9)
WINDOWS = ["fixed", "layer", "query"]
TERMS = random_terms(3, 2, max(LENGTHS), 4, padding_mask(*LENGTHS), seed=1)


def terms_as(dtype):
    """Copy the terms, as leaves of another type."""
    return TERMS.edit(
        **{
            name: getattr(TERMS, name).detach().to(dtype).requires_grad_()
            for name in ("q", "k", "v")
        }
    )


def made(window, fill=torch.nn.init.zeros_, **options):
    variant = Localness(PLACE, window=window, **options)
    for parameter in variant.parameters():
        fill(parameter)
    return variant


def drawn(window, **options):
    """Draw parameters at which no sigmoid is saturated and no window is at its lower bound."""
    torch.manual_seed(2)
    return made(window, torch.nn.init.normal_, **options)


def slow_share(x, inner, outer):
    """Sigmoid of (U tanh(W x + b) + c) for one vector, sums written out."""
    hidden = [
        torch.tanh((row * x).sum() + bias)
        for row, bias in zip(inner.weight, inner.bias, strict=True)
    ]
    return 1 / (
        1
        + torch.exp(
            -sum(u * h for u, h in zip(outer.weight[0], hidden, strict=True)) - outer.bias[0]
        )
    )


def slow_localness(terms, variant):
    """Softmax of q · k / √d - (j - P)² / 2σ², σ = D / 2; without padding."""

    def score(b, h, i, j):
        q, k, length = terms.q[b, h], terms.k[b, h], LENGTHS[b]
        centre = length * slow_share(q[i], variant.w_p, variant.u_p)
        if variant.window == "fixed":
            window = variant.size
        elif variant.window == "layer":
            window = length * slow_share(sum(k[:length]) / length, variant.w_d, variant.u_d)
        else:
            window = length * slow_share(q[i], variant.w_p, variant.u_d)
        return (q[i] * k[j]).sum() / math.sqrt(4) - (j - centre) ** 2 / (2 * (window / 2) ** 2)

    return slow_attend(terms, score, lengths=LENGTHS)


@pytest.mark.parametrize("window", WINDOWS)
def test_localness_equals_loops_over_the_equation_gradients_too(window):
    variant, terms = drawn(window, size=3.0).double(), TERMS
    output = attend(variant.edit(terms, Syntax({}))) * terms.mask.mT
    leaves = [terms.q, terms.k, terms.v, *variant.parameters()]
    gradients = assert_same_with_gradients(output, slow_localness(terms, variant), leaves)
    assert all(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("window", ["layer", "query"])
def test_with_weights_of_0_every_query_looks_at_the_middle_through_half_the_sentence(window):
    # sigmoid(0) = 1/2: of 8 pieces P = 4 and D = 4, so σ = 2 and G_j = -(j - 4)² / 8
    bias = made(window).edit(alike_terms(torch.randn(1, 2, 8, 4)), Syntax({})).bias
    row = torch.tensor([-2.0, -1.125, -0.5, -0.125, 0.0, -0.125, -0.5, -1.125])
    torch.testing.assert_close(bias, row.expand(1, 2, 8, 8))


def test_a_fixed_window_of_10_pieces_has_a_deviation_of_5():
    bias = made("fixed").edit(alike_terms(torch.randn(1, 2, 8, 4)), Syntax({})).bias
    # P = 4: G_0 = -16 / 50, G_7 = -9 / 50
    torch.testing.assert_close(bias[0, 0, 0, [0, 4, 7]], torch.tensor([-0.32, 0.0, -0.18]))


@pytest.mark.parametrize(("window", "weights"), [("fixed", 4225), ("layer", 8450), ("query", 4290)])
def test_a_layer_of_the_base_size_has_as_many_weights_as_published(window, weights):
    # Deps-SAN, table 1: 74.87, 74.88 and 74.87 million with three such layers, cut after two
    # digits; without, 74.858
    place = Place("source", layer=1, heads=8, model_dim=512, head_dim=64)
    variant = Localness(place, window=window)
    assert sum(parameter.numel() for parameter in variant.parameters()) == weights


def test_what_is_new_begins_with_xavier_matrices_and_biases_of_0():
    place = Place("source", layer=1, heads=8, model_dim=512, head_dim=64)
    for name, parameter in Localness(place, window="layer").named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        else:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert 0.8 * bound < parameter.abs().max() <= bound, name


def test_heads_with_the_same_query_have_the_same_window():
    q = torch.randn(1, 1, 6, 4).expand(1, 2, 6, 4)
    bias = drawn("query").edit(alike_terms(q), Syntax({})).bias
    torch.testing.assert_close(bias[:, 0], bias[:, 1])
    assert not torch.allclose(bias[:, :, 0], bias[:, :, 1])


@pytest.mark.parametrize("window", WINDOWS)
def test_what_stands_in_padding_does_not_matter(window):
    variant, terms = drawn(window), terms_as(torch.float32)
    real = terms.mask.mT
    changed = terms.edit(q=torch.where(real, terms.q, 100.0), k=torch.where(real, terms.k, 100.0))
    one, two = (variant.edit(each, Syntax({})).bias * real for each in (terms, changed))
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("window", ["layer", "query"])
def test_a_window_never_closes(window):
    variant = made(window)
    torch.nn.init.constant_(variant.u_d.bias, -200.0)
    terms = terms_as(torch.float32)
    edited = variant.edit(terms, Syntax({}))
    # one piece, P = 1/2, D = 0.1, σ = 0.05: G = -(0 - 1/2)² / 0.005 = -50
    torch.testing.assert_close(edited.bias[0, :, 0, 0], torch.tensor([-50.0, -50.0]))
    attend(edited).square().sum().backward()
    tensors = [terms.q, terms.k, terms.v, *variant.parameters()]
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in tensors)


@pytest.mark.parametrize("window", WINDOWS)
def test_autocast_does_not_round_centres_and_windows(window):
    variant, terms = drawn(window), terms_as(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        bias = variant.edit(terms, Syntax({})).bias
    assert bias.dtype == torch.float32
    expected = variant.edit(terms.edit(q=terms.q.float(), k=terms.k.float()), Syntax({})).bias
    torch.testing.assert_close(bias, expected)


def test_it_stands_on_all_heads_of_the_first_three_layers_and_reads_no_parse():
    model = small_model({"name": "localness"}, encoder_layers=4)
    owned = [
        [variant.place.heads for variant in layer.self_attention.variants]
        for layer in model.encoder
    ]
    assert owned == [[4], [4], [4], []]
    assert model.reads("source") == model.learns("source") == ()


@pytest.mark.parametrize("window", WINDOWS)
def test_every_window_trains_in_a_model(window):
    model = small_model({"name": "localness", "layers": [1, 2], "window": window}).train()
    _, batch = random_batch(model, [1, 9, 4])
    model(batch).states.square().sum().backward()
    for variant in model.variants["source"]:
        for name, parameter in variant.named_parameters():
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.any(), name
