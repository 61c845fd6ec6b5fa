"""GATE's heads against a slow loop over masked, divided and rescaled softmax weights, and by
hand."""

import math

import numpy as np
import pytest
import torch
from attending import (
    alike_terms,
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    with_eos,
)
from small import MONKEY, random_batch, slow_distances, small_model

from synmt.data.corpus import Tree
from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.distance_mask import DistanceMask
from synmt.syntax.parse import Parse
from synmt.syntax.signals import DISTANCE, WORD

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def weights_of_monkey(*, heads=1, **options):
    """Give the weights of equal scores over The monkey eats a banana, one piece a word, and EOS."""
    variant = DistanceMask(Place("source", 1, heads, 8, 4), **options)
    syntax, mask = read(variant, [Tree(MONKEY, np.arange(5))])
    terms = variant.edit(alike_terms(torch.zeros(1, heads, 6, 4), mask), syntax)
    return terms.scores().softmax(-1)[0]


def slow_gate(terms, sentences, reach, own):
    """Softmax over the keys in reach, divided by the distance, rescaled; pieces without a word see
    themselves only."""
    rows = torch.zeros_like(terms.q)
    for b, (parse, word_of) in enumerate(sentences):
        steps, words = slow_distances(parse.parents), word_of.tolist()
        for h in range(terms.q.size(1)):
            for i, word in enumerate(words):
                far = {
                    j: steps[word][other]
                    for j, other in enumerate(words)
                    if word >= 0 and other >= 0
                }
                seen = {j: d for j, d in far.items() if d <= reach[h] and (own or d)} or {i: 0}
                powers = {j: torch.exp(terms.q[b, h, i] @ terms.k[b, h, j] / 2) for j in seen}
                divided = {
                    j: power / sum(powers.values()) / max(seen[j], 1) for j, power in powers.items()
                }
                total = sum(divided.values())
                rows[b, h, i] = sum(
                    share / total * terms.v[b, h, j] for j, share in divided.items()
                )
    return rows


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("reach", [(1, 2), (2, 7), (3, 3)])
def test_it_equals_weights_masked_divided_and_rescaled_gradients_too(reach, own):
    trees = random_trees(reach[1], words=(1, 4, 6, 2))
    variant = DistanceMask(PLACE, reach=reach, own=own)
    syntax, mask = read(variant, trees)
    terms = random_terms(4, 2, mask.size(-1), 4, mask, seed=1)
    exact = {name: signal.double() for name, signal in syntax.signals.items()}
    output = attend(variant.edit(terms, Syntax(exact))) * mask.mT
    expected = slow_gate(terms, with_eos(trees), reach, own)
    assert_same_with_gradients(output, expected, (terms.q, terms.k, terms.v), rtol=1e-6, atol=1e-7)


def test_equal_scores_give_each_word_its_share_by_distance():
    # The: itself 1, monkey 1/1, eats 1/2; their sum is 2.5
    both = weights_of_monkey(reach=(2,))[0]
    torch.testing.assert_close(both[0], torch.tensor([0.4, 0.4, 0.2, 0, 0, 0]))
    # without its own pieces: monkey 1, eats 1/2
    released = weights_of_monkey(reach=(2,), own=False)[0]
    torch.testing.assert_close(released[0], torch.tensor([0, 2 / 3, 1 / 3, 0, 0, 0]))
    assert both[5].tolist() == released[5].tolist() == [0, 0, 0, 0, 0, 1]


def test_every_head_has_the_reach_of_its_share():
    weights = weights_of_monkey(heads=4, reach=(2, 4))
    seen = [(head > 0).int().tolist()[0] for head in weights]
    # The is 0 1 2 4 3 steps from the five words
    assert seen == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0]]
    assert DistanceMask(
        Place("source", 1, 4, 8, 4), reach=(1, 2, 3, 4)
    ).reach.flatten().tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("own", [True, False])
def test_a_lone_word_and_a_sentence_without_words_attend_to_themselves(own):
    variant = DistanceMask(PLACE, own=own)
    empty = Tree(Parse([], np.zeros((0, 2), int), np.zeros(0, int), []), np.zeros(0, int))
    lone = Tree(Parse(["Go"], np.zeros((1, 2), int), np.zeros(1, int), ["root"]), np.zeros(1, int))
    syntax, mask = read(variant, [empty, lone])
    weights = variant.edit(alike_terms(torch.zeros(2, 2, 2, 4), mask), syntax).scores().softmax(-1)
    assert weights.tolist() == [[[[1, 0], [0, 1]]] * 2] * 2


def test_gradients_of_a_model_whose_words_see_only_themselves_are_finite():
    model = small_model({"name": "distance_mask", "layers": [1, 2], "reach": [1]}).train()
    _, batch = random_batch(model, [1, 12, 4])
    output = model(batch).states
    output.square().sum().backward()
    assert output.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_it_stands_on_four_heads_of_the_first_layer_with_the_fused_kernel():
    model = small_model({"name": "distance_mask"})
    owned = [
        [variant.place.heads for variant in layer.self_attention.variants]
        for layer in model.encoder
    ]
    assert owned == [[4], []]
    assert model.reads("source") == (DISTANCE, WORD)
    terms = (
        model.encoder[0]
        .self_attention.variants[0]
        .edit(
            alike_terms(torch.zeros(1, 4, 6, 4)),
            read(DistanceMask(PLACE), [Tree(MONKEY, np.arange(5))])[0],
        )
    )
    assert (terms.factor, terms.relative) == (None, None)
    # row The of the bias: 0, -log 1, -log 2, -log 4, -log 3
    expected = torch.tensor([0, 0, -math.log(2), -math.log(4), -math.log(3)])
    torch.testing.assert_close(terms.bias[0, 0, 0, :5], expected)
