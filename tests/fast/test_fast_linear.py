"""Linear maps by oneDNN or MKL, and repeated ones: those of torch, with their gradients."""

import pytest
import torch
import torch.nn.functional as F
from attending import assert_same_with_gradients

pytest.importorskip("synmt.fast")

from synmt.fast import linear as linears
from synmt.fast.feed_forward import dropped_relu
from synmt.fast.linear import FastLinear, linear, pad_rows, product, repeated


@pytest.mark.parametrize("shape", [(1, 8), (5, 8), (2, 3, 8), (2, 1, 3, 8)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mkl", [True, False])
def test_the_linear_map_equals_that_of_torch_gradients_too(shape, bias, mkl, monkeypatch):
    monkeypatch.setattr(linears, "_MKL_IS_FASTER", mkl)
    torch.manual_seed(0)
    # a part of a larger tensor and a transposed one: what comes in is not always contiguous
    for x in (
        torch.randn(shape),
        torch.randn(*shape[:-1], 16)[..., ::2],
        torch.randn(shape[::-1]).permute(*reversed(range(len(shape)))),
    ):
        weight, offset = torch.randn(6, 8), torch.randn(6) if bias else None
        inputs = [t.requires_grad_() for t in (x, weight, offset) if t is not None]
        assert_same_with_gradients(linear(*inputs), F.linear(*inputs), inputs, atol=1e-5, rtol=1e-5)
        with torch.inference_mode():
            torch.testing.assert_close(linear(*inputs), F.linear(*inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_the_linear_map_leaves_out_gradients_that_nobody_wants(frozen):
    tensors = {"x": torch.randn(3, 8), "weight": torch.randn(6, 8), "bias": torch.randn(6)}
    for name, tensor in tensors.items():
        tensor.requires_grad_(name != frozen)
    linear(**tensors).sum().backward()
    assert [name for name, tensor in tensors.items() if tensor.grad is None] == [frozen]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers_go_through_torch(dtype):
    layer = FastLinear(8, 6).to(dtype)
    x = torch.randn(3, 8, dtype=dtype)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_no_rows_give_no_rows_and_a_build_without_onednn_works(monkeypatch):
    layer = FastLinear(8, 6)
    assert layer(torch.zeros(0, 8)).shape == (0, 6)
    x = torch.randn(3, 8)
    with torch.no_grad():
        ours, exact = layer(x), product(x, layer.weight)
        monkeypatch.setattr(linears, "_ONEDNN", set())
        torch.testing.assert_close(ours, layer(x))
        torch.testing.assert_close(exact, product(x, layer.weight))


@pytest.mark.parametrize("shape", [(1, 8), (15, 8), (3, 11, 8), (7, 5, 8), (4, 16, 8), (1000, 8)])
def test_rows_that_fill_up_a_half_precision_product_change_neither_it_nor_its_gradients(shape):
    layer, x = FastLinear(8, 6), torch.randn(shape, requires_grad=True)
    leaves = (x, *layer.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        ours, relu = layer(x), dropped_relu(layer, x)
        with torch.no_grad():
            assert torch.equal(ours, layer(x))
    assert ours.dtype == torch.bfloat16
    usual = F.linear(*(t.bfloat16().double() for t in leaves))
    # of the few values next to 0, rounding may change the sign, and with it whether the gradient
    # passes
    for half, exact in ((ours, usual), (relu, ours.detach().gt(0) * usual)):
        torch.testing.assert_close(half.double(), exact, rtol=1e-2, atol=1e-2)
        slope = torch.randn_like(exact)
        gradients = (torch.autograd.grad(y, leaves, slope.to(y), True) for y in (half, exact))
        for found, wanted in zip(*gradients, strict=True):
            assert (found - wanted).norm() <= 1e-2 * wanted.norm()


def test_half_precision_products_have_few_numbers_of_rows_and_little_to_fill_up(monkeypatch):
    monkeypatch.setattr(linears, "onednn_applies", lambda x, dtype: True)
    rows = {count: len(pad_rows(torch.ones(count, 1), torch.bfloat16)) for count in range(1, 5000)}
    assert len(set(rows.values())) < 120
    assert all(count <= room <= max(count + 15, count * 17 / 16) for count, room in rows.items())
    assert len(pad_rows(torch.ones(1999, 1), torch.float32)) == 1999
    full = pad_rows(torch.ones(17, 2), torch.bfloat16)
    assert full[:17].all()
    assert not full[17:].any()


@pytest.mark.parametrize("mkl", [True, False])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("narrow", "wide"), [(3, 5), (5, 3), (2, 16), (16, 2)])
def test_products_of_gradients_equal_those_of_torch(mkl, kind, narrow, wide, monkeypatch):
    monkeypatch.setattr(linears, "_MKL_IS_FASTER", mkl)
    slope, x = torch.randn(7, narrow).to(kind), torch.randn(7, wide).to(kind)
    usual = slope.double().T @ x.double()  # (D', D)
    total = torch.ones(narrow, wide, dtype=torch.promote_types(kind, torch.float32))
    linears.add_outer_product(total, slope, x)
    rtol, atol = (0.02, 0.05) if kind == torch.bfloat16 else (1e-5, 1e-5)
    for found, wanted in ((linears.outer_product(slope, x), usual), (total, 1 + usual)):
        torch.testing.assert_close(found.double(), wanted, rtol=rtol, atol=atol)


@pytest.fixture
def repeating():
    """Make a projection and an input, both in float64."""
    torch.manual_seed(0)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    return FastLinear(3, 3).double(), x


def test_a_repeated_projection_has_the_gradient_of_all_its_uses(repeating):
    projection, x = repeating
    use = repeated(projection)
    outputs = use(use(x).tanh()), projection(projection(x).tanh())
    assert_same_with_gradients(*outputs, (x, *projection.parameters()))


def test_a_pass_that_stops_before_the_weight_leaves_nothing_to_the_next(repeating):
    projection, x = repeating
    use, slope = repeated(projection), torch.autograd.grad
    total = use(use(x)).square().sum()
    slope(total, x, retain_graph=True)
    expected = slope(projection(projection(x)).square().sum(), projection.weight)[0]
    for _ in range(2):
        again = slope(total, projection.weight, retain_graph=True)[0]
        torch.testing.assert_close(again, expected)


def test_a_repeated_projection_says_that_it_has_no_second_gradient():
    projection, x = FastLinear(3, 3), torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(repeated(projection)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
