"""Linear maps in int8 compute their equation, one row at a time, and each row is rounded by at most
half a step."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("synmt.fast")

from synmt.fast import quantized
from synmt.fast.quantized import QuantizedLinear, multiplies_int8, quantize_rows

needs_int8 = pytest.mark.skipif(
    not multiplies_int8(), reason="this processor has no instructions for int8"
)
HAS_VNNI = quantized._has_vnni()


@pytest.fixture(params=[127, pytest.param(64, id="without VNNI")])
def largest_weight(request, monkeypatch):
    if request.param == 127 and not HAS_VNNI:
        pytest.skip("this processor has no VNNI")
    monkeypatch.setattr(quantized, "_has_vnni", lambda: request.param == 127)
    return request.param


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def written_out(x, weight, bias, largest_weight):
    """Compute y_mn = s_m t_n Σ_k q_mk w_nk + b_n in exact numbers."""
    x, weight = x.double(), weight.double()
    s = x.abs().amax(1, keepdim=True) / 127  # (M, 1)
    t = weight.abs().amax(1, keepdim=True) / largest_weight  # (N, 1)
    return s * t.T * ((x / s).round() @ (weight / t).round().T) + bias


@needs_int8
@pytest.mark.parametrize("rows", [1, 2, 5, 33])
@pytest.mark.parametrize(("inner", "outer"), [(1, 1), (3, 7), (16, 5), (24, 130), (257, 3)])
def test_it_computes_its_equation(rows, inner, outer, largest_weight):
    x, weight, bias = draw(rows, inner), draw(outer, inner, seed=1), draw(outer, seed=2)
    x[0] *= 1e4
    x[-1] *= 1e-4
    before, residual = x.clone(), draw(rows, outer, seed=3)
    layer, expected = QuantizedLinear(weight, bias), written_out(x, weight, bias, largest_weight)
    atol = 1e-4 * expected.abs().max().item() / 127
    without = QuantizedLinear(weight, None)(x)
    for found, wanted in (
        (layer(x), expected),
        (layer.relu(x), expected.relu()),
        (layer.added_to(residual, x), residual.double() + expected),
        (without, written_out(x, weight, 0, largest_weight)),
    ):
        torch.testing.assert_close(found.double(), wanted, atol=atol, rtol=1e-5)
    assert torch.equal(x, before)


@needs_int8
def test_it_computes_where_gradients_are_recorded_without_one_of_its_own():
    x, weight, bias, residual = draw(3, 8), draw(4, 8, seed=1), draw(4, seed=2), draw(3, 4, seed=3)
    layer = QuantizedLinear(weight, bias)
    with torch.no_grad():
        wanted = layer.added_to(residual, x)
    found = layer.added_to(residual.requires_grad_(), x.requires_grad_())
    assert torch.equal(found, wanted)
    found.sum().backward()
    assert x.grad is None
    assert torch.equal(residual.grad, torch.ones(3, 4))


@needs_int8
def test_the_largest_sums_are_exact(largest_weight):
    signs = torch.tensor([[1.0], [-1.0]])
    found = QuantizedLinear(signs.expand(2, 4096).clone(), None)(signs.expand(2, 4096).clone())
    torch.testing.assert_close(found, 4096 * signs @ signs.T)


@needs_int8
def test_a_row_does_not_depend_on_the_other_rows():
    layer, x = QuantizedLinear(draw(40, 64, seed=1), draw(40, seed=2)), draw(50, 64)
    x[7] *= 1000
    together = layer(x)
    for count in (1, 2, 3, 17):
        assert torch.equal(torch.cat([layer(part) for part in x.split(count)]), together)


@pytest.mark.parametrize("limit", [127, 64])
def test_rounding_is_half_a_step_at_most(limit):
    x = torch.cat((draw(20, 33), torch.zeros(1, 33), 1e-30 * draw(1, 33), 1e30 * draw(1, 33)))
    integers, scale = quantize_rows(x, limit)
    assert integers.dtype == torch.int8
    assert integers.abs().amax(1).tolist() == [limit] * 20 + [0] + [limit] * 2
    assert ((integers * scale - x).abs() <= 0.501 * scale).all()


@pytest.mark.parametrize("saturated", [True, False])
def test_a_processor_whose_sums_saturate_is_found_out(saturated, monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx2_supported", lambda: True)
    sums = 2.0 if saturated else 64.0

    class Layer:
        def __init__(self, weight, bias):
            self.sign = weight.sign()[0, 0]

        def __call__(self, x):
            return self.sign * x[:, :1].sign() * sums

    monkeypatch.setattr(quantized, "QuantizedLinear", Layer)
    assert multiplies_int8.__wrapped__() is not saturated
