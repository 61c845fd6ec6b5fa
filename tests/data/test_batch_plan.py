"""The plan of an epoch: every row once, limits, order, and the same batches as a loop over all
sentences makes."""

import numpy as np
import pytest

from synmt.data.epoch import epoch_rows, plan_batches


def batches(sizes, **limits):
    return list(plan_batches(sizes, **limits))


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


def lengths(sentences=200, seed=0):
    return np.random.default_rng(seed).integers(2, 30, (sentences, 2))


def test_a_sentence_longer_than_the_limit_is_a_batch_of_its_own():
    sizes = np.array([[3, 3], [50, 2], [3, 3]])
    assert [batch.tolist() for batch in batches(sizes, batch_tokens=10)] == [[2, 0], [1]]


def test_a_seed_fixes_the_order_and_another_one_changes_it():
    def order(seed):
        return [batch.tolist() for batch in batches(lengths(), batch_tokens=100, seed=seed)]

    assert order((1, 0)) == order((1, 0))
    assert order((1, 0)) != order((1, 1))
    assert order((1, 0)) != order((2, 0))


def test_sentences_that_are_very_long_or_too_long():
    sizes = np.array([[3, 3], [2, 2**16 - 1], [2**16 - 1, 2]])
    assert [batch.tolist() for batch in batches(sizes, batch_tokens=10)] == [[1], [0], [2]]


def test_a_plan_of_chosen_rows_has_their_lengths():
    sizes = lengths()
    epoch = epoch_rows([range(50), range(50, 200)], [2.5, 0.5], seed=1, epoch=0)
    plan = plan_batches(sizes[epoch.rows], batch_tokens=100, seed=(1, 0))
    expected = slow_batches(sizes[epoch.rows], batch_tokens=100, seed=(1, 0))
    assert [batch.tolist() for batch in plan] == [batch.tolist() for batch in expected]
    chosen = epoch.select(plan[0])
    assert chosen.rows.tolist() == epoch.rows[plan[0]].tolist()
    assert chosen.copies.tolist() == epoch.copies[plan[0]].tolist()
