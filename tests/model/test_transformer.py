"""The Transformer against a slow one of plain torch, and the laws that hold for any of its
sizes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small import PIECES, SIZE, random_batch, shaken
from torch import nn

from synmt.data.batch import Sequences, collate_source
from synmt.data.vocabulary import PAD
from synmt.model.seq2seq import sinusoids
from synmt.model.transformer import Transformer
from synmt.recipe.schema import ModelRecipe

NORMS = ["post", "pre"]
EMBEDDINGS = ["shared", "tied", "separate"]


def slow_attention(module, x, memory, keep, parts):
    """Copy the projections `parts` (q, k, v weights and biases) into nn.MultiheadAttention and ask
    that."""
    theirs = nn.MultiheadAttention(x.size(-1), module.heads, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.out_proj.load_state_dict(module.output.state_dict())
    # theirs is True where a query may not look: (B H, Tq, Tk)
    hidden = (~keep).repeat_interleave(module.heads, 0)
    return theirs(x, memory, memory, attn_mask=hidden, need_weights=False)[0]


def slow_residual(residual, x, function):
    if residual.pre:
        return x + function(residual.norm(x))
    return residual.norm(x + function(x))


def slow_feed_forward(module):
    return lambda x: F.linear(
        F.relu(F.linear(x, *module.inner.parameters())), *module.output.parameters()
    )


def slow_embedding(table, ids):
    """Loop over the pieces of (B, T)."""
    rows = []
    for sentence in ids.tolist():
        places = torch.stack(
            [slow_position(place, table.embedding_dim) for place in range(len(sentence))]
        )
        rows.append(
            torch.stack([table.weight[piece] for piece in sentence]) * table.embedding_dim**0.5
            + places
        )
    return torch.stack(rows)


def slow_position(place, model_dim):
    """sin(place · 10000^(-i / (D/2 - 1))) for i < D/2, then the cosines (tensor2tensor's order of
    Vaswani et al.)."""
    half = model_dim // 2
    angles = [place * 10_000 ** (-i / (half - 1)) for i in range(half)]
    return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)], dtype=torch.float32)


def slow_forward(model, batch):
    """Run teacher forcing as the figure of Vaswani et al. has it."""
    mask, ids = batch.source.mask, batch.target_input
    x = slow_embedding(model.source_embedding.table, batch.source.ids)
    for layer in model.encoder:
        own = layer.self_attention
        keep = mask[:, None, :].expand(-1, mask.size(1), -1)
        parts = _parts(own.project, 3)
        x = slow_residual(layer.residuals[0], x, lambda x: slow_attention(own, x, x, keep, parts))
        x = slow_residual(layer.residuals[1], x, slow_feed_forward(layer.feed_forward))
    memory = model.encoder_norm(x)
    x = slow_embedding(model.target_embedding.table, ids)
    for layer in model.decoder:
        own, cross = layer.self_attention, layer.cross_attention
        past = torch.tensor(
            [[q >= k for k in range(ids.size(1))] for q in range(ids.size(1))]
        ).expand(len(ids), -1, -1)
        seen = mask[:, None, :].expand(-1, ids.size(1), -1)
        parts, others = _parts(own.project, 3), [cross.query, *_parts(cross.key_value, 2)]
        x = slow_residual(layer.residuals[0], x, lambda x: slow_attention(own, x, x, past, parts))
        x = slow_residual(
            layer.residuals[1], x, lambda x: slow_attention(cross, x, memory, seen, others)
        )
        x = slow_residual(layer.residuals[2], x, slow_feed_forward(layer.feed_forward))
    return model.decoder_norm(x)


def _parts(projection, count):
    """Take a projection of several matrices apart."""
    parts = []
    for weight, bias in zip(
        projection.weight.chunk(count), projection.bias.chunk(count), strict=True
    ):
        part = nn.Linear(weight.size(1), weight.size(0))
        part.weight, part.bias = nn.Parameter(weight), nn.Parameter(bias)
        parts.append(part)
    return parts


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("embeddings", EMBEDDINGS)
def test_it_equals_a_slow_one_of_plain_torch(norm, embeddings):
    model = shaken(norm=norm, embeddings=embeddings)
    _, batch = random_batch(model, [3, 7, 1])
    with torch.no_grad():
        fast, slow = model(batch).states, slow_forward(model, batch)
    real = batch.target_output != PAD
    torch.testing.assert_close(fast[real], slow[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("embeddings", "same"),
    [("shared", (True, True)), ("tied", (False, True)), ("separate", (False, False))],
)
def test_embeddings_are_shared_as_their_name_says(embeddings, same):
    recipe = ModelRecipe.model_validate({**SIZE, "embeddings": embeddings})
    model = Transformer(recipe, PIECES, PIECES)
    source, target = model.source_embedding.table.weight, model.target_embedding.table.weight
    assert (source is target, target is model.output_weight) == same
    distinct = {id(weight) for weight in (source, target, model.output_weight)}
    assert sum(p.shape == (PIECES, 16) for p in model.parameters()) == len(distinct)


@pytest.mark.parametrize("model_dim", [4, 16, 128])
def test_positions_are_the_published_sinusoids(model_dim):
    expected = torch.stack([slow_position(place, model_dim) for place in range(600)])
    torch.testing.assert_close(sinusoids(600, model_dim), expected, atol=1e-5, rtol=1e-5)


def test_the_smallest_width_has_positions_too():
    assert sinusoids(3, 2).isfinite().all()


def test_positions_go_on_beyond_the_table():
    model = shaken()
    ids = torch.randint(4, PIECES, (1, 700))
    x = model.source_embedding(ids)
    assert model.source_embedding.positions.size(0) == 1400
    torch.testing.assert_close(
        x, slow_embedding(model.source_embedding.table, ids), atol=1e-4, rtol=1e-4
    )
    late = model.target_embedding(ids[:, :1], first=1000)
    expected = model.target_embedding.table(ids[:, :1]) * 4 + slow_position(1000, 16)
    torch.testing.assert_close(late, expected, atol=1e-4, rtol=1e-4)
    assert "source_embedding.positions" not in model.state_dict()


@pytest.mark.parametrize("norm", NORMS)
def test_step_by_step_equals_all_at_once(norm):
    model = shaken(norm=norm)
    _, batch = random_batch(model, [3, 7, 1])
    with torch.no_grad():
        memory, _ = model.remember(batch.source, {})
        whole = model.decode(memory, batch.target_input)
        state = model.start(memory)
        steps = [model.step(state, column[:, None])[:, 0] for column in batch.target_input.T]
    torch.testing.assert_close(torch.stack(steps, 1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_padding_and_neighbours_change_nothing(norm):
    model = shaken(norm=norm)
    examples, batch = random_batch(model, [3, 7, 1, 5])
    with torch.no_grad():
        together = model(batch).states
        for row, example in enumerate(examples):
            own = slice(row, row + 1), slice(len(example.source) + 1)
            source = Sequences(
                batch.source.ids[own], batch.source.mask[own], batch.source.lengths[own[0]]
            )
            target_input = batch.target_input[row : row + 1, : len(example.target) + 1]
            expected = model(replace(batch, source=source, target_input=target_input)).states[0]
            torch.testing.assert_close(
                together[row, : len(expected)], expected, atol=1e-5, rtol=1e-5
            )


@pytest.mark.parametrize("norm", NORMS)
def test_only_what_a_sentence_reads_gets_a_gradient(norm):
    model = shaken(norm=norm)
    _, batch = random_batch(model, [3, 7])
    model(batch).states[0, 0].sum().backward()
    gradients = model.target_embedding.table.weight.grad
    read = {*batch.source.ids[0].tolist(), int(batch.target_input[0, 0])}
    assert {row for row in range(PIECES) if gradients[row].any()} <= read


def test_the_base_model_has_as_many_weights_as_published():
    # Bugliarello & Okazaki count 74.85 M for `base` with 60,000 joint pieces:
    # 60,000 · 512 + 6 · (4 · 512² + 4 · 512 + 2 · 512 · 2048 + 2048 + 512 + 4 · 512) + 6 · (… + 4 ·
    # 512² + …)
    recipe = ModelRecipe.model_validate({"size": "base"})
    with torch.device("meta"):
        model = Transformer(recipe, 60_000, 60_000)
    attention, feed_forward, norm = 4 * (512**2 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == 60_000 * 512 + 6 * (encoder + decoder)
    assert count // 10_000 == 7_485


def test_a_longest_line_fits_into_attention():
    model = shaken()
    source = collate_source([np.random.default_rng(0).integers(4, PIECES, 600)])
    with torch.no_grad():
        assert model.encode(source).states.isfinite().all()
