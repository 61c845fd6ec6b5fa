"""Vectors of pairs against loops over the sums, with one index or one for each sentence, one table
or one a head."""

import math
from itertools import product

import pytest
import torch
from attending import assert_same_with_gradients

from synmt.model.attention import Terms, attend
from synmt.model.pairs import Pairs

B, H, TQ, TK, SIZE, ROWS = 2, 3, 4, 5, 3, 6
INDEX = {"one index": (TQ, TK), "an index for each sentence": (B, TQ, TK)}
TABLE = {"one table": (ROWS, SIZE), "a table for each head": (H, ROWS, SIZE)}


def drawn(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def made(table, index):
    torch.manual_seed(3)
    return Pairs(drawn(*table), torch.randint(ROWS, index))


def vector(pairs, b, h, i, j):
    """Look up the vector of one pair."""
    table = pairs.table if pairs.table.dim() == 2 else pairs.table[h]
    return table[pairs.index[i, j] if pairs.index.dim() == 2 else pairs.index[b, i, j]]


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("table", TABLE.values(), ids=TABLE)
def test_scores_equal_one_product_after_the_other_gradients_too(table, index):
    pairs = made(table, index)
    q, places = drawn(B, H, TQ, SIZE), product(range(B), range(H), range(TQ), range(TK))
    slow = torch.stack(
        [q[b, h, i] @ vector(pairs, b, h, i, j) / math.sqrt(SIZE) for b, h, i, j in places]
    )
    assert_same_with_gradients(pairs.scores(q), slow.view(B, H, TQ, TK), [q, pairs.table])


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("table", TABLE.values(), ids=TABLE)
def test_sums_equal_one_vector_after_the_other_gradients_too(table, index):
    pairs = made(table, index)
    weights, rows = drawn(B, H, TQ, TK), list(product(range(B), range(H), range(TQ)))
    slow = [
        sum(weights[b, h, i, j] * vector(pairs, b, h, i, j) for j in range(TK)) for b, h, i in rows
    ]
    assert_same_with_gradients(
        pairs.sums(weights), torch.stack(slow).view(B, H, TQ, SIZE), [weights, pairs.table]
    )


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("table", TABLE.values(), ids=TABLE)
def test_gradients_are_those_of_finite_differences(table, index):
    pairs = made(table, index)
    q, weights = drawn(B, H, TQ, SIZE), drawn(B, H, TQ, TK)
    assert torch.autograd.gradcheck(
        lambda q, table: Pairs(table, pairs.index).scores(q), (q, pairs.table)
    )
    assert torch.autograd.gradcheck(
        lambda w, table: Pairs(table, pairs.index).sums(w), (weights, pairs.table)
    )


def test_one_index_repeated_for_each_sentence_gives_the_same_sums():
    pairs, weights = made((ROWS, SIZE), (TQ, TK)), drawn(B, H, TQ, TK)
    repeated = Pairs(pairs.table, pairs.index.expand(B, -1, -1))
    torch.testing.assert_close(repeated.sums(weights), pairs.sums(weights))


def test_attention_of_a_batch_never_holds_a_vector_for_each_pair():
    length, size = 40, 8
    q, k, v = (torch.randn(B, H, length, size, requires_grad=True) for _ in range(3))
    pairs = Pairs(
        torch.randn(ROWS, size, requires_grad=True), torch.randint(ROWS, (B, length, length))
    )
    largest = 0

    def kept(tensor):
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(kept, lambda tensor: tensor):
        terms = Terms(
            torch.zeros(B, length, H * size), q, k, v, bias=pairs.scores(q), relative=pairs
        )
        attend(terms)
    assert B * H * length**2 <= largest < B * length**2 * size
