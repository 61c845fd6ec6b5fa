"""The biaffine score and the loss of the parents against slow loops, and the rows that teach nothing."""

import math

import pytest
import torch

from synmt.model.attention import Terms, attend, attend_written_out, causal_mask
from synmt.model.biaffine import Biaffine, parent_loss


def random_terms(*, batch=2, heads=2, length=5, size=3, seed=0, mask=None):
    generator = torch.Generator().manual_seed(seed)
    shape = batch, heads, length, size
    q, k, v = (torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3))
    return Terms(torch.zeros(batch, length, heads * size), q, k, v, mask)


def random_biaffine(heads=2, size=3, seed=0):
    torch.manual_seed(seed)
    biaffine = Biaffine(heads, size).double()
    for parameter in biaffine.parameters():
        torch.nn.init.normal_(parameter)
    return biaffine


def padding_mask(*lengths):
    return torch.tensor([[j < length for j in range(max(lengths))] for length in lengths])[:, None, None]


def slow_scores(biaffine, terms):
    """S_tj = (Σ_mn q_tm U_mn k_jn) / √d + Σ_n k_jn u_n, one score at a time."""
    batch, heads, length, size = terms.q.shape
    rows = []
    for b in range(batch):
        for h in range(heads):
            for t in range(length):
                for j in range(length):
                    key = terms.k[b, h, j]
                    agreement = (torch.outer(terms.q[b, h, t], key) * biaffine.weight[h]).sum()
                    rows.append(agreement / math.sqrt(size) + (key * biaffine.key_bias[h]).sum())
    return torch.stack(rows).view(batch, heads, length, length)


def slow_loss(scores, parents, supervised, visible):
    """- Σ log(exp S_tp / Σ_j exp S_tj) over what is supervised and sees its parent, over j that t sees; by head."""
    batch, heads, length, _ = scores.shape
    total = scores.new_zeros(())
    for b in range(batch):
        for h in range(heads):
            for t in range(length):
                seen = [j for j in range(length) if visible(b, t, j)]
                if supervised[b][t] and parents[b][t] in seen:
                    denominator = sum(scores[b, h, t, j].exp() for j in seen)
                    total = total - (scores[b, h, t, parents[b][t]].exp() / denominator).log() / heads
    return total


def gradients(of, *tensors):
    return torch.autograd.grad(of, tensors)


def test_biaffine_scores_equal_loops_over_the_equation_gradients_too():
    terms, biaffine = random_terms(), random_biaffine()
    leaves = terms.q, terms.k, *biaffine.parameters()
    fast, slow = biaffine(terms).scores(), slow_scores(biaffine, terms)
    torch.testing.assert_close(fast, slow)
    slopes = torch.randn_like(slow)
    torch.testing.assert_close(gradients((fast * slopes).sum(), *leaves), gradients((slow * slopes).sum(), *leaves))


@pytest.mark.parametrize("mask", [None, causal_mask(5, torch.device("cpu")), padding_mask(5, 3)])
def test_the_fused_kernel_computes_the_biaffine_head_gradients_too(mask):
    terms, biaffine = random_terms(mask=mask), random_biaffine()
    leaves = terms.q, terms.k, terms.v, *biaffine.parameters()
    fused, written = attend(biaffine(terms)), attend_written_out(biaffine(terms))
    torch.testing.assert_close(fused, written)
    slopes = torch.randn_like(fused)
    torch.testing.assert_close(gradients((fused * slopes).sum(), *leaves), gradients((written * slopes).sum(), *leaves))


def test_the_biaffine_head_leaves_the_fused_kernel_its_blanks():
    edited = random_biaffine()(random_terms())
    assert edited.factor is None
    assert edited.relative is None
    assert edited.bias.shape == (2, 2, 1, 5)


def test_u_is_drawn_by_xaviers_rule_head_by_head_and_the_key_bias_is_zero():
    torch.manual_seed(0)
    plain, halved = Biaffine(3, 20), Biaffine(3, 20, gain=0.5)
    # √(6 / (20 + 20)); the largest of 400 uniform numbers is above 0.95 of it but for one case in 8e8
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

    def visible(b, t, j):
        return j < lengths[b] if side == "source" else j <= t

    fast = parent_loss(scores.masked_fill(~mask, -math.inf), parents, supervised)
    slow = slow_loss(scores, parents.tolist(), supervised.tolist(), visible)
    assert slow > 1
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(gradients(fast, scores), gradients(slow, scores))


def test_the_loss_of_equal_scores_counts_what_each_query_sees():
    scores = torch.zeros(1, 3, 4, 4).masked_fill(~causal_mask(4, torch.device("cpu")), -math.inf)
    # rows 0, 1, 3 see 1, 2, 4 positions; row 2 has its parent in the future and is dropped
    loss = parent_loss(scores, torch.tensor([[0, 0, 3, 3]]), torch.ones(1, 4, dtype=torch.bool))
    assert loss.item() == pytest.approx(math.log(1) + math.log(2) + math.log(4))


def test_the_loss_is_the_mean_over_the_heads_and_the_sum_over_the_batch():
    scores = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(1))
    parents, supervised = torch.tensor([[1, 2, 3, 0], [3, 3, 1, 1]]), torch.ones(2, 4, dtype=torch.bool)
    each = [
        [parent_loss(scores[b : b + 1, h : h + 1], parents[b : b + 1], supervised[b : b + 1]) for h in range(3)]
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
    loss = parent_loss(scores.masked_fill(~mask, -math.inf), torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert scores.grad.tolist() == [[[[-0.5, 0.5], [0.0, 0.0]]]]


def test_nothing_to_learn_is_a_loss_of_zero():
    scores = torch.full((2, 1, 3, 3), -math.inf, requires_grad=True)
    loss = parent_loss(scores, torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool))
    loss.backward()
    assert loss == 0
    assert not scores.grad.any()


def test_a_model_that_has_diverged_shows_it_in_the_loss():
    scores = torch.full((1, 1, 2, 2), math.nan)
    supervised = torch.ones(1, 2, dtype=torch.bool)
    assert parent_loss(scores, torch.zeros(1, 2, dtype=torch.int64), supervised).isnan()


def test_the_loss_of_half_precision_is_computed_in_float32():
    terms, biaffine = random_terms(), random_biaffine().bfloat16()
    half = terms.edit(q=terms.q.bfloat16(), k=terms.k.bfloat16())
    scores = biaffine(half).scores()
    parents, supervised = torch.tensor([[1, 2, 3, 4, 0]] * 2), torch.ones(2, 5, dtype=torch.bool)
    assert parent_loss(scores, parents, supervised).dtype == torch.float32


def test_a_score_far_below_the_others_has_a_finite_loss():
    scores = torch.tensor([[[[0.0, -500.0]]]]).expand(1, 1, 2, 2)
    # exp(-500) is 0 in float32, but its logarithm is taken of the scores
    loss = parent_loss(scores, torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool))
    assert loss.item() == pytest.approx(500.0)
