"""Dropout from masks of 16 bits an element: its probabilities, its gradients, and what is computed
in one pass."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attending import assert_same_with_gradients

pytest.importorskip("synmt.fast")

from synmt.fast import attention as by_products_module
from synmt.fast import dropout as module
from synmt.fast.attention import attend_fast, masked_attention
from synmt.fast.dropout import add_dropped, dropout, scaled_mask
from synmt.fast.feed_forward import dropped_relu
from synmt.fast.linear import FastLinear
from synmt.fast.modules import FastDropout
from synmt.model.attention import Pairs, Terms, attend_written_out

SHAPE = torch.Size((300, 501))


def mask_of(probability=0.1, seed=None):
    if seed is not None:
        torch.manual_seed(seed)
    return scaled_mask(SHAPE, probability, torch.float64)


def assert_near(mean, deviation, count):
    """Check a mean of independent numbers: four of its standard deviations."""
    assert abs(float(mean)) < 4 * deviation / count**0.5 + 1 / count


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 1 / 3, 2**-16])
def test_elements_are_dropped_with_the_probability_and_the_mean_stays(probability):
    mask, scale = mask_of(probability, 1)
    deviation = (probability * (1 - probability)) ** 0.5
    assert_near((1 - mask).mean() - probability, deviation, mask.numel())
    assert scale == pytest.approx(1 / (1 - probability), rel=2**-16)
    assert set(mask.unique().tolist()) <= {0.0, 1.0}


def test_elements_are_independent_of_each_other_of_other_seeds_and_of_earlier_masks():
    # seeds of neighbouring steps and processes, as the trainer makes them
    keys = ((1, 7, 0), (1, 8, 0), (1, 7, 1))
    seeds = [int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) >> 1 for key in keys]
    step, process, first = (mask_of(seed=seed)[0] - 0.9 for seed in [*seeds[1:], seeds[0]])
    later = mask_of()[0] - 0.9
    assert torch.equal(first, mask_of(seed=seeds[0])[0] - 0.9)
    lagged = [first.flatten().roll(lag).view(SHAPE) for lag in (1, 2, 3, 4, 5, 501)]
    for other in (step, process, later, *lagged):
        assert_near((first * other).mean(), 0.1 * 0.9, first.numel())


def test_what_is_kept_is_scaled_and_its_gradient_too():
    x = torch.randn(50, 8, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.5)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(y, x * slope)
    assert slope.unique().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_sum_with_dropout_equals_two_steps(kind):
    x, y = torch.randn(40, 8, requires_grad=True), torch.randn(40, 8).to(kind).requires_grad_()
    fused = seeded(add_dropped, x, y, 0.25)
    slow = x + seeded(dropout, y.float(), 0.25)
    assert_same_with_gradients(fused, slow, (x, y), rtol=1e-6, atol=1e-6)


def seeded(function, *given):
    """Call a function after the seed that all have."""
    torch.manual_seed(1)
    return function(*given)


def test_no_dropout_draws_no_numbers_and_a_certain_one_leaves_finite_numbers():
    y = torch.ones(2, 3)
    before = torch.random.get_rng_state()
    assert dropout(y, 0.0) is y
    assert FastDropout(0.9).eval()(y) is y
    assert torch.equal(add_dropped(y, y, 0.0), 2 * y)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert dropout(torch.ones(1000), 0.9999999).isfinite().all()
    assert dropout(y[:0], 0.5).shape == (0, 3)


def test_where_masks_are_not_drawn_here_torch_draws_them(monkeypatch):
    monkeypatch.setattr(module, "draws_fast", lambda x: False)
    x = torch.randn(20, 8)
    theirs = seeded(F.dropout, x, 0.3)
    assert torch.equal(seeded(dropout, x, 0.3), theirs)
    assert torch.equal(seeded(add_dropped, x, x, 0.3), x + theirs)


@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_inner_layer_equals_its_three_steps_gradients_too(probability, precision):
    layer, x = FastLinear(8, 12), torch.randn(4, 5, 8, requires_grad=True)
    exact = 1e-5 if precision == torch.float32 else 2e-2
    with torch.autocast("cpu", precision, enabled=precision != torch.float32):
        fused = seeded(dropped_relu, layer, x, probability)
        inner = F.relu(F.linear(x, layer.weight, layer.bias))
        steps = seeded(dropout, inner, probability)
    assert fused.dtype == steps.dtype == precision
    assert_same_with_gradients(
        fused.float(), steps.float(), (x, *layer.parameters()), rtol=exact, atol=exact
    )


def attention_terms(kind=torch.float64):
    torch.manual_seed(0)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    # heads are views of one projection
    q, k, v = (
        torch.randn(2, t, 3, 4, dtype=kind).transpose(1, 2).requires_grad_() for t in (4, 5, 5)
    )
    return Terms(q, q, k, v, mask)


EDITS = {"factor": (2, 1, 4, 5), "bias": (2, 3, 4, 5)}


def edited(terms, names):
    """Fill fixed terms, which need no gradient."""
    return terms.edit(**{name: torch.randn(EDITS[name], dtype=terms.q.dtype) for name in names})


def by_products(terms, rate):
    return masked_attention(
        terms.q, terms.k, terms.v, terms.mask, rate, factor=terms.factor, bias=terms.bias
    )


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("names", [(), ("factor",), ("bias",), ("factor", "bias")])
def test_attention_by_products_equals_the_equation_gradients_too(rate, masked, names):
    terms = edited(attention_terms(), names)
    terms = terms if masked else terms.edit(mask=None)
    ours, _ = seeded(by_products, terms, rate)
    slow = seeded(attend_written_out, terms, rate, dropout)
    assert_same_with_gradients(ours, slow, (terms.q, terms.k, terms.v))


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("names", [(), ("factor",)])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 5), (2, 1, 4, 5), (1, 1, 1, 1)])
def test_a_bias_and_relative_values_get_their_gradients(shape, names, rate):
    kind = {"dtype": torch.float64, "requires_grad": True}
    table, bias = torch.randn(6, 4, **kind), torch.randn(shape, **kind)
    relative = Pairs(table, torch.arange(20).view(4, 5) % 6)
    terms = edited(attention_terms(), names).edit(bias=bias, relative=relative)
    ours = seeded(attend_fast, terms, rate)
    slow = seeded(attend_written_out, terms, rate, dropout)
    assert_same_with_gradients(ours, slow, (terms.q, terms.k, terms.v, bias, table))


@pytest.mark.parametrize("learned", [True, False])
def test_only_a_fixed_factor_goes_to_attention_by_products(learned, monkeypatch):
    by_products = Mock(side_effect=lambda *heads, **terms: heads[:2])
    monkeypatch.setattr(by_products_module, "masked_attention", by_products)
    terms = edited(attention_terms(), ["factor"])
    factor = terms.factor.requires_grad_(learned)
    output = attend_fast(terms, 0.3)
    assert by_products.called is not learned
    if learned:
        assert torch.autograd.grad(output.sum(), factor)[0].any()


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_attention_in_half_precision_is_near_that_in_full(rate):
    bias = torch.randn(2, 1, 4, 5, requires_grad=True)
    full = attention_terms(torch.float32).edit(bias=bias)
    half = full.edit(q=full.q.bfloat16(), k=full.k.bfloat16(), v=full.v.bfloat16())
    ours = seeded(attend_fast, half, rate).float()
    slow = seeded(attend_written_out, full, rate, dropout)
    leaves = (full.q, full.k, full.v, bias)
    assert_same_with_gradients(ours, slow, leaves, rtol=0.05, atol=0.05)
