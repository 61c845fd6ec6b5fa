"""The one-sweep loss against torch's own and against the formula."""

import pytest
import torch
import torch.nn.functional as F
from attending import assert_same_with_gradients

from synmt.model.seq2seq import Products
from synmt.speed import fast
from synmt.training import loss as loss_module
from synmt.training.loss import smoothed_cross_entropy

wing = fast("modules")
PRODUCTS = [Products(), *([wing.FastProducts()] if wing else [])]


def draw(rows=17, pieces=11, dim=5):
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(rows, dim, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(pieces, dim, generator=generator, dtype=torch.float64, requires_grad=True)
    return states, weight, torch.randint(pieces, (rows,), generator=generator)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("block", [1, 40, 1 << 21])
@pytest.mark.parametrize("products", PRODUCTS)
def test_equals_the_usual_two_steps_gradients_too(smoothing, block, products, monkeypatch):
    monkeypatch.setitem(loss_module.BLOCKS, "cpu", block)
    states, weight, targets = draw()
    total, nll = smoothed_cross_entropy(
        states, weight, targets, smoothing=smoothing, products=products
    )
    usual = F.cross_entropy(states @ weight.T, targets, label_smoothing=smoothing, reduction="sum")
    assert_same_with_gradients(total, usual, (states, weight))
    torch.testing.assert_close(
        nll, F.cross_entropy(states.detach() @ weight.T.detach(), targets, reduction="sum")
    )


@pytest.mark.parametrize("rows", [5, 16, 100])
@pytest.mark.parametrize("products", PRODUCTS)
def test_comes_near_in_half_precision_whatever_the_number_of_rows(rows, products, monkeypatch):
    monkeypatch.setitem(loss_module.BLOCKS, "cpu", 700)
    states, weight, targets = draw(rows)
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = smoothed_cross_entropy(
            states.float(), weight.float(), targets, smoothing=0.1, products=products
        )
    usual = F.cross_entropy(states @ weight.T, targets, label_smoothing=0.1, reduction="sum")
    near = {"rtol": 1e-2, "atol": 5e-2}
    torch.testing.assert_close(total.double(), usual, **near)
    gradients = (torch.autograd.grad(loss, (states, weight)) for loss in (total, usual))
    torch.testing.assert_close(*gradients, **near)


def test_no_rows_have_no_loss():
    total, nll = smoothed_cross_entropy(
        torch.zeros(0, 5), torch.ones(3, 5), torch.zeros(0, dtype=int), smoothing=0.1
    )
    assert float(total) == float(nll) == 0.0


@pytest.mark.parametrize("wanted", [True, False])
def test_gradients_cost_two_more_products_and_are_computed_only_where_they_are_needed(
    wanted, monkeypatch
):
    products = []
    for name in ("multiply", "add_outer"):
        real = getattr(Products, name)
        monkeypatch.setattr(
            Products, name, lambda *args, real=real: products.append(1) or real(*args)
        )
    states, weight, targets = draw()
    with torch.set_grad_enabled(wanted):
        total, _ = smoothed_cross_entropy(states, weight, targets, smoothing=0.1)
    # one block: its logits, and the gradients of the states and of the weight
    assert len(products) == (3 if wanted else 1)
    assert total.requires_grad is wanted
    products.clear()
    smoothed_cross_entropy(states.detach(), weight.detach(), targets, smoothing=0.1)
    assert len(products) == 1
