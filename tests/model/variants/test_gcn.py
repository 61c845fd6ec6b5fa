"""The graph network over the encoder's states against a loop over messages."""

import pytest
import torch
from attending import PLACE, assert_same_with_gradients, drawn, random_trees, read, with_special
from small import random_batch, small_model
from walks import number

from synmt.model.attention import Memory
from synmt.model.variant import Syntax
from synmt.model.variants.gcn import Gcn

WIDTH = PLACE.model_dim
# the shares of pieces are float32
NEAR = {"rtol": 1e-5, "atol": 1e-6}


def slow_layer(layer, states, parse, word_of):
    """Send one message at a time, from each piece of a word to each piece of the other: (T, D) ->
    (T, D)."""
    owners, rows = word_of.tolist(), []

    def message(direction, sender, relation):
        row, width = 1 + number(relation), slice(direction * WIDTH, (direction + 1) * WIDTH)
        gate = layer.arc_gates.weight[direction] @ sender + layer.gate_biases.weight[row, direction]
        message = layer.arcs.weight[width] @ sender + layer.biases.weight[row, width]
        return torch.sigmoid(gate) * message

    for state, own in zip(states, owners, strict=True):
        total = torch.sigmoid(layer.loop_gate(state)) * layer.loop(state)
        for sender, other in zip(states, owners, strict=True):
            if min(own, other) < 0 or own == other:
                continue
            share = 1 / owners.count(other)
            if parse.parents[own] == other:
                total = total + share * message(0, sender, parse.relations[own])
            if parse.parents[other] == own:
                total = total + share * message(1, sender, parse.relations[other])
        rows.append(total.clamp(min=0))
    return torch.stack(rows)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("depth", [1, 2])
def test_it_equals_a_loop_over_messages_gradients_too(depth, residual):
    trees, variant = random_trees(depth), drawn(Gcn, depth=depth, residual=residual).eval()
    syntax, mask = read(variant, trees)
    real = mask[:, 0, 0]  # (B, T)
    states = torch.randn(*real.shape, WIDTH, dtype=torch.float64, requires_grad=True)
    rows = []
    for own, (parse, word_of) in zip(states, with_special(trees), strict=True):
        row = own[: len(word_of)]
        for layer in variant.layers:
            output = slow_layer(layer, row, parse, word_of)
            row = row + output if residual else output
        rows.append(row)
    found = variant.annotate(Memory(states, real), syntax).states[real]
    assert_same_with_gradients(found, torch.cat(rows), [states, *variant.parameters()], **NEAR)


def test_it_reads_the_normed_output_of_a_transformer_and_the_states_of_an_lstm():
    for options in ({"norm": "pre"}, {"architecture": "lstm"}):
        model = small_model({"name": "gcn"}, **options).eval()
        _, batch = random_batch(model, [3, 5])
        memory, syntax = model.remember(batch.source, batch.source_signals)
        expected = model.variants["source"][0].annotate(model.encode(batch.source), syntax)
        assert torch.equal(memory.states, expected.states)


def test_dropped_messages_are_made_up_for_in_the_mean():
    variant = drawn(Gcn, depth=1, edge_dropout=0.5, dropout=0.0, residual=False)
    with torch.no_grad():
        for weight in variant.parameters():
            weight.abs_()
    syntax, mask = read(variant, random_trees(0, [3]))
    memory = Memory(torch.rand(1, mask.size(-1), WIDTH, dtype=torch.float64), mask[:, 0, 0])
    many = {name: torch.cat([signal] * 4000) for name, signal in syntax.signals.items()}
    expected = variant.eval().annotate(memory, syntax).states
    torch.manual_seed(0)
    repeated = memory.edit(states=torch.cat([memory.states] * 4000))
    dropped = variant.train().annotate(repeated, Syntax(many)).states
    assert not torch.allclose(dropped[0], dropped[1])
    torch.testing.assert_close(dropped.mean(0), expected[0], rtol=0.05, atol=0)
