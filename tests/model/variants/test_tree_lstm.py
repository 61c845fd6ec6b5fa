"""Tree-to-sequence against a recursion written from the paper's equations; its memory and its
start."""

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients
from small import (
    batch_for,
    examples_of,
    random_batch,
    random_example,
    scattered_trees,
    small_model,
)

from synmt.data.batch import collate
from synmt.data.corpus import Example, Tree
from synmt.decode.forced import force
from synmt.model.variants.tree_lstm import TreeCell, join_nodes
from synmt.syntax.constituent_signals import MERGES, owners
from synmt.syntax.constituents import binary_tree
from synmt.syntax.parse import flat_parse
from synmt.syntax.reading import Reading


def slow_cell(cell, left, right):
    """Compute one node from the equations, gate by gate."""
    (h_left, c_left), (h_right, c_right) = left, right
    rows = cell.gates.weight.chunk(5), cell.gates.bias.chunk(5)
    h = torch.cat((h_left, h_right))
    i, f_left, f_right, o, u = (weight @ h + bias for weight, bias in zip(*rows, strict=True))
    c = i.sigmoid() * u.tanh() + f_left.sigmoid() * c_left + f_right.sigmoid() * c_right
    return o.sigmoid() * c.tanh(), c


def slow_nodes(cell, states, parse, word_of):
    """Join the pieces of each word from left to right, then words and phrases; nodes in the order
    of their merges."""
    owner, joined = owners(word_of), []

    def join(left, right):
        joined.append(slow_cell(cell, left, right))
        return joined[-1]

    nodes = []
    for word in range(len(parse)):
        first, *others = [(states[place], states[place]) for place in np.flatnonzero(owner == word)]
        for other in others:
            first = join(first, other)
        nodes.append(first)
    for left, right in binary_tree(parse).tolist():
        nodes.append(join(nodes[left], nodes[right]))
    return joined


@pytest.mark.parametrize("seed", range(5))
def test_nodes_equal_the_recursion_gradients_too(seed):
    trees = scattered_trees(seed, (1, 2, 5, 8))
    batch = collate(examples_of(trees), Reading([MERGES]))
    torch.manual_seed(seed)
    cell = TreeCell(3).double()
    states = torch.randn(*batch.source.ids.shape, 3, dtype=torch.float64, requires_grad=True)
    fast = join_nodes(cell, torch.cat((states, states), -1), batch.source_signals["merges"])
    slow = torch.zeros_like(fast)
    for row, (own, tree) in enumerate(zip(states, trees, strict=True)):
        word_of = np.append(tree.word_of, -1)
        for number, (h, c) in enumerate(slow_nodes(cell, own, tree.parse, word_of)):
            slow[row, number] = torch.cat((h, c))
    assert_same_with_gradients(fast, slow, (states, *cell.parameters()))


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_the_memory_has_the_states_then_the_phrases_and_an_lstm_starts_from_the_root(architecture):
    model = small_model({"name": "tree_lstm"}, architecture=architecture).eval()
    random, [variant] = np.random.default_rng(0), model.variants["source"]
    word = Example(
        9, np.array([9]), np.array([7]), {"source": Tree(flat_parse("a"), np.array([0]))}
    )
    examples = [*(random_example(words, random) for words in (6, 3)), word]
    batch = batch_for(model, examples)
    plain = model.encode(batch.source, model.syntax("source", batch.source_signals))
    memory, _ = model.remember(batch.source, batch.source_signals)
    length = memory.pieces
    torch.testing.assert_close(memory.states[:, :length], plain.states)
    assert torch.equal(memory.mask[:, :length], plain.mask)
    for row, example in enumerate(examples):
        tree = example.trees["source"]
        nodes = slow_nodes(variant.cell, plain.states[row], tree.parse, tree.word_of)
        assert memory.mask[row, length:].sum() == len(nodes) == len(example.source) - 1
        for number, (h, _) in enumerate(nodes):
            torch.testing.assert_close(memory.states[row, length + number], h)
        if architecture == "lstm":
            for layer, last in enumerate(zip(*(end[:, row] for end in plain.ends), strict=True)):
                # a single piece has no phrase
                expected = slow_cell(variant.start, last, nodes[-1]) if nodes else last
                torch.testing.assert_close([end[layer, row] for end in memory.ends], [*expected])


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_a_sentence_without_words_and_a_batch_of_such_sentences_have_no_phrases(architecture):
    model = small_model({"name": "tree_lstm"}, architecture=architecture).eval()
    nothing = np.zeros(0, int)
    empty = Example(0, nothing, np.array([7]), {"source": Tree(flat_parse(""), nothing)})
    alone = model(batch_for(model, [empty])).states
    beside = model(batch_for(model, [empty, random_example(5, np.random.default_rng(1))])).states
    assert alone.isfinite().all()
    torch.testing.assert_close(alone[0], beside[0, : alone.size(1)], rtol=1e-5, atol=1e-5)


def test_alignments_read_the_pieces_only():
    model = small_model({"name": "tree_lstm"}).eval()
    examples, batch = random_batch(model, [4, 6])
    memory, _ = model.remember(batch.source, batch.source_signals)
    found = force(model, memory, [example.target for example in examples], attention=True)
    for example, forced in zip(examples, found, strict=True):
        # phrases have the rest of the weight
        assert (forced.cross[:, : len(example.source) + 1].sum(1) < 1).all()
