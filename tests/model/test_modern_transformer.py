"""Rotary positions, ALiBi, RMSNorm, GELU and SwiGLU: against loops over their equations, and with
every variant."""

import cmath
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from attending import assert_alone_as_in_a_batch, assert_step_by_step_as_all_at_once
from small import batch_for, random_batch, shaken, small_model, small_recipe
from stepping import assert_equal_steps
from test_transformer import slow_attention, slow_position
from test_variants import assert_kernels_agree
from variant_cases import DEFAULTS, EDITS_ATTENTION, made

from synmt.data.batch import collate_source
from synmt.data.vocabulary import PAD
from synmt.errors import UsageError
from synmt.model.feed_forward import gated
from synmt.model.multihead import SelfAttention
from synmt.model.positions import Rotary, alibi, alibi_slopes, rotate
from synmt.model.variant import Syntax, Variant

POSITIONS = ["sinusoid", "rotary", "alibi", "none"]
NEW = ["rotary", "alibi", "none"]
FUNCTIONS = ["relu", "gelu", "swiglu"]
# every two choices meet, and every three of the first three kinds
CHOICES = [
    (POSITIONS[p], ["pre", "post"][n], ["layer", "rms"][k], FUNCTIONS[(p + n + k) % 3])
    for p, n, k in product(range(4), range(2), range(2))
]
MODERN = {"positions": "rotary", "norm": "pre", "norm_kind": "rms", "feed_forward": "swiglu"}


def chosen(positions, norm, norm_kind, feed_forward):
    return {
        "positions": positions,
        "norm": norm,
        "norm_kind": norm_kind,
        "feed_forward": feed_forward,
    }


# the equations, in loops


def slow_turn(x, place):
    """Multiply x_i + i x_(i + d/2) by exp(i place 10000^(-2i/d))."""
    half = len(x) // 2
    turns = [cmath.exp(1j * place * 10_000 ** (-2 * i / len(x))) for i in range(half)]
    real = [x[i] * turns[i].real - x[half + i] * turns[i].imag for i in range(half)]
    imaginary = [x[i] * turns[i].imag + x[half + i] * turns[i].real for i in range(half)]
    return torch.stack(real + imaginary)


def slow_turns(row, place, width):
    """Turn the vectors of all heads at a place."""
    return torch.cat([slow_turn(vector, place) for vector in row.split(width)])


def slow_self_attention(module, x, keep, positions):
    """One sentence (T, D), one head, one query and one key at a time; keep (T, T)."""
    width, rows = x.size(1) // module.heads, []
    q, k, v = (module.project.weight @ x.T + module.project.bias[:, None]).T.chunk(3, 1)
    if positions == "rotary":
        q, k = (
            torch.stack([slow_turns(row, t, width) for t, row in enumerate(rows)])
            for rows in (q, k)
        )
    for t in range(len(x)):
        heads = []
        for head in range(module.heads):
            own = slice(head * width, (head + 1) * width)
            scores, values = [], []
            for j in range(len(x)):
                if keep[t, j]:
                    query, key = q[t, own], k[j, own]
                    penalty = (
                        2 ** (-8 * (head + 1) / module.heads) * abs(t - j)
                        if positions == "alibi"
                        else 0.0
                    )
                    scores.append((query * key).sum() / math.sqrt(width) - penalty)
                    values.append(v[j, own])
            weights = torch.stack(scores).softmax(0)
            heads.append(sum(weight * value for weight, value in zip(weights, values, strict=True)))
        rows.append(torch.cat(heads))
    return torch.stack(rows) @ module.output.weight.T + module.output.bias


def slow_norm(norm, kind, x):
    rows = []
    for row in x:
        centred = row - row.mean() if kind == "layer" else row
        eps = 1e-5 if kind == "layer" else 1e-6
        scaled = centred / torch.sqrt((centred**2).mean() + eps) * norm.weight
        rows.append(scaled + norm.bias if kind == "layer" else scaled)
    return torch.stack(rows)


def slow_feed_forward(module, kind, x):
    if kind == "swiglu":
        w, v = module.inner.weight.chunk(2)
        z = x @ w.T
        return (z / (1 + torch.exp(-z)) * (x @ v.T)) @ module.output.weight.T
    z = x @ module.inner.weight.T + module.inner.bias
    inner = (
        torch.where(z > 0, z, 0.0) if kind == "relu" else z * (1 + torch.erf(z / math.sqrt(2))) / 2
    )
    return inner @ module.output.weight.T + module.output.bias


def slow_side(model, layers, ids, keep, recipe, cross=None):
    """Run one side over one sentence: ids (T,), keep (T, T)."""
    x = model.source_embedding.table.weight[ids] * math.sqrt(
        model.source_embedding.table.embedding_dim
    )
    if recipe["positions"] == "sinusoid":
        x = x + torch.stack([slow_position(place, x.size(1)) for place in range(len(ids))])

    def residual(part, x, function):
        if recipe["norm"] == "pre":
            return x + function(slow_norm(part.norm, recipe["norm_kind"], x))
        return slow_norm(part.norm, recipe["norm_kind"], x + function(x))

    for layer in layers:
        first, *middle, last = layer.residuals
        x = residual(
            first,
            x,
            lambda x: slow_self_attention(layer.self_attention, x, keep, recipe["positions"]),
        )
        if cross is not None:
            x = residual(middle[0], x, lambda x: cross(layer.cross_attention, x))
        x = residual(
            last, x, lambda x: slow_feed_forward(layer.feed_forward, recipe["feed_forward"], x)
        )
    return x


def slow_states(model, recipe, source, target):
    """Run teacher forcing over one sentence: (Tt, D)."""

    def finish(norm, x):
        return slow_norm(norm, recipe["norm_kind"], x) if recipe["norm"] == "pre" else x

    length = len(source)
    memory = slow_side(
        model, model.encoder, source, torch.ones(length, length, dtype=torch.bool), recipe
    )
    memory = finish(model.encoder_norm, memory)

    def cross(attention, x):
        parts = [attention.query]
        for weight, bias in zip(
            attention.key_value.weight.chunk(2), attention.key_value.bias.chunk(2), strict=True
        ):
            part = torch.nn.Linear(weight.size(1), weight.size(0))
            part.weight, part.bias = torch.nn.Parameter(weight), torch.nn.Parameter(bias)
            parts.append(part)
        keep = torch.ones(1, len(x), length, dtype=torch.bool)
        return slow_attention(attention, x[None], memory[None], keep, parts)[0]

    past = torch.ones(len(target), len(target), dtype=torch.bool).tril()
    return finish(model.decoder_norm, slow_side(model, model.decoder, target, past, recipe, cross))


@pytest.mark.parametrize("choice", CHOICES, ids="-".join)
def test_combinations_equal_a_slow_one(choice):
    recipe = chosen(*choice)
    model = shaken(**recipe)
    # loops take long: the seed makes short sentences of several lengths
    _, batch = random_batch(model, [3, 1], seed=6)
    with torch.no_grad():
        states = model(batch).states
        for row in range(2):
            source, target = batch.source.ids[row][batch.source.mask[row]], batch.target_input[row]
            target = target[batch.target_output[row] != PAD]
            expected = slow_states(model, recipe, source, target)
            torch.testing.assert_close(states[row, : len(target)], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_gradients_of_the_whole_model_equal_those_of_a_slow_one(positions):
    recipe = {**MODERN, "positions": positions}
    model = shaken(**recipe)
    _, batch = random_batch(model, [3], seed=6)
    source, target = batch.source.ids[0], batch.target_input[0]
    gradients = []
    for states in (model(batch).states[0], slow_states(model, recipe, source, target)):
        model.zero_grad()
        (states * torch.arange(states.numel()).view_as(states)).sum().backward()
        # of the weights of attention to the source, the slow model has copies
        named = model.named_parameters()
        gradients.append(
            [p.grad.clone() for name, p in named if p.grad is not None and "cross" not in name]
        )
    torch.testing.assert_close(*gradients, atol=1e-2, rtol=1e-4)


@pytest.mark.parametrize("choice", CHOICES, ids="-".join)
def test_combinations_decode_step_by_step_fast_and_slowly(choice):
    model = shaken(**chosen(*choice))
    # after six steps, a sentence has left
    assert_equal_steps(model, steps=8)
    with torch.no_grad():
        assert_step_by_step_as_all_at_once(model, rtol=1e-4)


@pytest.mark.parametrize("positions", POSITIONS)
def test_padding_and_neighbours_change_nothing(positions):
    with torch.no_grad():
        assert_alone_as_in_a_batch(shaken(**{**MODERN, "positions": positions}), [2, 9, 5, 1])


@pytest.mark.parametrize("positions", POSITIONS)
def test_only_an_encoder_without_positions_is_blind_to_the_order(positions):
    model = shaken(positions=positions)
    source, order = (
        collate_source([np.arange(4, 11)]),
        torch.cat((torch.randperm(7), torch.tensor([7]))),
    )
    with torch.no_grad():
        states = model.encode(source).states
        shuffled = model.encode(replace(source, ids=source.ids[:, order])).states
    assert torch.allclose(states[:, order], shuffled, atol=1e-5) == (positions == "none")


def test_scores_of_turned_vectors_depend_on_the_distance_only():
    q, k = torch.randn(2, 1, 8)
    rotary = Rotary(8)
    scores = [(rotary(q, place + 3) * rotary(k, place)).sum() for place in (0, 5, 400, 700)]
    torch.testing.assert_close(torch.stack(scores), scores[0].expand(4), atol=1e-4, rtol=1e-4)
    assert not torch.allclose((rotary(q, 4) * rotary(k, 0)).sum(), scores[0])
    torch.testing.assert_close(rotary(q, 700)[0], slow_turn(q[0], 700), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(rotary(q, 9).norm(), q.norm())
    assert rotary.angles.size(1) == 1408
    assert not rotary.state_dict()


def test_the_slopes_are_the_published_ones():
    assert alibi_slopes(8).tolist() == [1 / 2**h for h in range(1, 9)]
    torch.testing.assert_close(alibi_slopes(16)[:2], torch.tensor([2**-0.5, 0.5]))
    assert alibi(1, 3, torch.tensor([0.5])).tolist() == [[[-1.0, -0.5, 0.0]]]
    assert alibi(3, 3, torch.tensor([1.0])).tolist() == [
        [[0.0, -1.0, -2.0], [-1.0, 0.0, -1.0], [-2.0, -1.0, 0.0]]
    ]


@pytest.mark.parametrize("function", [lambda x: rotate(x, Rotary(4).at(3, 6).double()), gated])
def test_gradients_agree_with_differences(function):
    assert torch.autograd.gradcheck(
        function, torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    )


def test_an_element_of_swiglu_is_a_gate_times_a_value():
    assert gated(torch.tensor([1.0, 0.0, 3.0, 5.0])).tolist() == pytest.approx(
        [3 / (1 + math.exp(-1)), 0.0]
    )


def test_swiglu_of_two_thirds_has_as_many_products_as_relu():
    counts = []
    for options in ({"feedforward_dim": 24}, {"feedforward_dim": 16, "feed_forward": "swiglu"}):
        layers = small_model(**options).encoder[0].feed_forward
        counts.append(sum(weight.numel() for weight in layers.parameters() if weight.dim() == 2))
    assert counts[0] == counts[1]


# with variants


def with_positions(recipe, positions):
    model = made({**recipe, "layers": [1]}, layers=1, positions=positions)
    assert any(type(layer.self_attention) is not SelfAttention for layer in model.encoder) == (
        positions != "none"
    )
    return model


OF_ATTENTION = [case for case in EDITS_ATTENTION if case in DEFAULTS]


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
@pytest.mark.parametrize("recipe", OF_ATTENTION)
def test_a_variant_keeps_its_laws_beside_other_positions(recipe, positions, monkeypatch):
    model = with_positions(recipe, positions)
    assert_alone_as_in_a_batch(model, [2, 6, 1])
    assert_step_by_step_as_all_at_once(model, rtol=1e-4)
    assert_kernels_agree(model, monkeypatch)


@pytest.mark.parametrize("recipe", EDITS_ATTENTION)
def test_alibi_adds_to_the_scores_of_every_variant(recipe):
    model = with_positions(recipe, "alibi")
    _, batch = random_batch(model, [5, 8])
    side, layers = (
        ("source", model.encoder) if recipe["side"] == "source" else ("target", model.decoder)
    )
    signals = batch.source_signals if side == "source" else batch.target_signals
    mask = batch.source.mask[:, None, None]
    x = torch.randn(
        *(batch.source.ids if side == "source" else batch.target_input).shape,
        model.output_weight.size(1),
    )
    attention = layers[0].self_attention
    weights_are_given = recipe["name"] == "dependency_distribution" and recipe.get("kind") == "lda"

    def scores(kind):
        attention.__class__ = kind
        syntax = Syntax(signals, states=[x], ids=batch.source.ids)
        seen = mask if side == "source" else None
        return torch.cat([part.scores() for part in attention.terms(x, seen, syntax)], 1)

    placed, plain = scores(type(attention)), scores(SelfAttention)
    seen = ~plain.isneginf()
    heads, length = plain.shape[1], plain.size(-1)
    steps = torch.tensor([[abs(t - j) for j in range(length)] for t in range(length)])
    expected = torch.stack(
        [-(2 ** (-8 * (head + 1) / heads)) * steps for head in range(heads)]
    ).expand_as(plain)
    difference = (placed - plain)[seen]
    if weights_are_given and not recipe.get("softmax"):
        expected = expected.clone()
        expected[:, : model.variants["source"][0].place.heads] = 0
    torch.testing.assert_close(difference, expected[seen], atol=1e-4, rtol=1e-4)


class Watching(Variant):
    def edit(self, terms, syntax):
        self.seen = terms
        return terms


def test_a_variant_gets_turned_queries_and_keys():
    model = small_model({"name": "pascal", "heads": 2}, positions="rotary").eval()
    attention = model.encoder[0].self_attention
    watching = Watching(attention.variants[0].place)
    attention.variants[0] = watching
    x, mask = torch.randn(1, 5, 16), torch.ones(1, 1, 1, 5, dtype=torch.bool)
    attention(x, mask, Syntax({}))
    q, k, v = (attention.project.weight @ x[0].T + attention.project.bias[:, None]).T.chunk(3, 1)
    for t, head in product(range(5), range(2)):
        own = slice(4 * head, 4 * head + 4)
        torch.testing.assert_close(
            watching.seen.q[0, head, t], slow_turn(q[t, own], t), atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(
            watching.seen.k[0, head, t], slow_turn(k[t, own], t), atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(watching.seen.v[0, head, t], v[t, own], atol=1e-5, rtol=1e-5)


# the recipe


def test_defaults_written_out_are_the_same_model_bit_for_bit():
    plain = small_model(seed=3)
    written = small_model(
        seed=3, positions="sinusoid", norm="post", norm_kind="layer", feed_forward="relu"
    )
    assert [*plain.state_dict()] == [*written.state_dict()]
    batch = batch_for(plain, random_batch(plain, [4, 9])[0])
    assert torch.equal(plain(batch).states, written(batch).states)
    assert plain.encoder[0].self_attention.__class__ is SelfAttention


@pytest.mark.parametrize("key", ["positions", "norm", "norm_kind", "feed_forward"])
def test_an_lstm_refuses_the_keys_of_transformers(key):
    with pytest.raises(UsageError, match=f"{key} belongs to architecture: transformer"):
        small_recipe(model={"architecture": "lstm", key: MODERN[key]})


def test_heads_of_odd_width_have_no_planes_to_turn():
    with pytest.raises(UsageError, match=r"heads of width 3 .*rotary turns pairs"):
        small_recipe(model={"model_dim": 12, "heads": 4, "positions": "rotary"})
    with pytest.raises(UsageError, match=r"heads of width 1 "):
        small_recipe(
            model={"model_dim": 16, "heads": 4, "encoder_heads": [16] * 6, "positions": "rotary"}
        )
    assert (
        small_recipe(model={"model_dim": 9, "heads": 3, "positions": "alibi"}).model.positions
        == "alibi"
    )


def test_an_unknown_choice_is_named_with_those_that_there_are():
    with pytest.raises(
        UsageError, match=r"model\.positions: .*'sinusoid', 'rotary', 'alibi' or 'none'"
    ):
        small_recipe(model={"positions": "learned"})


@pytest.mark.journey
def test_it_compiles_as_one_graph():
    model = small_model(
        {"name": "pascal", "heads": 2}, **MODERN, encoder_layers=1, decoder_layers=1
    )
    _, batch = random_batch(model, [4, 2])
    torch.compiler.reset()
    # torch 2.6 compiles it in parts
    whole = tuple(map(int, torch.__version__.split(".")[:2])) > (2, 6)
    compiled = torch.compile(model, fullgraph=whole, backend="aot_eager")
    torch.testing.assert_close(compiled(batch).states, model(batch).states, rtol=1e-5, atol=1e-5)
