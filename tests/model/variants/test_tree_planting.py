"""Tree-planting against loops over words, with the weights of an attention written out."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from attending import assert_same_with_gradients, padding_mask, random_terms, random_trees
from small import (
    MONKEY,
    MONKEY_WORD_OF,
    batch_for,
    random_batch,
    random_example,
    slow_distances,
    small_model,
)
from stepping import assert_predicts_alike

from synmt.analysis.attention.heads import heads_of
from synmt.analysis.attention.statistics import of_predicting_steps
from synmt.analysis.heads import Head, tree_heads
from synmt.analysis.trees.induced import tree_weights
from synmt.model.attention import Terms, causal_mask
from synmt.model.capture import Activations
from synmt.model.variant import Place, Syntax
from synmt.model.variants.tree_planting import (
    NEXT_WORD,
    NODE_DISTANCE,
    TreePlanting,
    by_word,
    next_words,
    node_distances,
)
from synmt.speed import fast
from synmt.syntax.controls import Control
from synmt.syntax.parse import Parse
from synmt.syntax.signals import WORD

SIDES = ["source", "target"]
NOTHING = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])


def place(side, heads=2):
    return Place(side, layer=1, heads=heads, model_dim=8, head_dim=4)


def with_special(side, word_of):
    return np.append(word_of, -1) if side == "source" else np.append(-1, word_of)


def mask_of(side, lengths):
    return (
        causal_mask(max(lengths), torch.device("cpu"))
        if side == "target"
        else padding_mask(*lengths)
    )


def signals_of(sentences):
    """Put the three signals side by side, each padded by its own value."""
    longest = max(len(word_of) for _, word_of in sentences)
    found = {}
    for signal in (NODE_DISTANCE, NEXT_WORD, WORD):
        arrays = [torch.from_numpy(signal.compute(*sentence)) for sentence in sentences]
        dims = arrays[0].ndim
        pads = [[0, longest - len(array)] * dims for array in arrays]
        found[signal.name] = torch.stack(
            [
                torch.nn.functional.pad(array, pad, value=signal.pad)
                for array, pad in zip(arrays, pads, strict=True)
            ]
        )
    return found


def slow_rows(side, parse, word_of):
    """Yield the pieces whose rows count for a word, and for each allowed word its pieces and its
    distance."""
    words = len(parse)
    pieces = {
        word: [t for t, owner in enumerate(word_of.tolist()) if owner == word]
        for word in range(words)
    }
    steps = slow_distances(parse.parents)
    root = [word for word in range(words) if parse.parents[word] == word]
    for word in range(words):
        if side == "source":
            yield (
                pieces[word],
                [(pieces[other], steps[word][other]) for other in range(words) if other != word],
            )
        else:
            before = [(pieces[other], steps[word][other]) for other in range(word)]
            yield [t - 1 for t in pieces[word]], [([0], steps[word][root[0]] + 1), *before]
    if side == "target":
        last = len(word_of) - 1
        yield (
            [last],
            [([0], 2), *((pieces[other], steps[other][root[0]] + 1) for other in range(words))],
        )


def slow_loss(side, weights, sentences):
    """Follow the equation, word by word: weights (B, H, T, T)."""
    total = weights.new_zeros(())
    for row, (parse, word_of) in enumerate(sentences):
        for of_head in weights[row]:
            for queries, keys in slow_rows(side, parse, word_of):
                if not keys:
                    continue
                mass = [
                    sum(of_head[q, k] for q in queries for k in found) / len(queries)
                    for found, _ in keys
                ]
                target = [math.exp(-distance) for _, distance in keys]
                for a, t in zip(mass, target, strict=True):
                    share = t / sum(target)
                    total = total + share * (math.log(share) - torch.log(a / sum(mass)))
    return total / weights.size(1)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("side", SIDES)
def test_it_equals_a_loop_over_words_on_random_trees_gradients_too(side, seed):
    trees = random_trees(seed, (1, 4, 5))
    sentences = [(tree.parse, with_special(side, tree.word_of)) for tree in trees]
    lengths = [len(word_of) for _, word_of in sentences]
    terms = random_terms(3, 2, max(lengths), 4, mask_of(side, lengths), seed=seed)
    variant, syntax = TreePlanting(place(side)), Syntax(signals_of(sentences))
    assert variant.edit(terms, syntax) is terms
    (found,) = syntax.losses.values()
    expected = slow_loss(side, terms.scores().softmax(-1), sentences)
    assert_same_with_gradients(found, expected, (terms.q, terms.k))


@pytest.mark.parametrize("side", SIDES)
def test_its_arithmetic_has_the_numerical_gradient(side):
    sentences = [
        (tree.parse, with_special(side, tree.word_of)) for tree in random_trees(2, (3,), gap=False)
    ]
    terms = random_terms(1, 2, len(sentences[0][1]), 4, mask_of(side, [len(sentences[0][1])]))

    def loss(q):
        syntax = Syntax(signals_of(sentences))
        TreePlanting(place(side)).edit(terms.edit(q=q), syntax)
        return sum(syntax.losses.values())

    assert torch.autograd.gradcheck(loss, terms.q)


def test_the_words_before_banana_by_their_distance_and_bos_below_the_root():
    steps = node_distances(MONKEY, np.append(-1, MONKEY_WORD_OF))
    # The monkey eats a banana, then BOS or EOS
    assert steps[4, :6].tolist() == [3, 2, 1, 1, 0, 2]
    assert steps[5, :6].tolist() == [3, 2, 1, 3, 2, 2]
    assert not steps[6:].any()
    of_banana = torch.tensor([-2.0, -3, -2, -1, -1]).softmax(-1)
    torch.testing.assert_close(
        of_banana, torch.tensor([0.1281, 0.0471, 0.1281, 0.3483, 0.3483]), atol=5e-5, rtol=0
    )
    # ▁The ▁mon key ▁eats ▁a ▁ban ana after BOS: each position predicts the word of the next one,
    # the last one EOS
    assert next_words(MONKEY, np.append(-1, MONKEY_WORD_OF)).tolist() == [0, 1, 1, 2, 3, 4, 4, 5]


def test_the_right_chain_gives_the_distances_along_the_sentence_and_from_bos_on():
    chain = Control("right").apply(MONKEY, b"")
    found = node_distances(chain, np.append(-1, MONKEY_WORD_OF))
    places = np.arange(5)
    assert np.array_equal(found[:5, :5], abs(places[:, None] - places))
    # the node after the words is BOS
    assert found[5, :5].tolist() == [1, 2, 3, 4, 5]


def test_weights_like_the_tree_cost_nothing():
    below_root = [3, 2, 1, 3, 2]
    rows = [*slow_distances(MONKEY.parents), below_root]
    scores = torch.zeros(6, 6, dtype=torch.float64)
    for position, row in enumerate(rows):
        to_bos = below_root[position] if position < 5 else 2
        scores[position] = -torch.tensor([to_bos, *row])
    # as keys, unit vectors pick the scores out of the queries
    q, k = scores[None, None] * math.sqrt(6), torch.eye(6, dtype=torch.float64)[None, None]
    terms = Terms(torch.zeros(1, 6, 6), q, k, k, causal_mask(6, torch.device("cpu")))
    syntax = Syntax(signals_of([(MONKEY, np.append(-1, np.arange(5)))]))
    TreePlanting(place("target", 1)).edit(terms, syntax)
    assert sum(syntax.losses.values()).item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("side", SIDES)
def test_sentences_without_words_and_a_word_alone_have_finite_losses(side):
    one = Parse(["Go"], np.array([[0, 2]]), np.array([0]), ["root"])
    sentences = [
        (NOTHING, np.array([-1, -1])),
        (one, with_special(side, np.array([0, 0]))),
        (NOTHING, np.array([-1])),
    ]
    lengths = [2, 3, 1]
    terms = random_terms(3, 1, 3, 4, mask_of(side, lengths))
    syntax = Syntax(signals_of(sentences))
    TreePlanting(place(side, 1)).edit(terms, syntax)
    (loss,) = syntax.losses.values()
    if side == "source":
        assert loss.item() == 0
    else:
        # EOS after one word: BOS is two steps away, the word one; what sees BOS alone costs nothing
        torch.testing.assert_close(loss, slow_loss(side, terms.scores().softmax(-1), sentences))
    (slope,) = torch.autograd.grad(loss, terms.q)
    assert slope.isfinite().all()


def test_a_weight_that_the_softmax_rounds_to_zero_leaves_a_finite_loss():
    word_of = np.append(-1, np.arange(5))
    q = torch.zeros(1, 1, 6, 4, requires_grad=True)
    k = torch.zeros(1, 1, 6, 4)
    k[..., 2, :] = 1e4
    terms = Terms(torch.zeros(1, 6, 4), q + 1, k, k, causal_mask(6, torch.device("cpu")))
    syntax = Syntax(signals_of([(MONKEY, word_of)]))
    TreePlanting(place("target", 1)).edit(terms, syntax)
    (loss,) = syntax.losses.values()
    loss.backward()
    assert loss.isfinite()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("side", SIDES)
def test_the_loss_of_a_batch_is_the_sum_of_its_sentences(side):
    model = small_model({"name": "tree_planting", "side": side, "layers": [2]}).double().eval()
    examples, batch = random_batch(model, [1, 6, 3])
    (together,) = model(batch).losses.values()
    alone = [sum(model(batch_for(model, [example])).losses.values()) for example in examples]
    torch.testing.assert_close(together, sum(alone))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_decoder_that_only_learned_translates_by_the_fast_step(norm):
    planted = {"name": "tree_planting", "side": "target", "layers": [2]}
    regularized = {"name": "tree_regularization", "side": "target", "layers": [2]}
    model, edited = (
        small_model(planted, regularized, norm=norm).eval(),
        small_model({"name": "dbsa", "side": "target", "layers": [1]}),
    )
    assert edited.predictor() is edited
    assert (assert_predicts_alike(model, signals=False) is model) == (fast("decoder") is None)


@pytest.mark.parametrize("side", SIDES)
def test_an_analysis_reads_the_rows_that_have_learned(side):
    model = small_model({"name": "tree_planting", "side": side, "layers": [2]})
    [learnt] = tree_heads(model, side)
    *_, owned = (head for head in heads_of(model, side) if head.variant)
    assert (learnt.predicts, owned.predicts) == (side == "target", side == "target")
    weights = np.random.default_rng(1).dirichlet(
        np.ones(5), (1, 2, 5)
    )  # BOS, or EOS, and four pieces
    captured = Activations(attention={(side, 2): torch.tensor(weights)})
    found = tree_weights(learnt, side, SimpleNamespace(captured=captured))[0].numpy()
    plain, shifted = of_predicting_steps(weights, [Head(2, 1), replace(owned, number=2)])[0]
    assert (plain == weights[0, 0]).all()
    if side == "target":
        # the weights of the third piece are those of the step that reads the second one
        np.testing.assert_array_equal(found[2], weights[0, 0, 2, 1:])
        np.testing.assert_array_equal(shifted[3], weights[0, 1, 2])
        assert not shifted[0].any()
    else:
        np.testing.assert_array_equal(found, weights[0, 0])


def test_a_planted_model_is_the_plain_one_but_for_its_loss():
    plain = small_model(seed=4).eval()
    planted = small_model(
        *({"name": "tree_planting", "side": side, "layers": [1]} for side in SIDES), seed=4
    ).eval()
    assert [name for name, _ in plain.named_parameters()] == [
        name for name, _ in planted.named_parameters()
    ]
    batch = batch_for(planted, [random_example(5, np.random.default_rng(1))])
    torch.testing.assert_close(planted(batch).states, plain(batch).states)
    assert set(planted(batch).losses) == {"treeplanting.source.1", "treeplanting.target.1"}


def test_half_precision_keeps_small_weights():
    weights = torch.tensor([[[[1.0, 0], [1 - 1e-9, 1e-9]]]])
    rows = keys = torch.tensor([[0, 1]])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(by_word(weights, rows, keys), weights)
