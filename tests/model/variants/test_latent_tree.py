"""Latent trees and heads that attend by them against sums over all trees."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from enumerating import enumerated
from refusing import assert_fails
from safetensors.torch import save_file
from small import LSTM_SIZE, PUNCTUATION, small_model, small_recipe

from synmt.data.batch import Sequences, collate_source
from synmt.data.vocabulary import EOS, Words
from synmt.model.blocks.parents import straight_through
from synmt.model.build import build_for
from synmt.model.weights import load_weights

LATENT = [
    {"architecture": "lstm", **options}
    for options in (
        {},
        {"hard": True},
        {"sets": 1},
        {"attention": "separate"},
        {"punctuation": True},
        {"normalize": "flat"},
        {"normalize": "flat", "hard": True},
        {"normalize": "flat", "sets": 1},
    )
] + [{"architecture": "transformer", "sets": 1, "normalize": kind} for kind in ("tree", "flat")]
# of two, four and five pieces, some of them punctuation, and in one sentence all; EOS is 3
IDS = torch.tensor([[5, 6, EOS, 0, 0, 0], [9, 5, 12, 20, EOS, 0], [14, 6, 20, 7, 11, EOS]])
LENGTHS = 2, 4, 5


def with_latent_trees(architecture="lstm", **options):
    model = small_model({"name": "latent_tree", **options}, architecture=architecture)
    return model.double().eval(), model.variants["source"][0]


def parents_among(ids, punctuation):
    """Mark the pieces that may be parents; all, if all are punctuation."""
    may = torch.tensor([punctuation or piece not in PUNCTUATION for piece in ids.tolist()])
    return may if may.any() else ~may


def slow_weights(variant, states, may):
    """Follow the equation for one sentence: states (T, D) -> (T, T)."""
    keys = [variant.key.weight @ state / math.sqrt(states.size(1)) for state in states]
    queries = [variant.query.weight @ state for state in states]
    scores = torch.stack([q @ k for k, q in product(keys, queries)]).view(len(keys), -1)
    if variant.root is None:
        powers = torch.exp(scores) * may
        return powers / powers.sum(1, keepdim=True)
    return enumerated(scores, torch.stack([variant.root @ key for key in keys]), may)[0]


def hardened(weights, hard):
    return torch.eye(len(weights)).double()[weights.argmax(-1)] if hard else weights


@pytest.mark.parametrize("options", LATENT, ids=str)
def test_annotations_equal_the_sum_over_all_trees(options):
    model, variant = with_latent_trees(**options)
    mask = IDS != 0
    plain = model.encode(Sequences(IDS, mask, mask.sum(1)))
    memory = variant.annotate(plain, model.syntax("source", {}, IDS))
    for row, length in enumerate(LENGTHS):
        states = plain.states[row, :length]
        may = parents_among(IDS[row, :length], options.get("punctuation", False))
        weights = torch.zeros_like(memory.weights[row])
        weights[:length, :length] = slow_weights(variant, states, may)
        torch.testing.assert_close(memory.weights[row], weights)
        used = hardened(weights[:length, :length], variant.hard)
        values = used @ torch.stack([variant.value.weight @ state for state in states])
        if variant.gate is None:
            torch.testing.assert_close(memory.annotations[row, :length], values)
            continue
        gates = torch.stack([torch.sigmoid(variant.gate.weight @ state) for state in states])
        torch.testing.assert_close(memory.states[row, :length], states + gates * values)
        # EOS is no word of a tree
        torch.testing.assert_close(memory.states[row, length:], plain.states[row, length:])
        assert memory.annotations is None


@pytest.mark.parametrize("options", [{}, {"hard": True}, {"punctuation": True}], ids=str)
def test_a_tree_head_of_a_transformer_attends_by_the_marginals(options):
    model = small_model({"name": "tree_attention", "heads": 2, **options}).double().eval()
    attention, mask = model.encoder[0].self_attention, (IDS != 0)[:, None, None]
    x = torch.randn(*IDS.shape, 16, dtype=torch.float64)
    weights = attention.weights(x, mask, model.syntax("source", {}, IDS))
    q, k, _ = (
        (x @ attention.project.weight.T + attention.project.bias).view(3, 6, 12, 4).split(4, 2)
    )
    for (row, length), head in product(enumerate(LENGTHS), range(2)):
        scores = q[row, :length, head] @ k[row, :length, head].T / 2
        may = parents_among(IDS[row, :length], "punctuation" in options)
        marginals, _ = enumerated(scores, scores.diagonal(), may)
        expected = hardened(marginals, "hard" in options)
        torch.testing.assert_close(weights[row, head, :length, :length], expected)
        # EOS attends to itself, and nothing to EOS
        assert weights[row, head, length, length] == 1
        assert not weights[row, head, :length, length:].any()


def test_a_lone_eos_keeps_its_annotation_in_an_lstm():
    model, variant = with_latent_trees()
    memory, _ = model.remember(collate_source([np.array([], dtype=int), np.array([9])]), {})
    assert memory.weights[:, 0, 0].tolist() == [1.0, 1.0]
    torch.testing.assert_close(memory.annotations[0, 0], variant.value(memory.states)[0, 0])


def test_the_gradient_of_a_hard_choice_is_that_of_the_marginals():
    weights = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    chosen, slope = straight_through(weights), torch.randn(3, 3)
    assert chosen.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    chosen.backward(slope)
    torch.testing.assert_close(weights.grad, slope)


def test_a_recipe_finds_the_punctuation_in_its_vocabulary():
    model = {"architecture": "lstm", **LSTM_SIZE}
    recipe = small_recipe(model=model, syntax={"variants": [{"name": "latent_tree"}]})
    words = Words(["monkey", ",", "eats", "."])
    [variant] = build_for(recipe, words, words).variants["source"]
    assert variant.may_be_parent.excluded.tolist() == [5, 7]


def test_only_marginals_of_trees_give_trees():
    assert with_latent_trees()[1].induces_trees
    assert not with_latent_trees(normalize="flat")[1].induces_trees


def test_with_one_set_the_decoder_is_plain_and_old_weights_with_a_bias_are_refused(tmp_path):
    model, _ = with_latent_trees(sets=1)
    shapes = [weight.shape for weight in small_model(architecture="lstm").decoder.parameters()]
    assert [weight.shape for weight in model.decoder.parameters()] == shapes
    old = {name: weight.detach() for name, weight in model.named_parameters()}
    save_file({**old, "placed.0.gate.bias": torch.zeros(16)}, tmp_path / "old.safetensors")
    assert_fails(
        r"old\.safetensors.*placed\.0\.gate\.bias.*train again",
        load_weights,
        tmp_path / "old.safetensors",
        model,
    )
