"""The equation of attention: the fused kernel, the written-out one and loops agree."""

import math
from itertools import product

import pytest
import torch
from attending import assert_same_with_gradients, slow_attend

from synmt.model.attention import Pairs, Terms, attend, attend_written_out

B, H, TQ, TK, SIZE, ROWS = 2, 3, 4, 5, 2, 6
INDEX = {"one index": (TQ, TK), "an index for each sentence": (B, TQ, TK)}
TABLE = {"one table": (ROWS, SIZE), "a table for each head": (H, ROWS, SIZE)}


def drawn(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def random_terms(*edits, table=(ROWS, SIZE), index=(B, TQ, TK)):
    torch.manual_seed(3)
    mask = torch.ones(B, 1, 1, TK, dtype=torch.bool)
    mask[1, ..., 3:] = False
    q, k, v = drawn(B, H, TQ, SIZE), drawn(B, H, TK, SIZE), drawn(B, H, TK, SIZE)
    every = {
        "factor": drawn(B, 1, TQ, TK),
        "bias": drawn(B, H, TQ, TK),
        "relative": Pairs(drawn(*table), torch.randint(ROWS, index)),
    }
    terms = Terms(drawn(B, TQ, H * SIZE), q, k, v, mask)
    return terms.edit(**{name: every[name] for name in edits})


def leaves_of(terms):
    edits = [terms.factor, terms.bias, terms.relative and terms.relative.table]
    return [terms.q, terms.k, terms.v, *(edit for edit in edits if edit is not None)]


def vector(pairs, b, h, i, j):
    """Look up the vector of one pair."""
    table = pairs.table if pairs.table.dim() == 2 else pairs.table[h]
    return table[pairs.index[i, j] if pairs.index.dim() == 2 else pairs.index[b, i, j]]


def slow_attention(terms):
    """O = N(mask((q kᵀ / √d) ⊙ F + B)) (v + R), one score after the other."""

    def score(b, h, i, j):
        score = terms.q[b, h, i] @ terms.k[b, h, j] / math.sqrt(SIZE)
        # one factor for all heads
        score = score if terms.factor is None else score * terms.factor[b, 0, i, j]
        return score if terms.bias is None else score + terms.bias[b, h, i, j]

    def value(b, h, i, j):
        relative = 0 if terms.relative is None else vector(terms.relative, b, h, i, j)
        return terms.v[b, h, j] + relative

    return slow_attend(terms, score, value=value)


EDITS = [(), ("factor",), ("bias",), ("relative",), ("factor", "bias", "relative")]


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("kernel", [attend, attend_written_out])
def test_attention_equals_loops_over_the_equation_gradients_too(kernel, edits):
    terms = random_terms(*edits)
    tolerance = {"rtol": 1e-5, "atol": 1e-6}
    assert_same_with_gradients(kernel(terms), slow_attention(terms), leaves_of(terms), **tolerance)


@pytest.mark.parametrize("index", INDEX.values(), ids=INDEX)
@pytest.mark.parametrize("table", TABLE.values(), ids=TABLE)
def test_vectors_of_pairs_equal_loops_gradients_too(table, index):
    terms = random_terms("relative", table=table, index=index)
    pairs = terms.relative
    assert_same_with_gradients(attend(terms), slow_attention(terms), leaves_of(terms))
    places = product(range(B), range(H), range(TQ), range(TK))
    slow = [terms.q[at[:3]] @ vector(pairs, *at) / math.sqrt(SIZE) for at in places]
    slow = torch.stack(slow).view(B, H, TQ, TK)
    assert_same_with_gradients(pairs.scores(terms.q), slow, [terms.q, pairs.table])


def test_attention_of_a_batch_never_holds_a_vector_for_each_pair():
    length, size = 40, 8
    q, k, v = (torch.randn(B, H, length, size, requires_grad=True) for _ in range(3))
    index = torch.randint(ROWS, (B, length, length))
    pairs, kept = Pairs(torch.randn(ROWS, size, requires_grad=True), index), []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()), lambda tensor: tensor
    ):
        x = torch.zeros(B, length, H * size)
        attend(Terms(x, q, k, v, bias=pairs.scores(q), relative=pairs))
    assert B * H * length**2 <= max(kept) < B * length**2 * size
