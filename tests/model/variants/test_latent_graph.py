"""Latent graphs against loops over pieces, alone and supervised by trees."""

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients, drawn, random_trees, read, with_special
from small import small_model
from walks import number

from synmt.data.batch import collate_source
from synmt.model.attention import Memory
from synmt.model.variant import Place
from synmt.model.variants.latent_graph import LatentGraph

PLACE = Place("source", layer=1, heads=0, model_dim=8, head_dim=4)


def slow_graph(variant, states):
    """Follow the equation for one sentence: p(j | i) with the root last, log p(label | i), the
    annotations."""
    places, rows = [*states, variant.root], []
    for i, state in enumerate(states):
        powers = [
            torch.exp(state @ variant.query.weight.T @ other) * (j != i)
            for j, other in enumerate(places)
        ]
        parents = torch.stack(powers) / sum(powers)
        mean = sum(p * place for p, place in zip(parents, places, strict=True))
        both = torch.cat((state, mean))
        labels = torch.softmax(variant.label.weight @ both + variant.label.bias, 0)
        composed = variant.compose.weight @ torch.cat((both, labels)) + variant.compose.bias
        rows.append((parents, labels.log(), torch.tanh(composed)))
    return [torch.stack(parts) for parts in zip(*rows, strict=True)]


def slow_loss(parents, labels, parse, word_of):
    """Sum -log p of parents and relations; the parent is the first piece of the parent's word."""
    total = parents.new_zeros(())
    for i, word in enumerate(word_of):
        if word >= 0:
            up = parse.parents[word]
            gold = len(parents) if up == word else word_of.index(up)
            total = total - parents[i, gold].log() - labels[i, number(parse.relations[word])]
    return total


@pytest.mark.parametrize("supervised", [False, True])
def test_it_and_its_loss_equal_loops_over_pieces_gradients_too(supervised):
    trees, variant = random_trees(1), drawn(LatentGraph, PLACE, supervised=supervised)
    variant.loss_weight = 0.5
    syntax, mask = read(variant, trees)
    lengths = torch.tensor([len(tree.word_of) for tree in trees])
    # an LSTM has no place for EOS
    real = torch.arange(mask.size(-1)) < lengths[:, None]  # (B, T)
    states = torch.randn(*real.shape, 8, dtype=torch.float64, requires_grad=True)
    memory = variant.annotate(Memory(states, real), syntax)
    annotations, losses = [], []
    for row, (parse, word_of) in enumerate(with_special(trees)):
        length = len(word_of) - 1
        parents, labels, own = slow_graph(variant, states[row, :length])
        annotations.append(own)
        losses.append(0.5 * slow_loss(parents, labels, parse, word_of[:-1].tolist()))
        weights = torch.zeros_like(memory.weights[row])
        weights[:length, :length] = parents[:, :-1] + torch.diag(parents[:, -1])
        torch.testing.assert_close(memory.weights[row], weights)
    assert torch.equal(memory.states, states)
    found, expected = [memory.annotations[real].flatten()], [torch.cat(annotations).flatten()]
    if supervised:
        found += [loss[None] for loss in syntax.losses.values()]
        expected.append(sum(losses)[None])
    leaves = [states, *variant.parameters()]
    assert_same_with_gradients(torch.cat(found), torch.cat(expected), leaves)


def test_a_piece_alone_hangs_on_the_root_and_so_does_a_lone_eos():
    model = small_model({"name": "latent_graph"}, architecture="lstm").eval()
    source = collate_source([np.array([9]), np.array([], dtype=int)])
    memory, _ = model.remember(source, {})
    assert memory.weights[:, 0].tolist() == [[1.0, 0.0], [1.0, 0.0]]
