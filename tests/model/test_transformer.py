"""The Transformer, as published and with newer parts, against a slow one written from the
equations; and the laws that hold for any of its parts."""

import cmath
import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from attending import (
    assert_alone_as_in_a_batch,
    assert_same_with_gradients,
    assert_step_by_step_as_all_at_once,
    seen_mask,
)
from small import PIECES, batch_for, model_recipe, random_batch, shaken, small_model
from stepping import assert_equal_steps
from variant_cases import DEFAULTS, EDITS_ATTENTION, made

from synmt.data.vocabulary import PAD
from synmt.model.multihead import SelfAttention
from synmt.model.positions import Rotary
from synmt.model.seq2seq import WAVES, sinusoids
from synmt.model.transformer import Transformer
from synmt.model.variant import Syntax
from synmt.training.loss import Objective

POSITIONS = ["sinusoid", "rotary", "alibi", "none"]
FUNCTIONS = ["relu", "gelu", "swiglu"]
EMBEDDINGS = {"shared": (True, True), "tied": (False, True), "separate": (False, False)}
"""Whether the source's table is the target's, and the target's the output's."""

# every two choices meet, and every three of the first three kinds
CHOICES = [
    {
        "positions": POSITIONS[p],
        "norm": ["pre", "post"][n],
        "norm_kind": ["layer", "rms"][k],
        "feed_forward": FUNCTIONS[(p + n + k) % 3],
        "embeddings": list(EMBEDDINGS)[(p + 2 * n + k) % 3],
    }
    for p, n, k in product(range(4), range(2), range(2))
]
MARIAN = {"positions": "vaswani", "norm": "post", "norm_kind": "layer", "feed_forward": "swish"}
CHOICES.append({**MARIAN, "embeddings": "shared"})


def name_of(choice):
    return "-".join(choice.values())


# the equations, in loops


def slow_position(place, model_dim, positions="sinusoid"):
    """sin(place · 10000^(-i / (D/2 - 1))) for i < D/2, then the cosines (tensor2tensor's order of
    Vaswani et al., who have D/2 in place of D/2 - 1)."""
    half = model_dim // 2
    last = half - 1 if positions == "sinusoid" else half
    angles = [place * 10_000 ** (-i / last) for i in range(half)]
    return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float32)


def slow_embedding(embedding, ids, positions):
    x = embedding.table.weight[ids] * math.sqrt(embedding.table.embedding_dim)
    if positions in WAVES:
        own = [slow_position(place, x.size(1), positions) for place in range(len(ids))]
        x = x + torch.stack(own)
    return x


def slow_turn(x, place):
    """Multiply x_i + i x_(i + d/2) by exp(i place 10000^(-2i/d))."""
    half = len(x) // 2
    turns = [cmath.exp(1j * place * 10_000 ** (-2 * i / len(x))) for i in range(half)]
    real = [x[i] * turns[i].real - x[half + i] * turns[i].imag for i in range(half)]
    imaginary = [x[i] * turns[i].imag + x[half + i] * turns[i].real for i in range(half)]
    return torch.stack(real + imaginary)


def slow_attention(module, q, k, v, keep, positions="none"):
    """One head, one query and one key at a time: q (Tq, D), k and v (Tk, D), keep (Tq, Tk)."""
    width, rows = q.size(1) // module.heads, []
    if positions == "rotary":
        q, k = (
            torch.stack([torch.cat([slow_turn(one, t) for one in x.split(width)]) for t, x in rows])
            for rows in map(enumerate, (q, k))
        )
    for t, query in enumerate(q):
        heads = []
        for head in range(module.heads):
            own, scores = slice(head * width, (head + 1) * width), []
            slope = 2 ** (-8 * (head + 1) / module.heads) if positions == "alibi" else 0.0
            seen = keep[t].nonzero().flatten().tolist()
            for j in seen:
                scores.append(query[own] @ k[j, own] / math.sqrt(width) - slope * abs(t - j))
            heads.append(torch.stack(scores).softmax(0) @ v[seen, own])
        rows.append(torch.cat(heads))
    return torch.stack(rows) @ module.output.weight.T + module.output.bias


def slow_norm(norm, kind, x):
    """(x - mean) / √variance · g + b, or x / √mean(x²) · g."""
    centred, eps = (x - x.mean(-1, keepdim=True), 1e-5) if kind == "layer" else (x, 1e-6)
    scaled = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps) * norm.weight
    return scaled + norm.bias if kind == "layer" else scaled


def slow_feed_forward(module, kind, x):
    if kind == "swiglu":
        w, v = module.inner.weight.chunk(2)
        z = x @ w.T
        return (z / (1 + torch.exp(-z)) * (x @ v.T)) @ module.output.weight.T
    z = x @ module.inner.weight.T + module.inner.bias
    functions = {
        "relu": lambda z: z * (z > 0),
        "gelu": lambda z: z * (1 + torch.erf(z / math.sqrt(2))) / 2,
        "swish": lambda z: z / (1 + torch.exp(-z)),
    }
    inner = functions[kind](z)
    return inner @ module.output.weight.T + module.output.bias


def slow_side(layers, x, keep, recipe, memory=None):
    """Run the layers of one side over one sentence: x (T, D), keep (T, T), memory (Ts, D)."""

    def residual(part, x, function):
        if recipe["norm"] == "pre":
            return x + function(slow_norm(part.norm, recipe["norm_kind"], x))
        return slow_norm(part.norm, recipe["norm_kind"], x + function(x))

    def attend(x, module):
        parts = x @ module.project.weight.T + module.project.bias
        return slow_attention(module, *parts.chunk(3, 1), keep, recipe["positions"])

    def attend_to_source(x, module):
        q = x @ module.query.weight.T + module.query.bias
        parts = memory @ module.key_value.weight.T + module.key_value.bias
        return slow_attention(module, q, *parts.chunk(2, 1), torch.ones(len(x), len(memory)))

    for layer in layers:
        first, *middle, last = layer.residuals
        x = residual(first, x, lambda x: attend(x, layer.self_attention))
        for part in middle:
            x = residual(part, x, lambda x: attend_to_source(x, layer.cross_attention))
        x = residual(
            last, x, lambda x: slow_feed_forward(layer.feed_forward, recipe["feed_forward"], x)
        )
    return x


def slow_states(model, recipe, source, target):
    """Run teacher forcing over one sentence: (Tt, D)."""

    def finish(norm, x):
        return slow_norm(norm, recipe["norm_kind"], x) if recipe["norm"] == "pre" else x

    x = slow_embedding(model.source_embedding, source, recipe["positions"])
    memory = slow_side(
        model.encoder, x, seen_mask("source", [len(source)])[0, 0].expand(len(x), -1), recipe
    )
    memory = finish(model.encoder_norm, memory)
    x = slow_embedding(model.target_embedding, target, recipe["positions"])
    past = seen_mask("target", [len(target)])
    return finish(model.decoder_norm, slow_side(model.decoder, x, past, recipe, memory))


@pytest.mark.parametrize("choice", CHOICES, ids=name_of)
def test_it_equals_a_slow_one_gradients_too(choice):
    model = shaken(**choice)
    # loops take long: the seed makes short sentences of several lengths
    _, batch = random_batch(model, [3, 1], seed=6)
    states, expected = model(batch).states, []
    for row in range(2):
        source, target = batch.source.ids[row][batch.source.mask[row]], batch.target_input[row]
        target = target[batch.target_output[row] != PAD]
        expected.append(slow_states(model, choice, source, target))
    found, slow = states[batch.target_output != PAD], torch.cat(expected)
    torch.testing.assert_close(found, slow, atol=1e-5, rtol=1e-4)
    leaves = [*model.parameters()]
    assert_same_with_gradients(found, slow, leaves, unused=True, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("choice", CHOICES, ids=name_of)
def test_it_decodes_step_by_step_fast_and_slowly(choice):
    model = shaken(**choice)
    # after six steps, a sentence has left
    assert_equal_steps(model, steps=8)
    with torch.no_grad():
        assert_step_by_step_as_all_at_once(model, rtol=1e-4)


@pytest.mark.parametrize("choice", CHOICES, ids=name_of)
def test_padding_and_neighbours_change_nothing(choice):
    with torch.no_grad():
        assert_alone_as_in_a_batch(shaken(**choice), [2, 9, 5, 1])


@pytest.mark.parametrize("embeddings", EMBEDDINGS)
def test_embeddings_are_shared_as_their_name_says(embeddings):
    model = Transformer(model_recipe(embeddings=embeddings), PIECES, PIECES)
    source, target = model.source_embedding.table.weight, model.target_embedding.table.weight
    assert (source is target, target is model.output_weight) == EMBEDDINGS[embeddings]


@pytest.mark.parametrize("positions", WAVES)
@pytest.mark.parametrize("model_dim", [4, 16, 128])
def test_positions_are_the_published_sinusoids(model_dim, positions):
    expected = torch.stack([slow_position(place, model_dim, positions) for place in range(600)])
    found = WAVES[positions](600, model_dim)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_the_bias_of_the_output_layer_is_learned_and_added_when_decoding():
    model = shaken(**MARIAN, output_bias=True)
    _, batch = random_batch(model, [3, 1], seed=6)
    logits = model(batch).states @ model.output_weight.T + model.output_bias
    targets = batch.target_output
    for smoothing in (0.0, 0.1):
        found = Objective(model, smoothing)(batch)["loss"].float()
        usual = F.cross_entropy(
            logits[targets != PAD],
            targets[targets != PAD],
            label_smoothing=smoothing,
            reduction="sum",
        )
        assert_same_with_gradients(found, usual, (model.output_bias, model.output_weight))
    torch.testing.assert_close(model.logits(model(batch).states), logits)
    assert_equal_steps(model, steps=8)


def test_the_smallest_width_has_positions_too():
    assert sinusoids(3, 2).isfinite().all()


def test_positions_go_on_beyond_the_table():
    model, ids = shaken(), torch.randint(4, PIECES, (1, 700))
    x, expected = (
        model.source_embedding(ids)[0],
        slow_embedding(model.source_embedding, ids[0], "sinusoid"),
    )
    torch.testing.assert_close(x, expected, atol=1e-4, rtol=1e-4)
    late = model.target_embedding(ids[:, :1], first=1000)
    expected = model.target_embedding.table(ids[:, :1]) * 4 + slow_position(1000, 16)
    torch.testing.assert_close(late, expected, atol=1e-4, rtol=1e-4)
    assert "source_embedding.positions" not in model.state_dict()


def test_vectors_are_turned_beyond_the_table_too():
    q, rotary = torch.randn(1, 8), Rotary(8)
    torch.testing.assert_close(rotary(q, 700)[0], slow_turn(q[0], 700), atol=1e-4, rtol=1e-4)
    assert not rotary.state_dict()


def test_swiglu_of_two_thirds_has_as_many_products_as_relu():
    counts = []
    for options in ({"feedforward_dim": 24}, {"feedforward_dim": 16, "feed_forward": "swiglu"}):
        layers = small_model(**options).encoder[0].feed_forward
        counts.append(sum(weight.numel() for weight in layers.parameters() if weight.dim() == 2))
    assert counts[0] == counts[1]


# with variants


def with_positions(recipe, positions):
    """Build the model of a variant in its first layer."""
    return made({**recipe, "layers": [1]}, layers=1, positions=positions)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
@pytest.mark.parametrize("recipe", [case for case in EDITS_ATTENTION if case in DEFAULTS])
def test_a_variant_keeps_its_laws_beside_other_positions(recipe, positions):
    model = with_positions(recipe, positions)
    assert_alone_as_in_a_batch(model, [2, 6, 1])
    assert_step_by_step_as_all_at_once(model, rtol=1e-4)


@pytest.mark.parametrize("recipe", EDITS_ATTENTION)
def test_alibi_adds_to_the_scores_of_every_variant(recipe):
    model, side = with_positions(recipe, "alibi"), recipe["side"]
    _, batch = random_batch(model, [5, 8])
    layers, signals, ids = model.decoder, batch.target_signals, batch.target_input
    seen = None
    if side == "source":
        layers, signals, ids = model.encoder, batch.source_signals, batch.source.ids
        seen = batch.source.mask[:, None, None]
    x, attention = torch.randn(*ids.shape, model.output_weight.size(1)), layers[0].self_attention

    def scores(kind):
        attention.__class__ = kind
        syntax = Syntax(signals, states=[x], ids=batch.source.ids)
        return torch.cat([part.scores() for part in attention.terms(x, seen, syntax)], 1)

    placed, plain = scores(type(attention)), scores(SelfAttention)
    places = torch.arange(ids.size(1))
    steps = (places[:, None] - places).abs()
    heads = torch.arange(1, attention.heads + 1)[:, None, None]
    expected = (-(2 ** (-8 * heads / attention.heads)) * steps).expand_as(plain).clone()
    if recipe.get("kind") == "lda" and not recipe.get("softmax"):
        # the weights are the distribution itself
        expected[:, : model.variants["source"][0].place.heads] = 0
    finite = ~plain.isneginf()
    torch.testing.assert_close((placed - plain)[finite], expected[finite], atol=1e-4, rtol=1e-4)


def test_a_variant_gets_turned_queries_and_keys(monkeypatch):
    model = small_model({"name": "pascal", "heads": 2}, positions="rotary").eval()
    attention, seen = model.encoder[0].self_attention, []
    monkeypatch.setattr(attention.variants[0], "edit", lambda terms, _: seen.append(terms) or terms)
    x = torch.randn(1, 5, 16)
    attention(x, None, Syntax({}))
    projected = (x[0] @ attention.project.weight.T + attention.project.bias).view(5, 12, 4)
    for t, head in product(range(5), range(2)):
        for found, own in ((seen[0].q, head), (seen[0].k, 4 + head)):
            expected = slow_turn(projected[t, own], t)
            torch.testing.assert_close(found[0, head, t], expected, atol=1e-5, rtol=1e-5)


def test_defaults_written_out_are_the_same_model_bit_for_bit():
    written = {
        "positions": "sinusoid",
        "norm": "post",
        "norm_kind": "layer",
        "feed_forward": "relu",
    }
    plain, same = small_model(seed=3), small_model(seed=3, **written)
    assert [*plain.state_dict()] == [*same.state_dict()]
    batch = batch_for(plain, random_batch(plain, [4, 9])[0])
    assert torch.equal(plain(batch).states, same(batch).states)
