"""The biaffine score and the loss of the parents against slow loops, and the rows that teach
nothing."""

import math

import pytest
import torch
from attending import (
    assert_same_with_gradients,
    padding_mask,
    random_terms,
    slow_biaffine,
    slow_loss,
)

from synmt.model.attention import attend, attend_written_out, causal_mask
from synmt.model.blocks.biaffine import Biaffine, parent_loss


def five_pieces(mask=None):
    return random_terms(2, 2, 5, 3, mask)


def random_biaffine(heads=2, size=3, seed=0):
    torch.manual_seed(seed)
    biaffine = Biaffine(heads, size).double()
    for parameter in biaffine.parameters():
        torch.nn.init.normal_(parameter)
    return biaffine


def test_biaffine_scores_equal_loops_over_the_equation_gradients_too():
    terms, biaffine = five_pieces(), random_biaffine()
    slow = slow_biaffine(terms.q, terms.k, biaffine.weight, biaffine.key_bias)
    assert_same_with_gradients(
        biaffine(terms).scores(), slow, (terms.q, terms.k, *biaffine.parameters())
    )


@pytest.mark.parametrize("mask", [None, causal_mask(5, torch.device("cpu")), padding_mask(5, 3)])
def test_the_fused_kernel_computes_the_biaffine_head_gradients_too(mask):
    terms, biaffine = five_pieces(mask), random_biaffine()
    leaves = terms.q, terms.k, terms.v, *biaffine.parameters()
    assert_same_with_gradients(attend(biaffine(terms)), attend_written_out(biaffine(terms)), leaves)


def test_the_biaffine_head_leaves_the_fused_kernel_its_blanks():
    edited = random_biaffine()(five_pieces())
    assert edited.factor is None
    assert edited.relative is None
    assert edited.bias.shape == (2, 2, 1, 5)


def test_u_is_drawn_by_xaviers_rule_head_by_head_and_the_key_bias_is_zero():
    torch.manual_seed(0)
    plain, halved = Biaffine(3, 20), Biaffine(3, 20, gain=0.5)
    # √(6 / (20 + 20)); the largest of 400 uniform numbers is above 0.95 of it but for one case in
    # 8e8
    bound = math.sqrt(6 / 40)
    for head in range(3):
        assert 0.95 * bound < plain.weight[head].abs().max() <= bound
        assert 0.95 * bound / 2 < halved.weight[head].abs().max() <= bound / 2
    assert not plain.key_bias.any()
    assert not torch.equal(plain.weight[0], plain.weight[1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("side", ["source", "target"])
def test_the_loss_equals_loops_over_the_equation_gradients_too(side, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = [6, 4]
    scores = torch.randn(2, 2, 6, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    parents = torch.randint(6, (2, 6), generator=generator)
    supervised = (torch.rand(2, 6, generator=generator) < 0.7) & padding_mask(*lengths)[:, 0, 0]
    mask = padding_mask(*lengths) if side == "source" else causal_mask(6, torch.device("cpu"))
    slow = slow_loss(scores, parents, supervised, mask)
    assert slow > 1
    fast = parent_loss(scores.masked_fill(~mask, -math.inf), parents, supervised)
    assert_same_with_gradients(fast, slow, [scores])


def test_the_loss_of_equal_scores_counts_what_each_query_sees():
    scores = torch.zeros(1, 3, 4, 4).masked_fill(~causal_mask(4, torch.device("cpu")), -math.inf)
    # rows 0, 1, 3 see 1, 2, 4 positions; row 2 has its parent in the future and is dropped
    loss = parent_loss(scores, torch.tensor([[0, 0, 3, 3]]), torch.ones(1, 4, dtype=torch.bool))
    assert loss.item() == pytest.approx(math.log(1) + math.log(2) + math.log(4))


def test_the_loss_is_the_mean_over_the_heads_and_the_sum_over_the_batch():
    scores = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    parents, supervised = (
        torch.tensor([[1, 2, 3, 0], [3, 3, 1, 1]]),
        torch.ones(2, 4, dtype=torch.bool),
    )
    each = [
        [
            parent_loss(scores[b : b + 1, h : h + 1], parents[b : b + 1], supervised[b : b + 1])
            for h in range(3)
        ]
        for b in range(2)
    ]
    expected = sum(sum(heads) / 3 for heads in each)
    torch.testing.assert_close(parent_loss(scores, parents, supervised), expected)


@pytest.mark.parametrize("padding", [-1, 0, 10**6])
def test_rows_that_teach_nothing_may_be_masked_throughout_and_hold_any_parent(padding):
    scores = torch.randn(2, 2, 3, 3, generator=torch.Generator().manual_seed(2), requires_grad=True)
    parents = torch.tensor([[1, 1, padding], [padding] * 3])
    supervised = torch.tensor([[True, True, False], [False] * 3])
    mask = torch.ones(2, 1, 3, 3, dtype=torch.bool)
    mask[0, :, 2] = mask[1] = False
    loss = parent_loss(scores.masked_fill(~mask, -math.inf), parents, supervised)
    loss.backward()
    assert loss > 0
    assert loss.isfinite()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, :, :2].all()
    assert not scores.grad[0, :, 2].any()
    assert not scores.grad[1].any()


def test_a_supervised_row_that_is_masked_throughout_is_dropped_without_nan():
    scores = torch.zeros(1, 1, 2, 2, requires_grad=True)
    mask = torch.tensor([[True, True], [False, False]])
    loss = parent_loss(
        scores.masked_fill(~mask, -math.inf),
        torch.tensor([[0, 1]]),
        torch.ones(1, 2, dtype=torch.bool),
    )
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert scores.grad.tolist() == [[[[-0.5, 0.5], [0.0, 0.0]]]]


def test_nothing_to_learn_is_a_loss_of_zero():
    scores = torch.full((2, 1, 3, 3), -math.inf, requires_grad=True)
    loss = parent_loss(
        scores, torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool)
    )
    loss.backward()
    assert loss == 0
    assert not scores.grad.any()


def test_a_model_that_has_diverged_shows_it_in_the_loss():
    scores = torch.full((1, 1, 2, 2), math.nan)
    supervised = torch.ones(1, 2, dtype=torch.bool)
    assert parent_loss(scores, torch.zeros(1, 2, dtype=torch.int64), supervised).isnan()


def test_the_loss_of_half_precision_is_computed_in_float32():
    terms, biaffine = five_pieces(), random_biaffine().bfloat16()
    half = terms.edit(q=terms.q.bfloat16(), k=terms.k.bfloat16())
    scores = biaffine(half).scores()
    parents, supervised = torch.tensor([[1, 2, 3, 4, 0]] * 2), torch.ones(2, 5, dtype=torch.bool)
    assert parent_loss(scores, parents, supervised).dtype == torch.float32


def test_a_score_far_below_the_others_has_a_finite_loss():
    scores = torch.tensor([[[[0.0, -500.0]]]]).expand(1, 1, 2, 2)
    # exp(-500) is 0 in float32, but its logarithm is taken of the scores
    loss = parent_loss(scores, torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool))
    assert loss.item() == pytest.approx(500.0)
