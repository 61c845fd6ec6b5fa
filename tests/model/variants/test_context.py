"""Context-aware self-attention against a loop over its equations."""

import math
from functools import cache

import pytest
import torch
from attending import assert_same_with_gradients, drawn, padding_mask, random_terms, slow_attend

from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.context import Context, mean_of_sentence

HEADS, SIZE = 4, 3
LENGTHS = [3, 5, 1]


def slow_context(kind, states, length, b, t, head):
    """c_t of one head: its slice of the layers' inputs, or of their means over the sentence, side
    by side."""
    own = slice(head * SIZE, (head + 1) * SIZE)
    if kind == "deep":
        return torch.cat([x[b, t, own] for x in states[:-1]])
    layers = states if kind == "deep_global" else states[-1:]
    return torch.cat([sum(x[b, j, own] for j in range(length)) / length for x in layers])


def slow_mixture(mixture, own, context):
    """(1 - λ) q + λ (c U) with λ = sigmoid(q · v_own + (c U) · v_context)."""
    mapped = mixture.context.weight @ context
    gate = torch.sigmoid(own @ mixture.own_gate.weight[0] + mapped @ mixture.context_gate.weight[0])
    return (1 - gate) * own + gate * mapped


@pytest.mark.parametrize("kind", ["global", "deep", "deep_global"])
@pytest.mark.parametrize(("layer", "heads", "first"), [(1, 2, 0), (1, 4, 0), (2, 2, 1), (3, 1, 3)])
def test_context_equals_loops_over_the_equation_gradients_too(kind, layer, heads, first):
    place = Place("source", layer, heads, HEADS * SIZE, head_dim=SIZE, first_head=first)
    context, mask = drawn(Context, place, kind=kind), padding_mask(*LENGTHS)
    terms = random_terms(3, heads, 5, SIZE, mask, seed=layer)
    # of one head as wide as the model
    states = [random_terms(3, 1, 5, HEADS * SIZE, seed=99 + n).q[:, 0] for n in range(layer)]
    mixtures = dict(zip("qk", context.mixtures, strict=False))

    @cache
    def mixed(name, b, h, t):
        own = getattr(terms, name)[b, h, t]
        if not mixtures:
            return own
        read = slow_context(kind, states, LENGTHS[b], b, t, first + h)
        return slow_mixture(mixtures[name], own, read)

    def score(b, h, t, j):
        return mixed("q", b, h, t) @ mixed("k", b, h, j) / math.sqrt(SIZE)

    expected = slow_attend(terms, score, lengths=LENGTHS)
    output = attend(context.edit(terms, Syntax({}, states))) * mask.mT
    leaves = [terms.q, terms.k, terms.v, *states, *context.parameters()]
    assert_same_with_gradients(output, expected, leaves, unused=True, rtol=1e-9, atol=1e-9)


def test_a_mean_without_a_mask_is_over_all_positions():
    assert mean_of_sentence(torch.tensor([[[1.0], [3.0], [8.0]]]), None).tolist() == [[[4.0]]]
