"""The graph network over the encoder's states against loops over words and their pieces."""

import math

import numpy as np
import pytest
import torch
from attending import assert_alone_as_in_a_batch, random_trees, read, with_eos
from small import MONKEY, MONKEY_WORD_OF, make_variant, random_batch, relation_warnings, small_model
from stepping import assert_predicts_alike

from synmt.data.corpus import Tree
from synmt.model.attention import Memory
from synmt.model.variant import Place, Syntax
from synmt.model.variants.gcn import GRAPH, Gcn, graph
from synmt.speed import fast
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN, base_name

WIDTH = 4
PLACE = Place("source", layer=1, heads=0, model_dim=WIDTH, head_dim=2)


def gcn(place=PLACE, **options):
    variant = make_variant(Gcn, place, **options).double().eval()
    torch.manual_seed(2)
    for weight in variant.parameters():
        torch.nn.init.normal_(weight)
    return variant


def number(relation):
    known = [name for name in (relation, base_name(relation)) if name in KNOWN]
    return KNOWN.index(known[0]) + 1 if known else len(KNOWN) + 1


def slow_layer(layer, states, parse, word_of):
    """Send one message at a time, from each piece of a word to each piece of the other: (T, D) ->
    (T, D)."""
    (up, down), (up_gate, down_gate) = layer.arcs.weight.chunk(2), layer.arc_gates.weight
    rows = []
    for i, state in enumerate(states):
        total = torch.sigmoid(layer.loop_gate(state)) * layer.loop(state)
        for j, sender in enumerate(states):
            one, other = word_of[i], word_of[j]
            if one < 0 or other < 0 or one == other:
                continue
            share = 1 / word_of.tolist().count(other)
            if parse.parents[one] == other:
                row = number(parse.relations[one])
                gate = torch.sigmoid(up_gate @ sender + layer.gate_biases.weight[row, 0])
                total = total + share * gate * (up @ sender + layer.biases.weight[row, :WIDTH])
            if parse.parents[other] == one:
                row = number(parse.relations[other])
                gate = torch.sigmoid(down_gate @ sender + layer.gate_biases.weight[row, 1])
                total = total + share * gate * (down @ sender + layer.biases.weight[row, WIDTH:])
        rows.append(total.clamp(min=0))
    return torch.stack(rows)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("depth", [1, 2])
def test_it_equals_a_loop_over_messages_on_random_trees_gradients_too(depth, residual):
    trees, variant = random_trees(depth), gcn(depth=depth, residual=residual)
    syntax, mask = read(variant, trees)
    states = torch.randn(*mask[:, 0, 0].shape, WIDTH, dtype=torch.float64, requires_grad=True)
    found = variant.annotate(Memory(states, mask[:, 0, 0]), syntax).states
    direction = torch.randn_like(found)
    total = torch.zeros((), dtype=torch.float64)
    for row, (parse, word_of) in enumerate(with_eos(trees)):
        expected = states[row, : len(word_of)]
        for layer in variant.layers:
            output = slow_layer(layer, expected, parse, word_of)
            expected = expected + output if residual else output
        torch.testing.assert_close(found[row, : len(word_of)], expected)
        total = total + (expected * direction[row, : len(word_of)]).sum()
    leaves = [states, *variant.parameters()]
    fast = torch.autograd.grad(
        (found * direction * mask[:, 0, 0, :, None]).sum(), leaves, retain_graph=True
    )
    torch.testing.assert_close(fast, torch.autograd.grad(total, leaves))


def test_its_arithmetic_has_the_numerical_gradient():
    variant = gcn(depth=1)
    syntax, mask = read(variant, random_trees(3, (3, 4)))
    states = torch.randn(*mask[:, 0, 0].shape, WIDTH, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda s: variant.annotate(Memory(s, mask[:, 0, 0]), syntax).states, states
    )


@pytest.mark.parametrize(
    ("residual", "expected"), [(False, [1.5, 3, 5, 4.5, 6, 0.5]), (True, [2.5, 5, 8, 8.5, 11, 1.5])]
)
def test_the_monkey_with_open_gates_at_one_half(residual, expected):
    variant = gcn(
        Place("source", layer=1, heads=0, model_dim=1, head_dim=1), depth=1, residual=residual
    )
    for name, weight in variant.named_parameters():
        torch.nn.init.constant_(
            weight, float(name in ("layers.0.loop.weight", "layers.0.arcs.weight"))
        )
    # eats: ½ (3 + 2 + 5), its own state, monkey's and banana's; EOS, whose state is 1, has its loop
    syntax, mask = read(variant, [Tree(MONKEY, np.arange(5))])
    states = torch.tensor([1.0, 2, 3, 4, 5, 1], dtype=torch.float64)[None, :, None]
    assert (
        variant.annotate(Memory(states, mask[:, 0, 0]), syntax).states.flatten().tolist()
        == expected
    )


def test_the_pieces_of_a_word_share_its_message_and_the_root_hears_from_nobody_above():
    upward, downward = graph(MONKEY, np.append(MONKEY_WORD_OF, -1))
    # ▁The ▁mon key ▁eats ▁a ▁ban ana </s>
    assert upward[0].tolist() == [0, 0.5, 0.5, 0, 0, 0, 0, 0]
    assert (
        upward[1].tolist() == upward[2].tolist() == upward[5].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    )
    assert downward[3].tolist() == [0, 0.5, 0.5, 0, 0, 0.5, 0.5, 0]
    assert not upward[3].any()
    specials = [table for both in (upward, downward) for table in (both[7], both[:, 7])]
    assert not np.array(specials).any()


def test_a_sentence_of_one_word_and_one_without_words_have_their_loops_only():
    one = Parse(["Go"], np.array([[0, 2]]), np.array([0]), ["root"])
    none = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    assert not GRAPH.compute(one, np.array([0, 0, -1])).any()
    assert GRAPH.compute(none, np.array([-1, -1])).tolist() == np.zeros((2, 2, 2)).tolist()


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_a_sentence_alone_equals_the_sentence_in_a_batch_whatever_the_tree(architecture):
    model = small_model({"name": "gcn"}, architecture=architecture).double().eval()
    assert_alone_as_in_a_batch(model, [1, 7, 3])


def test_it_reads_the_normed_output_of_a_transformer_and_the_states_of_an_lstm():
    for options in ({"norm": "pre"}, {"architecture": "lstm"}):
        model = small_model({"name": "gcn"}, **options).eval()
        (variant,) = model.variants["source"]
        _, batch = random_batch(model, [3, 5])
        memory, syntax = model.remember(batch.source, batch.source_signals)
        expected = variant.annotate(model.encode(batch.source), syntax)
        assert torch.equal(memory.states, expected.states)
        assert not torch.equal(memory.states, model.encode(batch.source).states)


def test_dropped_messages_are_made_up_for_in_the_mean():
    variant = gcn(depth=1, edge_dropout=0.5, dropout=0.0, residual=False)
    with torch.no_grad():
        for weight in variant.parameters():
            weight.abs_()
    syntax, mask = read(variant, [Tree(MONKEY, np.arange(5))])
    states = torch.rand(1, 6, WIDTH, dtype=torch.float64)
    expected = variant.annotate(Memory(states, mask[:, 0, 0]), syntax).states
    many = Syntax(
        {name: signal.expand(4000, *signal.shape[1:]) for name, signal in syntax.signals.items()}
    )
    torch.manual_seed(0)
    drawn = (
        variant.train().annotate(Memory(states.expand(4000, -1, -1), mask[:, 0, 0]), many).states
    )
    assert len({round(value, 9) for value in drawn[:, 2, 0].tolist()}) == 4
    torch.testing.assert_close(drawn.mean(0), expected[0], rtol=0.05, atol=0)


def test_its_weights_begin_as_in_the_released_code():
    torch.manual_seed(1)
    layer = make_variant(Gcn, Place("source", layer=1, heads=0, model_dim=64, head_dim=4)).layers[0]
    assert layer.loop_gate.bias.tolist() == [1.0]
    for weight in (layer.loop.weight, layer.arcs.weight, layer.biases.weight):
        assert math.isclose(weight.std().item(), 0.01, rel_tol=0.05)


def test_a_plain_decoder_after_it_is_still_the_fast_one():
    model = small_model({"name": "gcn"}).eval()
    assert (assert_predicts_alike(model) is model) == (fast("decoder") is None)


def test_unknown_relations_share_a_bias_and_are_told_of():
    (warning,) = relation_warnings(Gcn, {"nsubj": 3, "SUJ": 2})
    assert (
        "1 relation (2 of 5 words) is unknown to gcn; these words share one bias: SUJ (2)"
        in warning
    )
    assert not relation_warnings(Gcn, {"nsubj:pass": 3})
