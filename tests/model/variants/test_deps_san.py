"""Deps-SAN against a loop over its equation, and its two sparsings against their definitions."""

import math

import pytest
import torch
from attending import PLACE, alike_terms, assert_attends, drawn, random_trees

from synmt.model.variant import Syntax
from synmt.model.variants.deps_san import DepsSan, density

STEPS = torch.tensor([[[0, 1, 4], [1, 0, 2], [4, 2, 0]]])


def edited(variant, distances=STEPS, **changes):
    """Edit empty terms of two heads."""
    terms = alike_terms(torch.zeros(len(distances), 2, distances.size(1), 4)).edit(**changes)
    return variant.edit(terms, Syntax({"distance": distances}))


@pytest.mark.parametrize("combine", ["multiply", "add", "weights"])
@pytest.mark.parametrize(("variance", "window"), [(1, None), (4, 2), (32, 0), (0.5, 1)])
def test_deps_san_equals_loops_over_the_equation(variance, window, combine):
    def closeness(pair):
        """N(d; 0, σ²) = exp(-d² / 2σ²) / √(2πσ²)."""
        return math.exp(-(pair.distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)

    def score(pair):
        if window is not None and pair.distance > window:
            return torch.tensor(-math.inf)
        edits = {"multiply": pair.plain * closeness(pair), "add": pair.plain + closeness(pair)}
        return edits.get(combine, pair.plain)

    def value(pair):
        return pair.v * (closeness(pair) if combine == "weights" else 1)

    variant = drawn(DepsSan, variance=variance, window=window, combine=combine)
    assert_attends(variant, random_trees(int(variance)), score, value)


def test_resampling_has_its_rate_draws_anew_and_is_one_draw_for_all_heads():
    variant, distances = DepsSan(PLACE, resample=0.1).train(), torch.ones(20, 30, 30, dtype=int)
    torch.manual_seed(0)
    factor, other = (edited(variant, distances).factor for _ in range(2))
    assert factor.shape == (20, 1, 30, 30)
    filled = factor == density(torch.tensor(6), 1.0)
    assert (factor[~filled] == density(torch.tensor(1), 1.0)).all()
    # 18,000 entries: the rate is 0.1 ± 0.0022 (one standard deviation)
    assert abs(filled.double().mean().item() - 0.1) < 0.009
    assert not torch.equal(filled[0], filled[1])
    assert not torch.equal(factor, other)


@pytest.mark.parametrize(("combine", "blank"), [("multiply", "factor"), ("add", "bias")])
def test_in_training_all_distances_are_resampled_but_the_window_looks_at_the_tree(combine, blank):
    variant = DepsSan(PLACE, resample=1.0, fill=2, variance=4, window=1, combine=combine)
    for training in (True, False):
        terms = edited(variant.train(training))
        expected = density(torch.full_like(STEPS, 2) if training else STEPS, 4)
        torch.testing.assert_close(getattr(terms, blank)[:, 0], expected)
        assert torch.equal(terms.mask[:, 0], STEPS <= 1)


def test_the_window_does_not_open_what_is_masked():
    mask = torch.tensor([True, True, False])[None, None, None]
    assert torch.equal(
        edited(DepsSan(PLACE, window=2), mask=mask).mask[0], (STEPS <= 2) & mask[0, 0]
    )
