"""Tree-planting against loops over words, with the weights of an attention written out."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from attending import (
    NO_WORDS,
    PLACE,
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    with_special,
)
from small import slow_distances, small_model

from synmt.analysis.attention.heads import heads_of
from synmt.analysis.attention.statistics import of_predicting_steps
from synmt.analysis.trees.induced import tree_weights
from synmt.model.capture import Activations
from synmt.model.heads import Head, tree_heads
from synmt.model.variants.tree_planting import TreePlanting, by_word

SIDES = ["source", "target"]


def slow_rows(side, parse, word_of):
    """Yield the pieces whose rows count for a word, and for each allowed word its pieces and its
    distance."""
    steps, words = slow_distances(parse.parents), range(len(parse))
    pieces = [np.flatnonzero(word_of == word).tolist() for word in words]
    if side == "source":
        for word in words:
            yield (
                pieces[word],
                [(pieces[other], steps[word][other]) for other in words if other != word],
            )
        return
    root = [word for word in words if parse.parents[word] == word]
    for word in words:
        before = [(pieces[other], steps[word][other]) for other in range(word)]
        yield [t - 1 for t in pieces[word]], [([0], steps[word][root[0]] + 1), *before]
    below_root = [(pieces[other], steps[other][root[0]] + 1) for other in words]
    yield [len(word_of) - 1], [([0], 2), *below_root]


def slow_loss(side, weights, sentences):
    """Follow the equation, word by word: weights (B, H, T, T)."""
    total = weights.new_zeros(())
    for row, sentence in enumerate(sentences):
        for queries, keys in slow_rows(side, *sentence):
            if not keys:
                continue
            of_row = weights[row][:, queries].mean(1)  # (H, T)
            mass = torch.stack([of_row[:, found].sum(1) for found, _ in keys])
            target = torch.tensor([-distance for _, distance in keys]).double().softmax(0)
            shares = mass / mass.sum(0)
            total = total + (target[:, None] * (target[:, None] / shares).log()).sum()
    return total / weights.size(1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("side", SIDES)
def test_it_equals_a_loop_over_words_gradients_too(side, seed):
    trees, variant = (
        [*random_trees(seed, (1, 4, 5)), NO_WORDS],
        TreePlanting(replace(PLACE, side=side)),
    )
    syntax, mask = read(variant, trees)
    terms = random_terms(4, 2, mask.size(-1), 4, mask, seed=seed)
    assert variant.edit(terms, syntax) is terms
    (found,) = syntax.losses.values()
    # a sentence without words has nothing to learn
    sentences = with_special(trees[:-1], side)
    expected = slow_loss(side, terms.scores().softmax(-1), sentences)
    assert_same_with_gradients(found, expected, (terms.q, terms.k))


def test_a_weight_that_the_softmax_rounds_to_zero_leaves_a_finite_loss():
    variant = TreePlanting(replace(PLACE, side="target"))
    syntax, mask = read(variant, random_trees(0, [5]))
    terms = random_terms(1, 2, mask.size(-1), 4, mask)
    variant.edit(terms.edit(k=terms.k * 1e4), syntax)
    (loss,) = syntax.losses.values()
    loss.backward()
    assert loss.isfinite()
    assert terms.q.grad.isfinite().all()


@pytest.mark.parametrize("side", SIDES)
def test_an_analysis_reads_the_rows_that_have_learned(side):
    model = small_model({"name": "tree_planting", "side": side, "layers": [2]})
    [learnt] = tree_heads(model, side)
    *_, owned = (head for head in heads_of(model, side) if head.variant)
    assert (learnt.predicts, owned.predicts) == (side == "target", side == "target")
    # BOS, or EOS, and four pieces
    weights = np.random.default_rng(1).dirichlet(np.ones(5), (1, 2, 5))
    captured = Activations(attention={(side, 2): torch.tensor(weights)})
    found = tree_weights(learnt, side, SimpleNamespace(captured=captured, memory=None))[0].numpy()
    plain, shifted = of_predicting_steps(weights, [Head(2, 1), replace(owned, number=2)])[0]
    assert (plain == weights[0, 0]).all()
    if side == "target":
        # the weights of the third piece are those of the step that reads the second one
        np.testing.assert_array_equal(found[2], weights[0, 0, 2, 1:])
        np.testing.assert_array_equal(shifted[3], weights[0, 1, 2])
        assert not shifted[0].any()
    else:
        np.testing.assert_array_equal(found, weights[0, 0])


def test_half_precision_keeps_small_weights():
    weights, words = torch.tensor([[[[1.0, 0], [1 - 1e-9, 1e-9]]]]), torch.tensor([[0, 1]])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(by_word(weights, words, words), weights)
