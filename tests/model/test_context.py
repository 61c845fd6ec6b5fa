"""Context-aware self-attention against a slow loop over its equations, and which positions and
layers it reads."""

import math
from functools import cache

import pytest
import torch
from attending import assert_same_with_gradients, padding_mask, random_terms, slow_attend
from small import random_batch, small_model

from synmt.model.attention import Terms, attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.context import Context, mean_of_sentence

HEADS, SIZE = 4, 3
KINDS = ["global", "deep", "deep_global"]


def made(kind, *, layer=2, heads=2, first_head=1):
    torch.manual_seed(layer)
    place = Place(
        "source", layer, heads, model_dim=HEADS * SIZE, head_dim=SIZE, first_head=first_head
    )
    context = Context(place, kind=kind).double()
    for parameter in context.parameters():
        torch.nn.init.normal_(parameter)
    return context


def drawn(layer, lengths, *, heads=2, seed=0):
    """Draw the inputs of this number of layers, queries and keys, for sentences of these lengths,
    padded with noise."""
    terms = random_terms(len(lengths), heads, max(lengths), SIZE, padding_mask(*lengths), seed=seed)
    # of one head as wide as the model
    states = [
        random_terms(len(lengths), 1, max(lengths), HEADS * SIZE, seed=99 + n).q[:, 0]
        for n in range(layer)
    ]
    return terms.edit(x=states[-1]), states


def slow_context(kind, states, length, b, t, head):
    """c_t of one head: its slice of the layers' inputs, or of their means over the sentence, side
    by side."""
    own = range(head * SIZE, (head + 1) * SIZE)
    if kind == "deep":
        return [x[b, t, n] for x in states[:-1] for n in own]
    read = states if kind == "deep_global" else [states[-1]]
    return [sum(x[b, j, n] for j in range(length)) / length for x in read for n in own]


def slow_mixture(mixture, own, context):
    """(1 - λ) q + λ (c U) with λ = sigmoid(q · v_own + (c U) · v_context), for one position of one
    head."""
    mapped = mixture.context.weight @ torch.stack(context)
    gate = 1 / (
        1 + torch.exp(-own @ mixture.own_gate.weight[0] - mapped @ mixture.context_gate.weight[0])
    )
    return (1 - gate) * own + gate * mapped


def slow_attention(context, terms, states, lengths):
    """Softmax of q̂ · k̂ / √d over the real positions, times v; (B, H, T, d), zeros in padded
    rows."""
    place = context.place

    @cache
    def mixed(name, mixture, b, h, t):
        own = getattr(terms, name)[b, h, t]
        if not context.mixtures:
            return own
        read = slow_context(context.kind, states, lengths[b], b, t, place.first_head + h)
        return slow_mixture(context.mixtures[mixture], own, read)

    def score(b, h, t, j):
        return mixed("q", 0, b, h, t) @ mixed("k", 1, b, h, j) / math.sqrt(SIZE)

    return slow_attend(terms, score, lengths=lengths)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("layer", "heads", "first_head"), [(1, 2, 0), (1, 4, 0), (2, 2, 1), (3, 1, 3)]
)
def test_context_equals_loops_over_the_equation_gradients_too(kind, layer, heads, first_head):
    context = made(kind, layer=layer, heads=heads, first_head=first_head)
    terms, states = drawn(layer, [3, 5, 1], heads=heads, seed=layer)
    inputs = [terms.q, terms.k, terms.v, *states, *context.parameters()]
    output = attend(context.edit(terms, Syntax({}, states))) * terms.mask.mT
    expected = slow_attention(context, terms, states, [3, 5, 1])
    assert_same_with_gradients(output, expected, inputs, unused=True, rtol=1e-9, atol=1e-9)


def test_a_mixture_worked_out_by_hand():
    # means of 2 and 4: 3; c U = 6; without gate vectors λ = 1/2: (1 + 6)/2 and (3 + 6)/2; keys: U =
    # 0 halves them
    context = Context(Place("source", 1, heads=1, model_dim=1, head_dim=1), kind="global")
    for parameter in context.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(context.mixtures[0].context.weight, 2.0)
    x = torch.tensor([[[2.0], [4.0], [9.0]]])
    q = torch.tensor([[[[1.0], [3.0], [0.0]]]])
    mask = torch.tensor([True, True, False])[None, None, None]
    edited = context.edit(Terms(x, q, q, q, mask), Syntax({}, [x]))
    assert edited.q.flatten().tolist() == [3.5, 4.5, 3.0]
    assert edited.k.flatten().tolist() == [0.5, 1.5, 0.0]
    assert edited.v is q


@pytest.mark.parametrize("kind", ["global", "deep_global"])
def test_what_stands_in_the_padding_is_not_averaged(kind):
    context = made(kind)
    terms, states = drawn(2, [3, 5])
    before = context.edit(terms, Syntax({}, states))
    noisy = [x.detach().clone() for x in states]
    for x in noisy:
        x[0, 3:] = 100.0
    after = context.edit(terms, Syntax({}, noisy))
    assert torch.equal(before.q, after.q)
    assert torch.equal(before.k, after.k)


def test_a_mean_without_a_mask_is_over_all_positions():
    x = torch.tensor([[[1.0], [3.0], [8.0]]])
    assert mean_of_sentence(x, None).tolist() == [[[4.0]]]
    assert mean_of_sentence(x, torch.tensor([[[[True, True, False]]]])).tolist() == [[[2.0]]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_sees_its_own_slice_of_every_layer_that_the_kind_reads(kind):
    # two heads from the second on: of 12 dimensions the first head that is owned has 3, 4 and 5
    context = made(kind, layer=3, heads=2, first_head=1)
    terms, states = drawn(3, [4])
    edited = context.edit(terms, Syntax({}, states))
    slopes = torch.autograd.grad(edited.k[0, 0, 2].sum(), states, allow_unused=True)
    read = {"global": [3], "deep": [1, 2], "deep_global": [1, 2, 3]}[kind]
    positions = [2] if kind == "deep" else [0, 1, 2, 3]
    for layer, slope in enumerate(slopes, 1):
        if layer not in read:
            assert slope is None
            continue
        expected = torch.zeros(4, 12, dtype=torch.bool)
        for position in positions:
            expected[position, 3:6] = True
        assert torch.equal(slope[0] != 0, expected)


def test_deep_context_leaves_layer_1_as_it_is():
    context = made("deep", layer=1)
    terms, states = drawn(1, [3, 2])
    assert context.edit(terms, Syntax({}, states)) is terms
    assert not list(context.parameters())
    plain, deep = (
        small_model(*variants).eval()
        for variants in ((), ({"name": "context", "kind": "deep", "layers": [1]},))
    )
    _, batch = random_batch(deep, [4, 7])
    assert torch.equal(plain(batch).states, deep(batch).states)


def test_every_layer_of_the_encoder_gets_its_context():
    _, batch = random_batch(small_model(), [3, 6])
    # head size 4: U is 4 · (4 n), and two vectors of 4; queries and keys have their own
    inputs = {"global": [1, 1, 1], "deep": [0, 1, 2], "deep_global": [1, 2, 3]}
    for kind, layers in inputs.items():
        model = small_model({"name": "context", "kind": kind}, encoder_layers=3)
        counts = [
            sum(p.numel() for p in variant.parameters()) for variant in model.variants["source"]
        ]
        assert counts == [2 * (16 * n + 8) if n else 0 for n in layers]
        model(batch).states.square().sum().backward()
        assert all(
            p.grad is not None and p.grad.any()
            for v in model.variants["source"]
            for p in v.parameters()
        )


def test_a_layer_with_heads_of_its_own_cuts_every_layer_into_them():
    model = small_model({"name": "context", "kind": "deep"}, encoder_heads=[4, 8]).eval()
    assert [m.context.weight.shape for m in model.variants["source"][1].mixtures] == [(2, 2)] * 2
    _, batch = random_batch(model, [3, 6])
    plain = small_model(encoder_heads=[4, 8]).eval()
    assert not torch.allclose(model(batch).states, plain(batch).states)
