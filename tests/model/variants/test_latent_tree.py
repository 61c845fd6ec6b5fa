"""Latent trees against sums over all trees, written out sentence by sentence."""

import itertools
import math

import numpy as np
import pytest
import torch
from attending import assert_alone_as_in_a_batch
from enumerating import enumerated
from safetensors.torch import save_file
from small import LSTM_SIZE, PUNCTUATION, random_batch, small_model

from synmt.data.batch import Sequences, collate_source
from synmt.data.vocabulary import EOS, Words
from synmt.errors import SynmtError
from synmt.model.blocks.latent import ParentFilter, straight_through
from synmt.model.blocks.matrix_tree import possible_parents
from synmt.model.build import build_for
from synmt.model.weights import load_weights
from synmt.recipe.load import check_recipe

OPTIONS = [
    {},
    {"hard": True},
    {"sets": 1},
    {"attention": "separate"},
    {"punctuation": True},
    {"normalize": "flat"},
    {"normalize": "flat", "hard": True},
    {"normalize": "flat", "sets": 1},
]


def with_latent_trees(architecture="lstm", **options):
    model = (
        small_model({"name": "latent_tree", **options}, architecture=architecture).double().eval()
    )
    return model, model.variants["source"][0]


def slow_weights(variant, states, ids):
    """Follow the equation for one sentence: states (T, D), its pieces -> (T, T)."""
    words, width = states.shape
    may = [piece not in variant.may_be_parent.excluded.tolist() for piece in ids]
    if not any(may):
        may = [True] * words
    scores = torch.zeros(words, words, dtype=states.dtype)
    for child, parent in itertools.product(range(words), repeat=2):
        q, k = variant.query.weight @ states[parent], variant.key.weight @ states[child]
        scores[child, parent] = q @ k / math.sqrt(width)
    if variant.root is None:
        powers = torch.exp(scores) * torch.tensor(may)
        return powers / powers.sum(1, keepdim=True)
    roots = torch.stack(
        [variant.root @ (variant.key.weight @ state) / math.sqrt(width) for state in states]
    )
    return enumerated(scores, roots, torch.tensor(may))[0].detach()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_sum_over_all_trees(options):
    model, variant = with_latent_trees(**options)
    for seed in range(4):
        # of two to five pieces, and one of them punctuation now and then
        ids = torch.randint(4, 12, (3, 6), generator=torch.Generator().manual_seed(seed))
        mask = torch.ones_like(ids, dtype=torch.bool)
        for row, length in enumerate((2, 4, 5)):
            ids[row, length], mask[row, length + 1 :] = EOS, False
        plain = model.encode(Sequences(ids, mask, mask.sum(1)))
        syntax = model.syntax("source", {}, ids)
        memory = variant.annotate(plain, syntax)
        for row, length in enumerate((2, 4, 5)):
            states = plain.states[row, :length]
            weights = slow_weights(variant, states, ids[row, :length].tolist())
            torch.testing.assert_close(memory.weights[row, :length, :length], weights)
            assert not memory.weights[row, length:].any()
            assert not memory.weights[row, :, length:].any()
            check_annotations(variant, memory, row, states, weights)


@pytest.mark.parametrize("normalize", ["tree", "flat"])
def test_with_one_set_it_edits_the_states_of_a_transformer_whose_eos_is_no_word(normalize):
    model, variant = with_latent_trees("transformer", sets=1, normalize=normalize)
    _, batch = random_batch(model, [3, 1, 2])
    ids, mask = batch.source.ids, batch.source.mask
    plain = model.encode(batch.source)
    memory, _ = model.remember(batch.source, {})
    for row, length in enumerate((ids != EOS).logical_and(mask).sum(1).tolist()):
        states = plain.states[row, :length]
        weights = slow_weights(variant, states, ids[row, :length].tolist())
        torch.testing.assert_close(memory.weights[row, :length, :length], weights)
        check_annotations(variant, memory, row, states, weights)
        # the gate times an annotation of zeros
        torch.testing.assert_close(memory.states[row, length], plain.states[row, length])
    assert_alone_as_in_a_batch(model, [2, 5, 1])


def test_a_lone_eos_keeps_its_annotation_in_an_lstm():
    model, variant = with_latent_trees()
    source = collate_source([np.array([], dtype=int), np.array([9])])
    memory = variant.annotate(model.encode(source), model.syntax("source", {}, source.ids))
    assert memory.weights[:, 0, 0].tolist() == [1.0, 1.0]
    torch.testing.assert_close(memory.annotations[0, 0], variant.value(memory.states)[0, 0])


def check_annotations(variant, memory, row, states, weights):
    for place, state in enumerate(states):
        chosen = weights[place]
        if variant.hard:
            chosen = torch.tensor(
                [float(other == weights[place].argmax()) for other in range(len(states))]
            )
        value = sum(
            w * (variant.value.weight @ s) for w, s in zip(chosen.tolist(), states, strict=True)
        )
        if variant.gate is None:
            torch.testing.assert_close(memory.annotations[row, place], value)
        else:
            gate = torch.sigmoid(variant.gate.weight @ state)
            torch.testing.assert_close(memory.states[row, place], state + gate * value)
            assert memory.annotations is None


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_weight_receives_a_finite_gradient(options):
    model, variant = with_latent_trees(**options)
    _, batch = random_batch(model, [5, 3])
    model(batch).states.square().sum().backward()
    for name, parameter in variant.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_the_gradient_of_a_hard_choice_is_that_of_the_marginals():
    weights = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    chosen = straight_through(weights)
    assert chosen.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    slope = torch.randn(3, 3)
    chosen.backward(slope)
    torch.testing.assert_close(weights.grad, slope)


def test_in_a_sentence_of_punctuation_all_may_be_parents():
    words = torch.tensor([[True, True, False], [True, True, True]])
    ids = torch.tensor([[5, 6, 9], [5, 9, 6]])
    expected = [[True, True, False], [False, True, False]]
    assert possible_parents(words, ParentFilter(PUNCTUATION)(ids)).tolist() == expected


def test_a_model_in_training_and_one_that_translates_give_the_same():
    model, _ = with_latent_trees()
    _, batch = random_batch(model, [5, 3])
    expected = model(batch).states
    with torch.inference_mode():
        torch.testing.assert_close(model(batch).states, expected)


def test_a_recipe_finds_the_punctuation_in_its_vocabulary():
    values = {"name": "sa", "source": "en", "target": "de", "corpus": {"name": "controlled"}}
    parts = {
        "model": {"architecture": "lstm", **LSTM_SIZE},
        "syntax": {"variants": [{"name": "latent_tree"}]},
    }
    recipe = check_recipe({**values, **parts}, where="test")
    words = Words(["monkey", ",", "eats", "."])
    model = build_for(recipe, words, words)
    assert model.variants["source"][0].may_be_parent.excluded.tolist() == [5, 7]


def test_only_marginals_of_trees_give_trees():
    assert with_latent_trees()[1].induces_trees
    assert not with_latent_trees(normalize="flat")[1].induces_trees


def test_with_one_set_the_gate_has_no_bias_and_weights_with_one_are_refused_by_name(tmp_path):
    model, variant = with_latent_trees(sets=1)
    [gate] = variant.gate.parameters()
    assert gate.shape == (16, 16)
    old = {name: weight.detach() for name, weight in model.named_parameters()}
    save_file({**old, "placed.0.gate.bias": torch.zeros(16)}, tmp_path / "old.safetensors")
    with pytest.raises(SynmtError, match=r"old\.safetensors.*placed\.0\.gate\.bias.*train again"):
        load_weights(tmp_path / "old.safetensors", model)


def test_with_one_set_the_decoder_is_the_plain_one():
    plain = small_model(architecture="lstm")
    model, _ = with_latent_trees(sets=1)
    assert [p.shape for p in plain.decoder.parameters()] == [
        p.shape for p in model.decoder.parameters()
    ]


# of three and five pieces, some of them punctuation; EOS is 3
TREE_HEAD_IDS = torch.tensor([[9, 5, 12, EOS, 0, 0], [14, 6, 20, 7, 11, EOS]])


@pytest.mark.parametrize("options", [{}, {"hard": True}, {"punctuation": True}], ids=str)
def test_a_tree_head_of_a_transformer_attends_by_the_marginals(options):
    model = small_model({"name": "tree_attention", "heads": 2, **options}).double().eval()
    ids, mask = TREE_HEAD_IDS, TREE_HEAD_IDS != 0
    attention = model.encoder[0].self_attention
    x = torch.randn(*ids.shape, 16, dtype=torch.float64)
    weights = attention.weights(x, mask[:, None, None], model.syntax("source", {}, ids))
    for row, head in itertools.product(range(2), range(2)):
        length = int(mask[row].sum()) - 1
        scores = slow_scores(attention, x[row, :length], head)
        may = [
            options.get("punctuation", piece not in PUNCTUATION)
            for piece in ids[row, :length].tolist()
        ]
        expected, _ = enumerated(scores, scores.diagonal(), torch.tensor(may))
        if "hard" in options:
            expected = torch.nn.functional.one_hot(expected.argmax(-1), length).double()
        torch.testing.assert_close(weights[row, head, :length, :length], expected)
        # EOS attends to itself, and nothing to EOS
        assert weights[row, head, length, length] == 1
        assert not weights[row, head, :length, length:].any()
    free = attention.weights(x, mask[:, None, None])[:, 2:]
    torch.testing.assert_close(weights[:, 2:], free)


def slow_scores(attention, x, head):
    width = 16 // attention.heads
    q, k, _ = (x @ attention.project.weight.T + attention.project.bias).chunk(3, -1)
    chosen = slice(head * width, (head + 1) * width)
    return q[:, chosen] @ k[:, chosen].T / math.sqrt(width)
