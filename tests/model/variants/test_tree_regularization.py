"""TreeReg against a loop written from the equation of the paper, and the states that it reads."""

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients
from small import MONKEY, examples_of, random_batch, scattered_trees, small_model

from synmt.data.batch import collate_signals
from synmt.model.variants.tree_regularization import split_loss
from synmt.syntax.constituent_signals import SPLITS, splits
from synmt.syntax.constituents import binary_tree
from synmt.syntax.reading import Reading

TARGET = {"name": "tree_regularization", "side": "target", "layers": [2]}


def perpendicular(x, y):
    """Take the part along y away from x, and measure what is left."""
    return (x - (x @ y) / (y @ y) * y).norm()


def slow_loss(states, parse, word_of):
    """Follow the merges of a sentence: the mean loss of its nodes, times the number of its
    pieces."""
    places = {word: np.flatnonzero(word_of == word).tolist() for word in range(len(parse))}
    text = [place for own in places.values() for place in own]
    # a piece without a word belongs to the word before it
    ends = {
        word: min([p for p in text if p > max(own)], default=max(text) + 1) - 1
        for word, own in places.items()
    }
    nodes = [{word} for word in range(len(parse))]
    losses = []
    for left, right in binary_tree(parse).tolist():
        nodes.append(nodes[left] | nodes[right])
        words, ordered = sorted(nodes[-1]), max(nodes[left]) < min(nodes[right])
        if len(words) < 3 or not ordered or words != list(range(words[0], words[-1] + 1)):
            continue
        a, b = min(places[words[0]]), ends[words[-1]]
        scores = {}
        for word in words[:-1]:
            k = ends[word]
            before = perpendicular(states[k], states[a - 1]) if a > min(text) else 0.0
            after = perpendicular(states[b], states[k])
            scores[word] = before + after + perpendicular(states[k + 1], states[k])
        total = torch.stack(list(scores.values())).logsumexp(0)
        losses.append(total - scores[max(nodes[left])])
    pieces = max(text) + 1 - min(text)
    return pieces * sum(losses) / len(losses) if losses else torch.zeros((), dtype=states.dtype)


@pytest.mark.parametrize("seed", range(6))
def test_it_equals_loops_over_the_equation_gradients_too(seed):
    trees = scattered_trees(seed, (1, 3, 7, 9))
    rows = collate_signals(examples_of(trees), "source", Reading([SPLITS]))["splits"]
    torch.manual_seed(seed)
    states = torch.randn(4, rows.size(-1), 5, dtype=torch.float64, requires_grad=True)
    slow = sum(
        slow_loss(own, tree.parse, tree.word_of) for own, tree in zip(states, trees, strict=True)
    )
    assert_same_with_gradients(split_loss(states, rows), slow, [states])


def test_states_that_agree_or_vanish_have_a_finite_gradient():
    rows = torch.from_numpy(splits(MONKEY, np.arange(5)))[None]
    for states in (torch.ones(1, 5, 3), torch.zeros(1, 5, 3)):
        split_loss(states.requires_grad_(), rows).backward()
        assert states.grad.isfinite().all()


def test_a_batch_without_phrases_has_no_loss():
    model = small_model(TARGET)
    _, batch = random_batch(model, [1, 1])
    batch.target_signals["splits"] = batch.target_signals["splits"][:, :0]
    assert model(batch).losses["treeregularization.target.2"] == 0


def test_it_looks_at_the_first_dimensions_of_the_output_of_its_layer():
    target = {**TARGET, "share": 0.5, "loss_weight": 0.1}
    model = small_model(target, {**TARGET, "side": "source"}, norm="pre").eval()
    _, batch = random_batch(model, [5, 6])
    seen = []
    for layers in (model.encoder, model.decoder):
        layers[1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    losses = model(batch).losses
    expected = {
        "treeregularization.source.2": split_loss(seen[0][..., :4], batch.source_signals["splits"]),
        "treeregularization.target.2": 0.1
        * split_loss(seen[1][..., :8], batch.target_signals["splits"]),
    }
    torch.testing.assert_close(losses, expected)
