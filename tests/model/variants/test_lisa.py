"""Linguistically-informed self-attention against a slow loop written from the paper's equations."""

import math

import numpy as np
import pytest
import torch
from attending import (
    assert_same_with_gradients,
    losses_of_training,
    padding_mask,
    random_trees,
    slow_attend,
    slow_biaffine,
    slow_loss,
    with_eos,
)
from small import MONKEY, MONKEY_WORD_OF, small_model
from torch.nn.utils.rnn import pad_sequence

from synmt.model.attention import Terms, attend, split_heads
from synmt.model.multihead import SelfAttention
from synmt.model.variant import Place, Syntax
from synmt.model.variants.lisa import Lisa
from synmt.syntax.signals import PARENT_FIRST, WORD


def place(heads=2):
    return Place("source", layer=1, heads=heads, model_dim=6, head_dim=3)


def slow_first(parse, word_of):
    """The first piece of the parent's word, and for the root that of the root; specials have
    themselves."""
    gold = []
    for position, word in enumerate(word_of):
        pieces = [
            j for j, other in enumerate(word_of) if word >= 0 and other == parse.parents[word]
        ]
        gold.append(min(pieces, default=position))
    return gold


def random_sentences(seed):
    return with_eos(random_trees(seed, (1, 4, 5), gap=False))


def padded(sentences):
    """Put the two signals side by side, computed by our own loop; padding is not a word."""
    first = pad_sequence(
        [torch.tensor(slow_first(*sentence)) for sentence in sentences], batch_first=True
    )
    words = [torch.from_numpy(word_of) for _, word_of in sentences]
    return {"parent_first": first, "word": pad_sequence(words, batch_first=True, padding_value=-1)}


def random_variant(heads):
    lisa = Lisa(place(heads)).double()
    for parameter in lisa.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return lisa


def leaky(values):
    return torch.stack(
        [value if value > 0 else 0.01 * value for value in values.flatten()]
    ).view_as(values)


def slow_lisa(signals, terms, weight, bias, bilinear, key_bias):
    """Output and loss of softmax(Q U Kᵀ + K u), Q and K from leaky_relu(W x + b)."""
    heads, size = terms.v.size(1), terms.v.size(-1)
    # of each head's 2d rows of W, the first d make the query and the others the key
    rows = [slice(size * part, size * (part + 1)) for part in range(2 * heads)]
    parts = [leaky(terms.x @ weight[row].T + bias[row]) for row in rows]
    q, k = torch.stack(parts[::2], 1), torch.stack(parts[1::2], 1)
    scores = slow_biaffine(q, k, bilinear, key_bias, scaled=False)
    loss = slow_loss(scores, signals["parent_first"], signals["word"] >= 0, terms.mask)
    return slow_attend(terms, lambda *place: scores[place]), loss


@pytest.mark.journey
@pytest.mark.parametrize("heads", [1, 2])
def test_lisa_equals_loops_over_the_equation_on_random_trees_gradients_too(heads):
    sentences = random_sentences(seed=heads)
    signals, mask = padded(sentences), padding_mask(*(len(word_of) for _, word_of in sentences))
    torch.manual_seed(heads)
    x = torch.randn(3, mask.size(-1), 6, dtype=torch.float64, requires_grad=True)
    v = torch.randn(3, heads, mask.size(-1), 3, dtype=torch.float64, requires_grad=True)
    lisa = random_variant(heads)
    syntax = Syntax(signals)
    # the ordinary queries and keys are not used
    terms = Terms(x, torch.full_like(v, math.nan), torch.full_like(v, math.nan), v, mask)
    output = attend(lisa.edit(terms, syntax))
    parameters = (
        lisa.project.weight,
        lisa.project.bias,
        lisa.biaffine.weight,
        lisa.biaffine.key_bias,
    )
    slow_output, loss = slow_lisa(signals, terms, *parameters)
    fast = torch.cat(((output * mask.mT).flatten(), syntax.losses["lisa.source.1"][None]))
    slow = torch.cat(((slow_output * mask.mT).flatten(), loss[None]))
    assert_same_with_gradients(fast, slow, (x, v, *parameters))


def test_the_signals_are_those_of_our_own_loop():
    for seed in range(20):
        for tree, word_of in random_sentences(seed):
            assert PARENT_FIRST.compute(tree, word_of).tolist() == slow_first(tree, word_of)
            assert WORD.compute(tree, word_of).tolist() == word_of.tolist()
    assert WORD.pad < 0


def test_the_first_pieces_of_the_monkeys_parents():
    # 0 ▁The 1 ▁mon 2 key 3 ▁eats 4 ▁a 5 ▁ban 6 ana 7 </s>
    assert slow_first(MONKEY, np.append(MONKEY_WORD_OF, -1)) == [1, 3, 3, 3, 5, 3, 3, 7]


def test_the_monkey_teaches_every_piece_but_eos_and_padding():
    lisa = Lisa(place(heads=1))
    # two places of padding, so that equal scores are shared by 8 of 10
    signals = {
        name: torch.nn.functional.pad(s, (0, 2), value=-1) for name, s in monkey_signals().items()
    }
    syntax, v = Syntax(signals), torch.zeros(1, 1, 10, 3)
    lisa.edit(
        Terms(torch.zeros(1, 10, 6), v, v, v, torch.arange(10).lt(8)[None, None, None]), syntax
    )
    assert syntax.losses["lisa.source.1"].item() == pytest.approx(7 * math.log(8))


def monkey_signals():
    return padded([(MONKEY, np.append(MONKEY_WORD_OF, -1))])


@pytest.mark.journey
def test_a_head_learns_the_parents_of_the_monkey():
    torch.manual_seed(1)
    lisa = Lisa(Place("source", layer=1, heads=1, model_dim=16, head_dim=8))
    attention = SelfAttention(16, 2, variants=[lisa])
    x = torch.randn(1, 8, 16)
    losses = losses_of_training(attention, x, None, monkey_signals())
    assert losses[0] > 5
    assert losses[-1] < 0.05
    v = split_heads(x, 2)[:, :1]
    found = lisa.edit(Terms(x, v, v, v), Syntax({})).scores().argmax(-1)[0, 0]
    assert found[:7].tolist() == [1, 3, 3, 3, 5, 3, 3]


def test_the_loss_reaches_the_layer_below():
    x = torch.randn(1, 8, 6, requires_grad=True)
    v = torch.zeros(1, 2, 8, 3)
    syntax = Syntax(monkey_signals())
    Lisa(place()).edit(Terms(x, v, v, v), syntax)
    syntax.losses["lisa.source.1"].backward()
    assert x.grad.any(-1).all()


def test_without_gold_there_is_no_loss():
    x, v = torch.randn(1, 8, 6), torch.zeros(1, 2, 8, 3)
    for known in ({}, {"parent_first": torch.zeros(1, 8, dtype=torch.int64)}):
        syntax = Syntax(known)
        Lisa(place()).edit(Terms(x, v, v, v), syntax)
        assert not syntax.losses


def test_lisa_reads_no_parse_to_translate():
    assert not Lisa(place()).reads
    assert {signal.needs for signal in Lisa(place()).learns} == {"parents", "words"}


def test_by_default_it_is_the_first_head_of_the_first_layer():
    lisas = small_model({"name": "lisa"}).variants["source"]
    assert [(lisa.place.layer, lisa.place.first_head, lisa.place.heads) for lisa in lisas] == [
        (1, 0, 1)
    ]
    assert lisas[0].loss_weight == 1.0


def test_the_feed_forward_layer_is_drawn_by_xaviers_rule_head_by_head():
    torch.manual_seed(0)
    lisa = Lisa(Place("source", layer=1, heads=2, model_dim=64, head_dim=16))
    # 64 inputs and 2 · 16 outputs of each head
    bound = math.sqrt(6 / (64 + 32))
    assert lisa.project.weight.shape == (64, 64)
    for head in lisa.project.weight.chunk(2):
        assert 0.99 * bound < head.abs().max() <= bound
    # √(6 / (16 + 16))
    assert 0.97 * math.sqrt(6 / 32) < lisa.biaffine.weight.abs().max() <= math.sqrt(6 / 32)
    assert not lisa.project.bias.any()
    assert not lisa.biaffine.key_bias.any()
