"""Marginals of trees against all trees written down and exact fractions."""

import math
from fractions import Fraction
from itertools import product

import pytest
import torch
from enumerating import enumerated

from synmt.model.blocks.matrix_tree import tree_marginals

SEEDS = range(5)
HARD = 50.0
WORST = 200  # words


def exact(scores, roots):
    """Koo et al., one root, in fractions: weight · (inverse_mm - inverse_mh), the first row being
    the roots'."""
    words = range(len(roots))
    weights = [
        [Fraction(math.exp(scores[m, h])) if m != h else Fraction(0) for m in words] for h in words
    ]
    leave = [Fraction(math.exp(root)) for root in roots]
    matrix = [
        [sum(row[m] for row in weights) * (h == m) - weights[h][m] for m in words] for h in words
    ]
    inverse = inverse_of_fractions([leave, *matrix[1:]])
    marginals = torch.zeros(len(roots), len(roots), dtype=torch.float64)
    for m, h in product(words, words):
        if m == h:
            marginals[m, m] = float(leave[m] * inverse[m][0])
        else:
            difference = (inverse[m][m] if m else 0) - (inverse[m][h] if h else 0)
            marginals[m, h] = float(weights[h][m] * difference)
    return marginals


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


def inverse_of_fractions(matrix):
    """Eliminate as Gauss and Jordan did."""
    size = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(i for i in range(column, size) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for i in range(size):
            if i != column:
                rows[i] = [
                    a - rows[i][column] * b for a, b in zip(rows[i], rows[column], strict=True)
                ]
    return [row[size:] for row in rows]


def drawn(seed, *size, scale=1.0):
    """Draw normal potentials; with scale HARD, from the whole of ±50."""
    generator = torch.Generator().manual_seed(seed)
    if scale == HARD:
        return (torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1) * HARD
    return torch.randn(size, generator=generator, dtype=torch.float64) * scale


def problem(seed, words, *leading, scale=1.0):
    """Draw scores and roots, all of them words."""
    scores = drawn(seed, *leading, words, words, scale=scale)
    return (
        scores,
        drawn(seed + 1000, *leading, words, scale=scale),
        torch.ones(*leading, words, dtype=torch.bool),
    )


def nested_cycles(words):
    """Let neighbours prefer each other by 100 nats: every group of words is a nearly closed
    cycle."""
    scores = torch.full((words, words), -HARD, dtype=torch.float64)
    for word in range(words - 1):
        scores[word, word + 1] = scores[word + 1, word] = HARD
    return scores


def close(left, right, tolerance=1e-9):
    return (left - right).abs().max() < tolerance


@pytest.mark.journey
@pytest.mark.parametrize("scale", [1.0, 10.0, HARD])
@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_marginals_and_log_partition_are_those_of_all_trees_written_down(words, scale):
    for seed in range(20):
        scores, roots, mask = problem(seed, words, scale=scale)
        marginals, log_partition = enumerated(scores, roots)
        found = tree_marginals(scores, roots, mask)
        assert close(found, marginals)
        assert found.min() >= 0
        assert close(tree_log_partition(scores, roots), log_partition)


@pytest.mark.journey
@pytest.mark.parametrize("words", [2, 3, 4, 5])
@pytest.mark.parametrize("scale", [1.0, HARD])
def test_gradients_are_those_of_all_trees_written_down(words, scale):
    for seed in range(10):
        scores, roots, mask = problem(seed, words, scale=scale)
        inputs = scores.requires_grad_(), roots.requires_grad_()
        pull = drawn(seed + 50, words, words)
        expected = torch.autograd.grad((enumerated(*inputs)[0] * pull).sum(), inputs)
        found = torch.autograd.grad((tree_marginals(*inputs, mask) * pull).sum(), inputs)
        assert all(close(*pair) for pair in zip(found, expected, strict=True))


def test_two_words_that_prefer_each_other_are_exact():
    # words 1 and 2 choose each other by e^50, so that one is the parent of the other in all trees
    # that count: the root is 1 or 2, with word 0 below either of them, or it is 0, with either of
    # them below it, 2 + 2 + 2 trees
    scores = torch.zeros(3, 3, dtype=torch.float64)
    scores[1, 2] = scores[2, 1] = HARD
    roots = torch.zeros(3, dtype=torch.float64)
    marginals = tree_marginals(scores, roots, torch.ones(3, dtype=torch.bool))
    expected = torch.tensor([[2, 2, 2], [1, 2, 3], [1, 3, 2]], dtype=torch.float64) / 6
    assert close(marginals, expected, 1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_nearly_closed_cycles_are_exact_in_fractions(seed):
    roots = drawn(seed, 8, scale=HARD)
    mask = torch.ones(8, dtype=torch.bool)
    for scores in (
        nested_cycles(8),
        drawn(seed, 8, 8, scale=HARD),
        drawn(seed, 8, 8, scale=HARD).sign() * HARD,
    ):
        assert close(tree_marginals(scores, roots, mask), exact(scores, roots), 1e-13)


@pytest.mark.parametrize("words", [1, 2, 3, 30, 200])
def test_in_alike_trees_every_word_is_as_probable(words):
    scores, roots = (
        torch.zeros(words, words, dtype=torch.float64),
        torch.zeros(words, dtype=torch.float64),
    )
    mask = torch.ones(words, dtype=torch.bool)
    assert close(tree_marginals(scores, roots, mask), 1 / words, 1e-13)


@pytest.mark.parametrize("hard", ["random", "signs", "cycles"])
def test_marginals_of_two_hundred_words_are_the_slope_of_log_partition_and_sum_to_one(hard):
    scores, roots, mask = problem(3, WORST, scale=HARD)
    scores = {"random": scores, "signs": scores.sign() * HARD, "cycles": nested_cycles(WORST)}[hard]
    marginals = tree_marginals(scores, roots, mask)
    assert close(marginals.sum(-1), 1.0)
    assert close(marginals.diagonal().sum(), 1.0)
    assert marginals.min() >= 0
    assert marginals.max() <= 1 + 1e-9
    inputs = scores.requires_grad_(), roots.requires_grad_()
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
def test_padding_and_punctuation_stand_anywhere(seed):
    generator = torch.Generator().manual_seed(seed)
    scores, roots, _ = problem(seed, 7, scale=10.0)
    place = torch.randperm(7, generator=generator)[: seed % 5 + 1].sort().values
    mask = torch.zeros(7, dtype=torch.bool)
    mask[place] = True
    may_be_parent = torch.rand(7, generator=generator) < 0.6
    heads = (
        may_be_parent[place]
        if may_be_parent[place].any()
        else torch.ones(len(place), dtype=torch.bool)
    )
    marginals, _ = enumerated(scores[place][:, place], roots[place], heads)
    expected = torch.zeros(7, 7, dtype=torch.float64)
    expected[place[:, None], place] = marginals
    found = tree_marginals(scores, roots, mask, may_be_parent)
    assert close(found, expected)
    assert (found[~(mask[:, None] & mask)] == 0).all()


def test_word_that_may_not_head_is_neither_parent_nor_root():
    scores, roots, mask = problem(0, 6, scale=HARD)
    may_be_parent = torch.tensor([False, True, True, False, True, True])
    marginals = tree_marginals(scores, roots, mask, may_be_parent)
    assert (marginals[:, ~may_be_parent] == 0).all()
    assert close(marginals.sum(-1), 1.0)
    # it is a leaf that chooses among the others
    assert close(marginals[3, may_be_parent], scores[3, may_be_parent].softmax(-1))


def test_only_word_that_may_be_parent_is_the_root_of_all():
    scores, roots, mask = problem(0, 4)
    may_be_parent = torch.tensor([False, False, True, False])
    expected = torch.zeros(4, 4, dtype=torch.float64)
    expected[:, 2] = 1
    assert torch.equal(tree_marginals(scores, roots, mask, may_be_parent), expected)


def test_in_a_sentence_of_punctuation_all_may_be_parent():
    scores, roots, mask = problem(0, 5, 2)
    mask[0, 3:] = False
    may_be_parent = torch.tensor(
        [[False, False, False, True, True], [False, True, False, False, False]]
    )
    marginals = tree_marginals(scores, roots, mask, may_be_parent)
    assert torch.equal(marginals[0], tree_marginals(scores[0], roots[0], mask[0]))
    assert (marginals[1, :, 1] == 1).all()


def test_one_word_is_the_root_and_no_word_is_nothing():
    scores, roots, mask = problem(0, 3, 2)
    mask[:] = torch.tensor([[False, True, False], [False, False, False]])
    scores.requires_grad_()
    marginals = tree_marginals(scores, roots, mask)
    assert marginals[0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert (marginals[1] == 0).all()
    (gradient,) = torch.autograd.grad((marginals * drawn(0, 2, 3, 3)).sum(), scores)
    assert (gradient == 0).all()


@pytest.mark.parametrize("size", [(0, 4), (3, 0), (0, 0)])
def test_empty_batches_stay_empty(size):
    scores, roots, mask = problem(0, size[1], size[0])
    assert tree_marginals(scores, roots, mask).shape == (*size, size[1])


def test_sentence_alone_equals_the_sentence_in_a_batch():
    scores, roots, _ = problem(0, 9, 2, 3)
    lengths = torch.tensor([[9], [4]])
    mask = torch.arange(9) < lengths[..., None]  # (2, 1, 9) against scores of (2, 3, 9, 9)
    together = tree_marginals(scores, roots, mask)
    for sentence, head in product(range(2), range(3)):
        length = int(lengths[sentence])
        alone = (
            scores[sentence, head, :length, :length],
            roots[sentence, head, :length],
            mask[sentence, 0, :length],
        )
        assert close(together[sentence, head, :length, :length], tree_marginals(*alone), 1e-14)


def test_roots_and_masks_are_broadcast():
    scores, roots, mask = problem(0, 5, 4)
    together = tree_marginals(scores, roots[0], mask[0], mask[:1])
    assert torch.equal(together, tree_marginals(scores, roots[:1].expand(4, 5), mask))


@pytest.mark.parametrize("seed", SEEDS)
def test_constant_for_all_parents_of_a_child_changes_nothing(seed):
    scores, roots, mask = problem(seed, 8, scale=HARD)
    constant = drawn(seed + 7, 8, scale=HARD)
    before = tree_marginals(scores, roots, mask)
    assert close(before, tree_marginals(scores + constant[:, None], roots + constant, mask))


@pytest.mark.journey
@pytest.mark.parametrize("seed", range(2))
def test_gradients_pass_the_check_with_padding_and_punctuation(seed):
    scores, roots, _ = problem(seed, 5, 2)
    mask = torch.tensor([[True] * 5, [False, True, True, False, True]])
    may_be_parent = torch.tensor(
        [[True, True, False, True, True], [False, False, True, True, True]]
    )
    inputs = scores.requires_grad_(), roots.requires_grad_()
    assert torch.autograd.gradcheck(lambda s, r: tree_marginals(s, r, mask, may_be_parent), inputs)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30])
def test_gradient_is_linear_in_the_incoming_one(size):
    scores, roots, mask = problem(0, 6, scale=HARD)
    scores.requires_grad_()
    pull = drawn(1, 6, 6)
    marginals = tree_marginals(scores, roots, mask)
    (expected,) = torch.autograd.grad(marginals, scores, pull, retain_graph=True)
    (found,) = torch.autograd.grad(marginals, scores, pull * size)
    assert close(found / size, expected, 1e-14)


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_gradient_that_is_no_number_makes_its_sentence_nan(value):
    scores, roots, mask = problem(0, 4, 2)
    scores.requires_grad_()
    pull = drawn(1, 2, 4, 4)
    pull[0, 1, 2] = value
    (gradient,) = torch.autograd.grad(tree_marginals(scores, roots, mask), scores, pull)
    assert gradient[0].isnan().any()
    assert gradient[1].isfinite().all()


def test_marginals_are_differentiated_once():
    scores, roots, mask = problem(0, 4)
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(
        tree_marginals(scores, roots, mask)[0, 1], scores, create_graph=True
    )
    with pytest.raises(RuntimeError, match="no autograd formula"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    "value", [1e4, -1e4, -1e30, 1e30, -math.inf, 3.4028234663852886e38, -3.4028234663852886e38]
)
@pytest.mark.parametrize("seed", SEEDS)
def test_extreme_scores_stay_finite(value, seed):
    scores, roots, mask = (x.float() if x.is_floating_point() else x for x in problem(seed, 12, 2))
    generator = torch.Generator().manual_seed(seed)
    scores[torch.rand(scores.shape, generator=generator) < 0.4] = value
    roots[torch.rand(roots.shape, generator=generator) < 0.4] = value
    inputs = scores.requires_grad_(), roots.requires_grad_()
    marginals = tree_marginals(*inputs, mask)
    assert close(marginals.sum(-1), 1.0, 1e-6)
    assert ((marginals >= 0) & (marginals <= 1)).all()
    gradients = torch.autograd.grad((marginals * drawn(seed, 12, 12)).sum(), inputs)
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_word_without_a_possible_parent_is_the_root():
    scores, roots, mask = problem(0, 4)
    scores[2] = -math.inf
    marginals = tree_marginals(scores, roots, mask)
    assert close(marginals[2], torch.tensor([0.0, 0, 1, 0], dtype=torch.float64))


def test_impossible_arcs_leave_the_possible_trees():
    scores, roots, mask = problem(0, 5)
    forbidden = torch.tensor([[0, 1], [1, 2], [2, 1], [3, 4], [4, 0]])
    scores[forbidden[:, 0], forbidden[:, 1]] = -math.inf
    roots[[1, 3]] = -math.inf
    scores.requires_grad_()
    marginals = tree_marginals(scores, roots, mask)
    assert close(marginals, enumerated(scores, roots)[0])
    assert marginals[0, 1] < 1e-90
    (gradient,) = torch.autograd.grad(marginals[0, 2], scores)
    assert (gradient[forbidden[:, 0], forbidden[:, 1]] == 0).all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (3, 2), (2, 2)])
def test_nan_makes_its_own_sentence_nan(place):
    scores, roots, mask = problem(0, 4, 2)
    potentials = roots if place[0] == place[1] else scores
    potentials[(0, *place[:1]) if potentials is roots else (0, *place)] = math.nan
    marginals = tree_marginals(scores, roots, mask)
    assert marginals[0].isnan().all()
    assert marginals[1].isfinite().all()


def test_what_does_not_count_is_not_read():
    scores, roots, mask = problem(0, 5)
    mask[1] = False
    may_be_parent = torch.tensor([True, True, True, False, True])
    before = tree_marginals(scores, roots, mask, may_be_parent)
    scores.fill_diagonal_(math.nan)
    scores[1], scores[:, 1], scores[:, 3], roots[1], roots[3] = (math.nan,) * 5
    assert torch.equal(tree_marginals(scores, roots, mask, may_be_parent), before)


def test_low_precision_comes_back_as_float32():
    scores, roots, mask = problem(0, 6, 2)
    for dtype in (torch.bfloat16, torch.float16):
        low = scores.to(dtype).requires_grad_(), roots.to(dtype)
        marginals = tree_marginals(*low, mask)
        assert marginals.dtype == torch.float32
        assert torch.equal(
            marginals, tree_marginals(low[0].double(), low[1].double(), mask).float()
        )
        assert torch.autograd.grad(marginals[0, 0, 1], low[0])[0].dtype == dtype


def test_autocast_and_inference_change_nothing():
    scores, roots, mask = problem(0, 6, 2, scale=HARD)
    scores.requires_grad_()
    expected = tree_marginals(scores, roots, mask)
    with torch.autocast("cpu", torch.bfloat16):
        marginals = tree_marginals(scores, roots, mask)
        (gradient,) = torch.autograd.grad(marginals[0, 1, 2], scores)
    assert torch.equal(marginals, expected)
    assert torch.equal(gradient, torch.autograd.grad(expected[0, 1, 2], scores)[0])
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert torch.equal(tree_marginals(scores, roots, mask), expected)


@pytest.mark.journey
def test_model_around_it_compiles():
    def model(x, roots, mask):
        marginals = tree_marginals(x @ x.mT, roots, mask[:, None])
        return (marginals @ x).sin().sum()

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for words in (4, 6):
        x, roots, mask = (
            drawn(0, 2, 3, words, 5).requires_grad_(),
            drawn(1, 2, 3, words),
            torch.rand(2, words) < 0.7,
        )
        expected, found = model(x, roots, mask), compiled(x, roots, mask)
        assert close(found, expected)
        assert close(torch.autograd.grad(found, x)[0], torch.autograd.grad(expected, x)[0])


@pytest.mark.journey
# a warning of the checks themselves in torch 2.14
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_operators_keep_the_rules_of_torch():
    scores, _, mask = problem(0, 4, 2)
    arguments = scores.requires_grad_(), mask, mask
    torch.library.opcheck(torch.ops.synmt.tree_marginals.default, arguments)
    torch.library.opcheck(
        torch.ops.synmt.tree_marginals_change.default,
        (drawn(1, 2, 4, 4), scores.detach(), mask, mask),
    )
