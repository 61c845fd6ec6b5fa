"""Marginals of trees against all trees written down."""

import math
from itertools import product

import pytest
import torch
from enumerating import enumerated

from synmt.model.blocks.matrix_tree import tree_marginals

SEEDS = range(5)
HARD = 50.0
WORST = 200  # words


def tree_log_partition(scores, roots):
    """Compute log Z as synmt.model.blocks.matrix_tree writes it, in logarithms, so that autograd
    finds its slope."""
    total = torch.zeros((), dtype=scores.dtype)
    for k in range(len(roots) - 1, 0, -1):
        to_k = scores[:k, k]  # (k,)
        log_sum = scores[k, :k].logsumexp(0)
        roots = torch.logaddexp(roots[:k], to_k + roots[k] - log_sum)  # (k,)
        scores = torch.logaddexp(scores[:k, :k], to_k[:, None] + scores[k, :k] - log_sum)  # (k, k)
        total = total + log_sum
    return total + roots[0]


def drawn(seed, *size, scale=1.0):
    """Draw normal potentials; with scale HARD, from the whole of ±50."""
    generator = torch.Generator().manual_seed(seed)
    if scale == HARD:
        return (torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1) * HARD
    return torch.randn(size, generator=generator, dtype=torch.float64) * scale


def problem(seed, words, *leading, scale=1.0):
    """Draw scores and roots, all of them words."""
    mask = torch.ones(*leading, words, dtype=torch.bool)
    scores = drawn(seed, *leading, words, words, scale=scale)
    return scores, drawn(seed + 1000, *leading, words, scale=scale), mask


def hard_scores(words, seed=0):
    """Yield scores that lose all digits of a determinant: random ones, random signs, and neighbours
    that prefer each other by 100 nats, where every group of words is a nearly closed cycle."""
    scores = drawn(seed, words, words, scale=HARD)
    cycles = torch.full((words, words), -HARD, dtype=torch.float64)
    for word in range(words - 1):
        cycles[word, word + 1] = cycles[word + 1, word] = HARD
    return {"random": scores, "signs": scores.sign() * HARD, "cycles": cycles}


def close(left, right, tolerance=1e-9):
    return (left - right).abs().max() < tolerance


@pytest.mark.parametrize("scale", [1.0, 10.0, HARD])
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_marginals_and_gradients_are_those_of_all_trees_written_down(words, scale):
    for seed in range(10):
        scores, roots, mask = problem(seed, words, scale=scale)
        inputs = scores.requires_grad_(), roots.requires_grad_()
        marginals, log_partition = enumerated(*inputs)
        found, pull = tree_marginals(*inputs, mask), drawn(seed + 50, words, words)
        assert close(found, marginals)
        assert found.min() >= 0
        assert close(tree_log_partition(*inputs), log_partition)
        slopes = [torch.autograd.grad((part * pull).sum(), inputs) for part in (found, marginals)]
        assert all(map(close, *slopes))


@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_closed_cycles_are_exact(seed):
    _, roots, mask = problem(seed, 6, scale=HARD)
    for scores in hard_scores(6, seed).values():
        assert close(tree_marginals(scores, roots, mask), enumerated(scores, roots)[0], 1e-13)


@pytest.mark.parametrize("hard", ["random", "signs", "cycles"])
def test_marginals_of_two_hundred_words_are_the_slope_of_log_partition_and_sum_to_one(hard):
    _, roots, mask = problem(3, WORST, scale=HARD)
    inputs = hard_scores(WORST, 3)[hard].requires_grad_(), roots.requires_grad_()
    marginals = tree_marginals(*inputs, mask)
    assert close(marginals.sum(-1), 1.0)
    assert close(marginals.diagonal().sum(), 1.0)
    assert marginals.min() >= 0
    assert marginals.max() <= 1 + 1e-9
    arcs, of_roots = torch.autograd.grad(tree_log_partition(*inputs), inputs)
    assert close(arcs + of_roots.diag(), marginals)


@pytest.mark.parametrize(("words", "seed"), [(6, 0), (30, 1), (WORST, 2)])
def test_order_of_the_words_does_not_matter(words, seed):
    scores, roots, mask = problem(seed, words, scale=HARD)
    order = torch.randperm(words, generator=torch.Generator().manual_seed(seed))
    pull = drawn(seed + 9, words, words)

    def both(scores, roots, pull):
        scores = scores.clone().requires_grad_()
        marginals = tree_marginals(scores, roots, mask)
        return marginals.detach(), torch.autograd.grad((marginals * pull).sum(), scores)[0]

    before = both(scores, roots, pull)
    after = both(scores[order][:, order], roots[order], pull[order][:, order])
    assert all(close(x[order][:, order], y) for x, y in zip(before, after, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_padding_and_punctuation_may_be_anywhere(seed):
    generator = torch.Generator().manual_seed(seed)
    scores, roots, mask = problem(seed, 7, scale=10.0)
    place = torch.randperm(7, generator=generator)[: seed % 5 + 1].sort().values
    mask[:] = False
    mask[place] = True
    # in some sentences, all words are punctuation, and then all may be parents
    may_be_parent = torch.rand(7, generator=generator) < 0.6
    heads = may_be_parent[place] | ~may_be_parent[place].any()
    expected = torch.zeros(7, 7, dtype=torch.float64)
    expected[place[:, None], place], _ = enumerated(scores[place][:, place], roots[place], heads)
    found = tree_marginals(scores, roots, mask, may_be_parent)
    assert close(found, expected)
    assert (found[~(mask[:, None] & mask)] == 0).all()


def test_one_word_is_the_root_and_no_word_is_nothing():
    scores, roots, mask = problem(0, 3, 2)
    mask[:] = torch.tensor([[False, True, False], [False, False, False]])
    marginals = tree_marginals(scores.requires_grad_(), roots, mask)
    assert marginals[0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert (marginals[1] == 0).all()
    (gradient,) = torch.autograd.grad((marginals * drawn(0, 2, 3, 3)).sum(), scores)
    assert (gradient == 0).all()


@pytest.mark.parametrize("size", [(0, 4), (3, 0), (0, 0)])
def test_empty_batches_stay_empty(size):
    scores, roots, mask = problem(0, size[1], size[0])
    assert tree_marginals(scores, roots, mask).shape == (*size, size[1])


def test_a_sentence_alone_equals_the_sentence_in_a_batch_and_leading_axes_are_broadcast():
    scores, roots, _ = problem(0, 9, 2, 3)
    # (2, 1, 9) against scores of (2, 3, 9, 9)
    mask = torch.arange(9) < torch.tensor([[9], [4]])[..., None]
    together = tree_marginals(scores, roots[:1], mask)
    for (sentence, length), head in product(enumerate((9, 4)), range(3)):
        own, words = scores[sentence, head, :length, :length], mask[sentence, 0, :length]
        alone = tree_marginals(own, roots[0, head, :length], words)
        assert close(together[sentence, head, :length, :length], alone, 1e-14)


@pytest.mark.parametrize("seed", range(2))
def test_gradients_pass_the_check_with_padding_and_punctuation(seed):
    scores, roots, mask = problem(seed, 5, 2)
    mask[1, [0, 3]] = False
    may_be_parent = torch.ones_like(mask)
    may_be_parent[0, 2] = may_be_parent[1, 1] = False
    inputs = scores.requires_grad_(), roots.requires_grad_()
    assert torch.autograd.gradcheck(lambda s, r: tree_marginals(s, r, mask, may_be_parent), inputs)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30])
def test_the_gradient_is_linear_in_the_incoming_one(size):
    scores, roots, mask = problem(0, 6, scale=HARD)
    pull, marginals = drawn(1, 6, 6), tree_marginals(scores.requires_grad_(), roots, mask)
    (expected,) = torch.autograd.grad(marginals, scores, pull, retain_graph=True)
    (found,) = torch.autograd.grad(marginals, scores, pull * size)
    assert close(found / size, expected, 1e-14)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_gradient_that_is_no_number_makes_its_sentence_nan(value):
    scores, roots, mask = problem(0, 4, 2)
    pull = drawn(1, 2, 4, 4)
    pull[0, 1, 2] = value
    marginals = tree_marginals(scores.requires_grad_(), roots, mask)
    (gradient,) = torch.autograd.grad(marginals, scores, pull)
    assert gradient[0].isnan().any()
    assert gradient[1].isfinite().all()


def test_marginals_are_differentiated_once():
    scores, roots, mask = problem(0, 4)
    marginals = tree_marginals(scores.requires_grad_(), roots, mask)
    (gradient,) = torch.autograd.grad(marginals[0, 1], scores, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        gradient.sum().backward()


LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize("value", [1e4, -1e4, 1e30, -1e30, -math.inf, LARGEST, -LARGEST])
@pytest.mark.parametrize("seed", SEEDS)
def test_extreme_scores_stay_finite(value, seed):
    scores, roots, mask = problem(seed, 12, 2)
    scores, roots, generator = scores.float(), roots.float(), torch.Generator().manual_seed(seed)
    for potentials in (scores, roots):
        potentials[torch.rand(potentials.shape, generator=generator) < 0.4] = value
    inputs = scores.requires_grad_(), roots.requires_grad_()
    marginals = tree_marginals(*inputs, mask)
    assert close(marginals.sum(-1), 1.0, 1e-6)
    assert ((marginals >= 0) & (marginals <= 1)).all()
    gradients = torch.autograd.grad((marginals * drawn(seed, 12, 12)).sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_impossible_arcs_leave_the_possible_trees():
    scores, roots, mask = problem(0, 5)
    # word 2 has no possible parent, so it is the root
    children, parents = [0, 1, 3, 4, 2, 2, 2, 2], [1, 2, 4, 0, 0, 1, 3, 4]
    scores[children, parents] = -math.inf
    roots[[1, 3]] = -math.inf
    marginals = tree_marginals(scores.requires_grad_(), roots, mask)
    assert close(marginals, enumerated(scores, roots)[0])
    assert close(marginals[2, 2], 1.0)
    (gradient,) = torch.autograd.grad(marginals[0, 2], scores)
    assert close(gradient[children, parents], 0, 1e-15)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (3, 2), (2, 2)])
def test_nan_makes_its_own_sentence_nan(place):
    scores, roots, mask = problem(0, 4, 2)
    if place[0] == place[1]:
        roots[0, place[0]] = math.nan
    scores[(0, *place)] = math.nan
    marginals = tree_marginals(scores, roots, mask)
    assert marginals[0].isnan().all()
    assert marginals[1].isfinite().all()


def test_what_does_not_count_is_not_read():
    scores, roots, mask = problem(0, 5)
    mask[1] = False
    may_be_parent = torch.arange(5) != 3
    before = tree_marginals(scores, roots, mask, may_be_parent)
    scores.fill_diagonal_(math.nan)
    scores[1] = scores[:, [1, 3]] = roots[[1, 3]] = math.nan
    assert torch.equal(tree_marginals(scores, roots, mask, may_be_parent), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_comes_back_as_float32(dtype):
    scores, roots, mask = problem(0, 6, 2)
    low, roots = scores.to(dtype).requires_grad_(), roots.to(dtype)
    marginals = tree_marginals(low, roots, mask)
    assert torch.equal(marginals, tree_marginals(low.double(), roots.double(), mask).float())
    assert torch.autograd.grad(marginals[0, 0, 1], low)[0].dtype == dtype


def test_autocast_and_inference_change_nothing():
    scores, roots, mask = problem(0, 6, 2, scale=HARD)
    expected = tree_marginals(scores.requires_grad_(), roots, mask)
    with torch.autocast("cpu", torch.bfloat16):
        marginals = tree_marginals(scores, roots, mask)
        (gradient,) = torch.autograd.grad(marginals[0, 1, 2], scores)
    assert torch.equal(marginals, expected)
    assert torch.equal(gradient, torch.autograd.grad(expected[0, 1, 2], scores)[0])
    with torch.inference_mode():
        assert torch.equal(tree_marginals(scores, roots, mask), expected)


@pytest.mark.journey
# a warning of the checks themselves in torch 2.14
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_operators_keep_the_rules_of_torch():
    scores, _, mask = problem(0, 4, 2)
    operators, arguments = torch.ops.synmt, (scores, mask, mask)
    change = operators.tree_marginals_change.default
    torch.library.opcheck(change, (drawn(1, 2, 4, 4), *arguments))
    torch.library.opcheck(operators.tree_marginals.default, (scores.requires_grad_(), mask, mask))
