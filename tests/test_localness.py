"""Localness against a slow loop written from the paper's equation, by hand, and against the published sizes."""

import math

import pytest
import torch
from small import random_batch, small_model

from synmt.errors import UsageError
from synmt.model.attention import Terms, attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.localness import Localness

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)
LENGTHS = (1, 5, 9)
WINDOWS = ["fixed", "layer", "query"]


def drawn(window, **options):
    """Draw parameters at which no sigmoid is saturated and no window is at its lower bound."""
    torch.manual_seed(2)
    variant = Localness(PLACE, window=window, **options)
    for parameter in variant.parameters():
        torch.nn.init.normal_(parameter)
    return variant


def zeroed(window, **options):
    variant = Localness(PLACE, window=window, **options)
    for parameter in variant.parameters():
        torch.nn.init.zeros_(parameter)
    return variant


def random_terms(dtype=torch.float64):
    length = max(LENGTHS)
    mask = (torch.arange(length) < torch.tensor(LENGTHS)[:, None])[:, None, None]  # (B, 1, 1, T)
    torch.manual_seed(1)
    q, k, v = (torch.randn(len(LENGTHS), 2, length, 4, dtype=dtype).requires_grad_() for _ in range(3))
    return Terms(torch.zeros(len(LENGTHS), length, 8), q, k, v, mask)


def slow_share(x, inner, outer):
    """Sigmoid of (U tanh(W x + b) + c) for one vector, sums written out."""
    hidden = [torch.tanh((row * x).sum() + bias) for row, bias in zip(inner.weight, inner.bias, strict=True)]
    return 1 / (1 + torch.exp(-sum(u * h for u, h in zip(outer.weight[0], hidden, strict=True)) - outer.bias[0]))


def slow_localness(q, k, v, variant):
    """One sentence without padding, one head: (T, d) -> (T, d); softmax of q · k / √d - (j - P)² / 2σ², σ = D / 2."""
    length, outputs = len(q), []
    for i in range(length):
        centre = length * slow_share(q[i], variant.w_p, variant.u_p)
        if variant.window == "fixed":
            window = variant.size
        elif variant.window == "layer":
            window = length * slow_share(sum(k) / length, variant.w_d, variant.u_d)
        else:
            window = length * slow_share(q[i], variant.w_p, variant.u_d)
        sigma = window / 2
        powers = [
            torch.exp((q[i] * k[j]).sum() / math.sqrt(4) - (j - centre) ** 2 / (2 * sigma**2)) for j in range(length)
        ]
        outputs.append(sum(power / sum(powers) * v[j] for j, power in enumerate(powers)))
    return torch.stack(outputs)


@pytest.mark.parametrize("window", WINDOWS)
def test_localness_equals_loops_over_the_equation_gradients_too(window):
    variant = drawn(window, size=3.0).double()
    terms = random_terms()
    leaves = [terms.q, terms.k, terms.v, *variant.parameters()]
    output = attend(variant.edit(terms, Syntax({})))
    slope = torch.randn_like(output)

    total, own = torch.zeros(()), torch.zeros(())
    for row, length in enumerate(LENGTHS):
        for head in range(2):
            parts = (tensor[row, head, :length] for tensor in leaves[:3])
            expected = slow_localness(*parts, variant)
            torch.testing.assert_close(output[row, head, :length], expected)
            total = total + (expected * slope[row, head, :length]).sum()
            own = own + (output[row, head, :length] * slope[row, head, :length]).sum()
    for gradient, expected in zip(torch.autograd.grad(own, leaves), torch.autograd.grad(total, leaves), strict=True):
        assert expected.any()
        torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("window", ["layer", "query"])
def test_with_weights_of_0_every_query_looks_at_the_middle_through_half_the_sentence(window):
    # sigmoid(0) = 1/2: of 8 pieces P = 4 and D = 4, so σ = 2 and G_j = -(j - 4)² / 8
    q = torch.randn(1, 2, 8, 4)
    bias = zeroed(window).edit(Terms(torch.zeros(1, 8, 8), q, q, q), Syntax({})).bias
    row = torch.tensor([-2.0, -1.125, -0.5, -0.125, 0.0, -0.125, -0.5, -1.125])
    torch.testing.assert_close(bias, row.expand(1, 2, 8, 8))


def test_a_fixed_window_of_10_pieces_has_a_deviation_of_5():
    q = torch.randn(1, 2, 8, 4)
    bias = zeroed("fixed").edit(Terms(torch.zeros(1, 8, 8), q, q, q), Syntax({})).bias
    # P = 4: G_0 = -16 / 50, G_7 = -9 / 50
    torch.testing.assert_close(bias[0, 0, 0, [0, 4, 7]], torch.tensor([-0.32, 0.0, -0.18]))


@pytest.mark.parametrize(("window", "weights"), [("fixed", 4225), ("layer", 8450), ("query", 4290)])
def test_a_layer_of_the_base_size_has_as_many_weights_as_published(window, weights):
    # Deps-SAN, table 1: 74.87, 74.88 and 74.87 million with three such layers, cut after two digits; without, 74.858
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
    bias = drawn("query").edit(Terms(torch.zeros(1, 6, 8), q, q, q), Syntax({})).bias
    torch.testing.assert_close(bias[:, 0], bias[:, 1])
    assert not torch.allclose(bias[:, :, 0], bias[:, :, 1])


@pytest.mark.parametrize("window", WINDOWS)
def test_what_stands_in_padding_does_not_matter(window):
    variant, terms = drawn(window), random_terms(torch.float32)
    real = terms.mask[:, 0, 0, :, None].unsqueeze(1)
    changed = terms.edit(q=torch.where(real, terms.q, 100.0), k=torch.where(real, terms.k, 100.0))
    one, two = (variant.edit(each, Syntax({})).bias * real for each in (terms, changed))
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize("window", ["layer", "query"])
def test_a_window_never_closes(window):
    variant = zeroed(window)
    torch.nn.init.constant_(variant.u_d.bias, -200.0)
    terms = random_terms(torch.float32)
    edited = variant.edit(terms, Syntax({}))
    # one piece, P = 1/2, D = 0.1, σ = 0.05: G = -(0 - 1/2)² / 0.005 = -50
    torch.testing.assert_close(edited.bias[0, :, 0, 0], torch.tensor([-50.0, -50.0]))
    attend(edited).square().sum().backward()
    tensors = [terms.q, terms.k, terms.v, *variant.parameters()]
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in tensors)


@pytest.mark.parametrize("window", WINDOWS)
def test_autocast_does_not_round_centres_and_windows(window):
    variant, terms = drawn(window), random_terms(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        bias = variant.edit(terms, Syntax({})).bias
    assert bias.dtype == torch.float32
    expected = variant.edit(terms.edit(q=terms.q.float(), k=terms.k.float()), Syntax({})).bias
    torch.testing.assert_close(bias, expected)


def test_it_stands_on_all_heads_of_the_first_three_layers_and_reads_no_parse():
    model = small_model({"name": "localness"}, encoder_layers=4)
    owned = [[variant.place.heads for variant in layer.self_attention.variants] for layer in model.encoder]
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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 0}, "size: input should be greater than or equal to 0.1, not 0"),
        ({"size": -3}, "size: input should be greater than or equal to 0.1, not -3"),
        ({"window": "head"}, "'fixed', 'layer' or 'query'"),
        ({"side": "target"}, "cannot be used on the target side. side: source"),
        ({"sise": 10}, "Did you mean 'size'"),
        ({"layers": [3]}, "no layer 3"),
    ],
)
def test_a_recipe_that_localness_cannot_follow_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        small_model({"name": "localness", "layers": [1], **options})
