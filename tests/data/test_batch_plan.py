"""The plan of an epoch: every row once, limits, order, and the same batches as a loop over all
sentences makes."""

import numpy as np
import pytest

from synmt.data.epoch import plan_batches


def slow_batches(lengths, *, batch_tokens, batch_sentences=0, seed=None):
    """Sort all sentences, and fill one batch after the other."""
    random = np.random.default_rng(seed) if seed is not None else None
    ties = random.permutation(len(lengths)) if random else np.arange(len(lengths))
    order = np.lexsort((ties, lengths[:, 0], lengths[:, 1]))[::-1]  # (N,)
    longest = lengths.max(1)[order]  # (N,)
    batches, first, widest = [], 0, 0
    for position, length in enumerate(longest.tolist()):
        size = position - first
        full = batch_sentences and size == batch_sentences
        if size and (full or max(widest, length) * (size + 1) > batch_tokens):
            batches.append(order[first:position])
            first, widest = position, 0
        widest = max(widest, length)
    if first < len(order):
        batches.append(order[first:])
    if random:
        batches = [batches[index] for index in random.permutation(len(batches))]
    return batches


@pytest.mark.parametrize("seed", [None, (3, 4)])
@pytest.mark.parametrize("batch_sentences", [0, 1, 7, 1000])
@pytest.mark.parametrize("batch_tokens", [1, 30, 100, 2_000, 100_000])
def test_a_plan_equals_a_loop_over_all_sentences(batch_tokens, batch_sentences, seed):
    limits = {"batch_tokens": batch_tokens, "batch_sentences": batch_sentences, "seed": seed}
    for count in (0, 1, 2, 15, 16, 17, 300):
        sizes = np.random.default_rng(count).integers(1, 40, (count, 2))
        plan = plan_batches(sizes, **limits)
        expected = slow_batches(sizes, **limits)
        assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in expected]
        assert len(plan) == len(expected)


def test_a_seed_shuffles_and_very_long_sentences_come_first():
    sizes = np.array([[3, 3], [2, 2**16 - 1], [2**16 - 1, 2], [3, 3], [50, 2]])
    plan = plan_batches(sizes, batch_tokens=10)
    assert [batch.tolist() for batch in plan] == [[1], [3, 0], [2], [4]]
    orders = [plan_batches(sizes, batch_tokens=10, seed=(seed, 0)).order for seed in range(9)]
    assert len({tuple(order.tolist()) for order in orders}) > 1
