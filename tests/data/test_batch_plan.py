"""The plan of an epoch: every row once, limits, order, and the same batches as a loop over all
sentences makes."""

import numpy as np
import pytest

from synmt.data.epoch import plan_batches


def slow_batches(lengths, *, batch_tokens, batch_sentences, seed):
    """Sort all sentences, and fill one batch after the other."""
    random = np.random.default_rng(seed)
    ties = np.arange(len(lengths)) if seed is None else random.permutation(len(lengths))
    order = np.lexsort((ties, lengths[:, 0], lengths[:, 1]))[::-1]  # (N,)
    batches = []
    for row in order.tolist():
        longest = lengths[[row, *(batches[-1] if batches else [])]].max()
        size = len(batches[-1]) if batches else 0
        full = batch_sentences and size == batch_sentences
        if not size or full or longest * (size + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(row)
    shuffled = range(len(batches)) if seed is None else random.permutation(len(batches))
    return [batches[index] for index in shuffled]


@pytest.mark.parametrize("seed", [None, (3, 4)])
@pytest.mark.parametrize("batch_sentences", [0, 1, 7, 1000])
@pytest.mark.parametrize("batch_tokens", [1, 30, 100, 2_000, 100_000])
def test_a_plan_equals_a_loop_over_all_sentences(batch_tokens, batch_sentences, seed):
    limits = {"batch_tokens": batch_tokens, "batch_sentences": batch_sentences, "seed": seed}
    for count in (0, 1, 2, 15, 16, 17, 300):
        sizes = np.random.default_rng(count).integers(1, 40, (count, 2))
        plan, expected = plan_batches(sizes, **limits), slow_batches(sizes, **limits)
        assert [batch.tolist() for batch in plan] == expected
        assert len(plan) == len(expected)


def test_a_seed_shuffles_and_very_long_sentences_come_first():
    sizes = np.array([[3, 3], [2, 2**16 - 1], [2**16 - 1, 2], [3, 3], [50, 2]])
    plan = plan_batches(sizes, batch_tokens=10)
    assert [batch.tolist() for batch in plan] == [[1], [3, 0], [2], [4]]
    plans = [plan_batches(sizes, batch_tokens=10, seed=(seed, 0)) for seed in range(9)]
    assert len({len(plan[0]) for plan in plans}) > 1
