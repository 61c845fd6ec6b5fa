"""Deps-SAN against a slow loop written from the paper's equation, and its two sparsings against
their definitions."""

import math
from collections import deque

import numpy as np
import pytest
import torch
from attending import (
    alike_terms,
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    slow_attend,
    with_eos,
)
from small import MONKEY, MONKEY_WORD_OF, random_batch, small_model

from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.deps_san import DepsSan, density
from synmt.syntax.signals import DISTANCE

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def distances_of_monkey():
    return torch.from_numpy(DISTANCE.compute(MONKEY, np.append(MONKEY_WORD_OF, -1)))[None]


def edited(variant, distances, **changes):
    """Edit empty terms of two heads."""
    terms = alike_terms(torch.zeros(len(distances), 2, distances.size(1), 4)).edit(**changes)
    return variant.edit(terms, Syntax({"distance": distances}))


def steps_between(parents, start):
    """Walk the tree from one word, breadth first: the steps to every word."""
    steps, queue = {start: 0}, deque([start])
    while queue:
        word = queue.popleft()
        for other, parent in enumerate(parents):
            neighbour = other if parent == word else parents[word] if other == word else None
            if neighbour is not None and neighbour not in steps:
                steps[neighbour] = steps[word] + 1
                queue.append(neighbour)
    return steps


def slow_distances(tree, word_of):
    """Edges between the words of two pieces; a special is 1 farther from all than the farthest
    words, 0 from itself."""
    steps = [steps_between(tree.parents.tolist(), word) for word in range(len(tree))]
    far = max(max(row.values()) for row in steps) + 1
    table = {}
    for i, word in enumerate(word_of.tolist()):
        for j, other in enumerate(word_of.tolist()):
            table[i, j] = steps[word][other] if word >= 0 and other >= 0 else 0 if i == j else far
    return table


def slow_deps_san(terms, sentences, variance, window, combine):
    """N = (q · k / √d) · exp(-d² / 2σ²) / √(2πσ²), softmax over d within the window, values;
    without padding."""
    tables = [slow_distances(*sentence) for sentence in sentences]

    def score(b, h, t, j):
        plain, distance = terms.q[b, h, t] @ terms.k[b, h, j] / math.sqrt(4), tables[b][t, j]
        if window is not None and distance > window:
            return torch.tensor(-math.inf)
        closeness = math.exp(-(distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        return plain * closeness if combine == "multiply" else plain + closeness

    return slow_attend(terms, score, lengths=[len(word_of) for _, word_of in sentences])


def test_density_rows_of_the_monkey():
    # ▁The ▁mon key ▁eats ▁a ▁ban ana </s>: from The, monkey is 1 step, eats 2, a 4, banana 3; </s>
    # is 4 + 1 from all
    near, one, two, three, four, five = 0.3989, 0.2420, 0.0540, 0.0044, 0.0001, 0.0000
    rows = density(distances_of_monkey(), 1.0)[0]
    np.testing.assert_allclose(rows[0], [near, one, one, two, four, three, three, five], atol=5e-5)
    np.testing.assert_allclose(rows[2], [one, near, near, one, three, two, two, five], atol=5e-5)
    np.testing.assert_allclose(rows[7], [five, five, five, five, five, five, five, near], atol=5e-5)


@pytest.mark.parametrize("combine", ["multiply", "add"])
@pytest.mark.parametrize(("variance", "window"), [(1, None), (4, 2), (32, 0), (0.5, 1)])
def test_deps_san_equals_loops_over_the_equation_gradients_too(variance, window, combine):
    trees = random_trees(int(variance))
    variant = DepsSan(PLACE, variance=variance, window=window, combine=combine)
    syntax, mask = read(variant, trees)
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=1)
    output = (
        attend(variant.edit(terms, Syntax({"distance": syntax.signals["distance"].double()})))
        * mask.mT
    )
    expected = slow_deps_san(terms, with_eos(trees), variance, window, combine)
    assert_same_with_gradients(output, expected, (terms.q, terms.k, terms.v))


@pytest.mark.parametrize(("variance", "window"), [(1, None), (4, 2)])
def test_scaled_weights_equal_loops_over_the_equation_gradients_too(variance, window):
    trees = random_trees(int(variance))
    variant = DepsSan(PLACE, variance=variance, window=window, combine="weights")
    syntax, mask = read(variant, trees)
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=1)
    output = (
        attend(variant.edit(terms, Syntax({"distance": syntax.signals["distance"].double()})))
        * mask.mT
    )
    tables = [slow_distances(*sentence) for sentence in with_eos(trees)]

    def score(b, h, t, j):
        near = window is None or tables[b][t, j] <= window
        return (
            terms.q[b, h, t] @ terms.k[b, h, j] / math.sqrt(4) if near else torch.tensor(-math.inf)
        )

    def value(b, h, t, j):
        return (
            density(torch.tensor(float(tables[b][t, j]), dtype=torch.float64), variance)
            * terms.v[b, h, j]
        )

    expected = slow_attend(
        terms, score, value=value, lengths=[len(word_of) for _, word_of in with_eos(trees)]
    )
    assert_same_with_gradients(output, expected, (terms.q, terms.k, terms.v))


def test_scaled_weights_of_eats_among_five_equal_scores():
    # the density at 2, 1, 0, 2 and 1 steps, over 5: the row does not sum to 1
    distances = torch.from_numpy(DISTANCE.compute(MONKEY, np.arange(5)))[None]
    terms = edited(DepsSan(PLACE, combine="weights"), distances)
    row = terms.normalize(terms.scores())[0, 0, 2]
    np.testing.assert_allclose(row, [0.0108, 0.0484, 0.0798, 0.0108, 0.0484], atol=5e-5)


def test_whole_numbers_of_steps_give_the_same_factor_as_fractions():
    distances = distances_of_monkey()
    assert not distances.is_floating_point()
    factor = edited(DepsSan(PLACE), distances).factor
    torch.testing.assert_close(factor, edited(DepsSan(PLACE), distances.float()).factor)


def test_resampling_has_its_rate_and_is_one_draw_for_all_heads():
    variant = DepsSan(PLACE, resample=0.1).train()
    torch.manual_seed(0)
    factor = edited(variant, torch.ones(20, 30, 30, dtype=torch.int64)).factor
    assert factor.shape == (20, 1, 30, 30)
    # N(6; 0, 1) = exp(-18) / √2π = 6.076e-9
    resampled = factor < 1e-8
    torch.testing.assert_close(
        factor[resampled], torch.full((int(resampled.sum()),), 6.076e-9), rtol=1e-3, atol=0
    )
    torch.testing.assert_close(
        factor[~resampled], torch.full((int((~resampled).sum()),), 0.24197), rtol=1e-4, atol=0
    )
    # 18,000 entries: the rate is 0.1 ± 0.0022 (one standard deviation)
    assert abs(resampled.double().mean().item() - 0.1) < 0.009
    # and so it is on the diagonal, 600 entries ± 0.0122
    assert abs(resampled.diagonal(dim1=-2, dim2=-1).double().mean().item() - 0.1) < 0.05
    assert not torch.equal(resampled[0], resampled[1])


def test_resampling_draws_anew_each_time_and_in_each_layer():
    distances = torch.ones(2, 9, 9, dtype=torch.int64)
    first, second = (DepsSan(PLACE, resample=0.5).train() for _ in range(2))
    torch.manual_seed(0)
    one, two, three = (edited(variant, distances).factor for variant in (first, first, second))
    assert not torch.equal(one, two)
    assert not torch.equal(two, three)
    torch.manual_seed(0)
    assert torch.equal(one, edited(first, distances).factor)


def test_resampling_is_for_training_only():
    variant = DepsSan(PLACE, resample=1.0).eval()
    torch.testing.assert_close(
        edited(variant, distances_of_monkey()).factor[:, 0], density(distances_of_monkey(), 1.0)
    )


@pytest.mark.parametrize(("combine", "blank"), [("multiply", "factor"), ("add", "bias")])
def test_resampling_puts_in_the_density_at_the_distance_that_it_is_told(combine, blank):
    variant = DepsSan(PLACE, resample=1.0, fill=2, variance=4, combine=combine).train()
    # N(2; 0, 4) = exp(-4 / 8) / √8π = 0.12099
    filled = getattr(edited(variant, distances_of_monkey()), blank)
    torch.testing.assert_close(filled, torch.full_like(filled, 0.12099), rtol=1e-4, atol=0)


@pytest.mark.parametrize("training", [True, False])
def test_the_window_masks_in_training_and_after(training):
    variant = DepsSan(PLACE, window=1).train(training)
    seen = edited(variant, distances_of_monkey()).mask[0, 0].int().tolist()
    assert seen == [
        [1, 1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0, 1, 1, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 1],
    ]


def test_outside_the_window_there_is_no_weight_though_a_score_of_0_would_have_some():
    distances = distances_of_monkey()
    weights = edited(DepsSan(PLACE, window=0), distances).scores().softmax(-1)[0, 0]
    # all scores are 0: a word of one piece has all its weight, and one of eight where nothing is
    # masked
    assert weights[3].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    assert weights[1].tolist() == [0, 0.5, 0.5, 0, 0, 0, 0, 0]
    unmasked = edited(DepsSan(PLACE), distances).scores().softmax(-1)[0, 0]
    torch.testing.assert_close(unmasked, torch.full((8, 8), 1 / 8))


def test_the_window_does_not_open_what_is_masked():
    mask = torch.tensor([True] * 5 + [False] * 3)[None, None, None]
    both = edited(DepsSan(PLACE, window=2), distances_of_monkey(), mask=mask).mask
    alone = edited(DepsSan(PLACE, window=2), distances_of_monkey()).mask
    assert torch.equal(both, alone & mask)
    assert not torch.equal(both, alone)


def test_with_both_sparsings_the_window_looks_at_the_tree():
    distances = distances_of_monkey()
    for fill in (0, 100):
        variant = DepsSan(PLACE, resample=1.0, fill=fill, window=1).train()
        terms = edited(variant, distances)
        assert torch.equal(terms.mask[:, 0], distances <= 1)
        torch.testing.assert_close(
            terms.factor[:, 0], density(torch.full((1, 8, 8), float(fill)), 1.0)
        )


def test_gradients_of_a_model_that_masks_almost_all_are_finite():
    model = small_model(
        {"name": "deps_san", "layers": [1, 2], "window": 0, "resample": 0.5}
    ).train()
    _, batch = random_batch(model, [1, 12, 4])
    output = model(batch).states
    output.square().sum().backward()
    assert output.isfinite().all()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_it_stands_on_all_heads_of_the_first_three_layers():
    model = small_model({"name": "deps_san"}, encoder_layers=4)
    owned = [
        [variant.place.heads for variant in layer.self_attention.variants]
        for layer in model.encoder
    ]
    assert owned == [[4], [4], [4], []]
    assert model.reads("source") == (DISTANCE,)
