"""TreeReg against a slow loop written from the equation of the paper, its worked example, and the
places it allows."""

import math

import numpy as np
import pytest
import torch
from small import MONKEY, random_batch, random_pieces, random_tree, small_model

from synmt.errors import UsageError
from synmt.model.variants.tree_regularization import residues, split_loss, split_scores
from synmt.syntax.constituent_signals import splits
from synmt.syntax.constituents import binary_tree

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
            scores[word] = (
                before
                + perpendicular(states[b], states[k])
                + perpendicular(states[k + 1], states[k])
            )
        total = torch.stack([torch.as_tensor(score) for score in scores.values()]).logsumexp(0)
        losses.append(total - scores[max(nodes[left])])
    pieces = max(text) + 1 - min(text)
    return pieces * sum(losses) / len(losses) if losses else torch.zeros((), dtype=states.dtype)


def test_the_example_of_five_states():
    # (1, 0) (1, 1) (0, 1) (1, 0) (1, 1); split after the second of ((0 1)(2 (3 4))): scores 2,
    # .7071, 2, 2
    states = torch.tensor([[[1.0, 0], [1, 1], [0, 1], [1, 0], [1, 1]]], dtype=torch.float64)
    rows = torch.from_numpy(splits(MONKEY, np.arange(5)))[None]
    whole = rows[:, -1:]
    scores = split_scores(residues(states), whole)
    np.testing.assert_allclose(scores[0, 0, :4], [2, 0.7071, 2, 2], atol=5e-5)
    # log(3 e² + e^.7071) - .7071 = 2.4791 for a sentence of five pieces
    assert split_loss(states, whole).item() == pytest.approx(5 * 2.4791, abs=5e-4)


@pytest.mark.parametrize("seed", range(6))
def test_it_equals_loops_over_the_equation_gradients_too(seed):
    random = np.random.default_rng(seed)
    parses = [random_tree(words, random) for words in (1, 3, 7, 9)]
    owners = [np.append(random_pieces(len(parse), random), -1) for parse in parses]
    rows = [splits(*sentence) for sentence in zip(parses, owners, strict=True)]
    length, nodes = max(map(len, owners)), max(len(row) for row in rows)
    padded = np.zeros((4, nodes, length), dtype=np.int64)
    for place, row in enumerate(rows):
        padded[place, : row.shape[0], : row.shape[1]] = row
    torch.manual_seed(seed)
    states = torch.randn(4, length, 5, dtype=torch.float64, requires_grad=True)
    fast = split_loss(states, torch.from_numpy(padded))
    slow = sum(slow_loss(*sentence) for sentence in zip(states, parses, owners, strict=True))
    torch.testing.assert_close(fast, slow)
    ours, theirs = (torch.autograd.grad(loss, states)[0] for loss in (fast, slow))
    torch.testing.assert_close(ours, theirs)


def test_states_that_agree_or_vanish_have_a_finite_gradient():
    rows = torch.from_numpy(splits(MONKEY, np.arange(5)))[None]
    for states in (torch.ones(1, 5, 3), torch.zeros(1, 5, 3)):
        states.requires_grad_()
        split_loss(states, rows).backward()
        assert states.grad.isfinite().all()


def test_a_batch_without_phrases_has_no_loss():
    model = small_model(TARGET)
    _, batch = random_batch(model, [1, 1])
    batch.target_signals["splits"] = batch.target_signals["splits"][:, :0]
    assert model(batch).losses["treeregularization.target.2"] == 0


def test_it_looks_at_the_first_dimensions_of_the_output_of_its_layer():
    model = small_model(
        {**TARGET, "share": 0.5, "loss_weight": 0.1}, {**TARGET, "side": "source"}, norm="pre"
    ).eval()
    _, batch = random_batch(model, [5, 6])
    seen = {}
    for name in ("encoder", "decoder"):
        layer = getattr(model, name)[1]
        layer.register_forward_hook(
            lambda module, inputs, output, name=name: seen.update({name: output})
        )
    losses = model(batch).losses
    target = split_loss(seen["decoder"][..., :8], batch.target_signals["splits"])
    torch.testing.assert_close(losses["treeregularization.target.2"], 0.1 * target)
    source = split_loss(seen["encoder"][..., :4], batch.source_signals["splits"])
    torch.testing.assert_close(losses["treeregularization.source.2"], source)


def test_training_a_layer_by_it_finds_the_splits():
    rows = torch.from_numpy(splits(MONKEY, np.arange(5)))[None]
    torch.manual_seed(0)
    states = torch.randn(1, 5, 6, requires_grad=True)
    optimizer = torch.optim.Adam([states], lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        loss = split_loss(states, rows)
        loss.backward()
        optimizer.step()
    scores = split_scores(residues(states), rows).masked_fill(rows < 2, -math.inf)
    assert scores.argmax(-1).tolist() == [[2, 1]]


def test_it_owns_no_head_and_any_layer_may_have_it_but_an_lstm_has_none():
    model = small_model(TARGET, {"name": "relative", "side": "target", "layers": [2], "heads": 4})
    assert [variant.place.heads for variant in model.variants["target"]] == [0, 4]
    assert model.reads("target") == ()
    with pytest.raises(UsageError, match="learns from layers of attention, and an LSTM has none"):
        small_model({**TARGET, "layers": [1]}, architecture="lstm")
    with pytest.raises(UsageError, match="edits no attention: it owns no heads"):
        small_model({**TARGET, "heads": 2})
