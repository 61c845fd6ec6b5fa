"""Dependency-based self-attention against a slow loop written from the paper's equations, on both
sides."""

import math

import numpy as np
import pytest
import torch
from attending import (
    alike_terms,
    assert_same_with_gradients,
    losses_of_training,
    padding_mask,
    random_terms,
    random_trees,
    slow_attend,
    slow_biaffine,
    slow_loss,
)
from small import MONKEY, MONKEY_WORD_OF, small_model
from torch.nn.utils.rnn import pad_sequence

from synmt.model.attention import Terms, attend, causal_mask, split_heads
from synmt.model.multihead import Cache, SelfAttention
from synmt.model.variant import Place, Syntax
from synmt.model.variants.dbsa import Dbsa
from synmt.syntax.signals import PARENT_CHAIN, WORD

SIDES = ["source", "target"]


def place(side="source", heads=2):
    return Place(side, layer=4, heads=heads, model_dim=8, head_dim=4)


def with_special(side, word_of):
    """The source ends in EOS, the decoder's input begins with BOS."""
    return np.append(word_of, -1) if side == "source" else np.append(-1, word_of)


def slow_chain(parse, word_of):
    """The next piece of the word; after its last, the first piece of the parent, or itself for the
    root."""
    gold = []
    for position, word in enumerate(word_of):
        later = [j for j, other in enumerate(word_of) if other == word and j > position]
        if word < 0 or (not later and parse.parents[word] == word):
            gold.append(position)
        elif later:
            gold.append(later[0])
        else:
            gold.append(min(j for j, other in enumerate(word_of) if other == parse.parents[word]))
    return gold


def random_sentences(side, seed):
    trees = random_trees(seed, (1, 4, 5), gap=False)
    return [(tree.parse, with_special(side, tree.word_of)) for tree in trees]


def padded(sentences):
    """Put the two signals side by side, computed by our own loop; padding is not a word."""
    chain = pad_sequence(
        [torch.tensor(slow_chain(*sentence)) for sentence in sentences], batch_first=True
    )
    words = [torch.from_numpy(word_of) for _, word_of in sentences]
    return {"parent_chain": chain, "word": pad_sequence(words, batch_first=True, padding_value=-1)}


def mask_of(side, lengths):
    return (
        causal_mask(max(lengths), torch.device("cpu"))
        if side == "target"
        else padding_mask(*lengths)
    )


def random_variant(side, heads=2):
    variant = Dbsa(place(side, heads)).double()
    torch.nn.init.normal_(variant.biaffine.key_bias)
    return variant


def slow_dbsa(signals, terms, weight, key_bias):
    """Output and loss of A = softmax(q U kᵀ / √d + k u) over what a piece sees."""
    scores = slow_biaffine(terms.q, terms.k, weight, key_bias)
    loss = slow_loss(scores, signals["parent_chain"], signals["word"] >= 0, terms.mask)
    return slow_attend(terms, lambda *place: scores[place]), loss


@pytest.mark.journey
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("side", SIDES)
def test_dbsa_equals_loops_over_the_equation_on_random_trees_gradients_too(side, heads):
    sentences = random_sentences(side, seed=heads)
    lengths = [len(word_of) for _, word_of in sentences]
    dbsa = random_variant(side, heads)
    dbsa.loss_weight = 0.7
    syntax = Syntax(padded(sentences))
    real = padding_mask(*lengths).mT
    terms = random_terms(3, heads, max(lengths), 4, mask_of(side, lengths), seed=heads)
    output = attend(dbsa.edit(terms, syntax))
    slow_output, loss = slow_dbsa(
        syntax.signals, terms, dbsa.biaffine.weight, dbsa.biaffine.key_bias
    )
    fast = torch.cat(((output * real).flatten(), syntax.losses[f"dbsa.{side}.4"][None]))
    slow = torch.cat(((slow_output * real).flatten(), 0.7 * loss[None]))
    assert_same_with_gradients(fast, slow, (terms.q, terms.k, terms.v, *dbsa.biaffine.parameters()))


@pytest.mark.parametrize("side", SIDES)
def test_the_signals_are_those_of_our_own_loop(side):
    for seed in range(20):
        for tree, word_of in random_sentences(side, seed):
            assert PARENT_CHAIN.compute(tree, word_of).tolist() == slow_chain(tree, word_of)
            assert WORD.compute(tree, word_of).tolist() == word_of.tolist()
    assert WORD.pad < 0


def loss_of_equal_scores(side):
    sentence = MONKEY, with_special(side, MONKEY_WORD_OF)
    syntax = Syntax(padded([sentence]))
    Dbsa(place(side, heads=1)).edit(
        alike_terms(torch.zeros(1, 1, 8, 4), mask_of(side, [8])), syntax
    )
    return syntax.losses[f"dbsa.{side}.4"].item()


def test_the_chain_of_the_monkey():
    # 0 ▁The 1 ▁mon 2 key 3 ▁eats 4 ▁a 5 ▁ban 6 ana 7 </s>: mon -> key -> eats, ban -> ana -> eats,
    # eats -> itself
    assert slow_chain(MONKEY, with_special("source", MONKEY_WORD_OF)) == [1, 2, 3, 3, 5, 6, 3, 7]
    # 0 <s> 1 ▁The 2 ▁mon 3 key 4 ▁eats 5 ▁a 6 ▁ban 7 ana
    assert slow_chain(MONKEY, with_special("target", MONKEY_WORD_OF)) == [0, 2, 3, 4, 4, 6, 7, 4]


def test_the_source_of_the_monkey_teaches_every_piece_but_eos():
    # equal scores: each of seven pieces finds its parent among eight
    assert loss_of_equal_scores("source") == pytest.approx(7 * math.log(8))


def test_the_target_of_the_monkey_teaches_only_parents_that_are_not_in_the_future():
    # only ▁eats (itself, among <s> to ▁eats: 5) and ana (▁eats, among 8) have a parent that they
    # may see
    assert loss_of_equal_scores("target") == pytest.approx(math.log(5) + math.log(8))


def attention_with(side, heads=1):
    variant = Dbsa(Place(side, layer=4, heads=heads, model_dim=16, head_dim=8))
    return SelfAttention(16, 2, variants=[variant]), variant


@pytest.mark.journey
@pytest.mark.parametrize("side", SIDES)
def test_a_head_learns_the_parents_of_the_monkey(side):
    word_of = with_special(side, MONKEY_WORD_OF)
    signals, mask = padded([(MONKEY, word_of)]), mask_of(side, [8])
    torch.manual_seed(1)
    attention, dbsa = attention_with(side)
    x = torch.randn(1, 8, 16)
    losses = losses_of_training(attention, x, mask, signals)
    assert losses[0] > 2
    assert losses[-1] < 0.05
    q, k, v = (split_heads(part, 2) for part in attention.project(x).chunk(3, -1))
    found = (
        dbsa.edit(Terms(x, q, k, v, mask).heads(0, 1), Syntax({}))
        .scores()
        .argmax(-1)[0, 0]
        .tolist()
    )
    gold = slow_chain(MONKEY, word_of)
    taught = [
        t for t, word in enumerate(word_of) if word >= 0 and (side == "source" or gold[t] <= t)
    ]
    assert len(taught) == (7 if side == "source" else 2)
    assert [found[t] for t in taught] == [gold[t] for t in taught]


def test_step_by_step_every_key_keeps_its_own_bias():
    torch.manual_seed(2)
    attention, dbsa = attention_with("target")
    torch.nn.init.normal_(dbsa.biaffine.key_bias)
    x, cache = torch.randn(2, 6, 16), Cache()
    at_once = attention(x, mask_of("target", [6]), Syntax({}))
    steps = [attention(x[:, [t]], None, Syntax({}), cache) for t in range(6)]
    torch.testing.assert_close(torch.cat(steps, 1), at_once)


def test_without_gold_there_is_no_loss():
    attention, _ = attention_with("source")
    for known in ({}, {"parent_chain": torch.zeros(1, 8, dtype=torch.int64)}):
        syntax = Syntax(known)
        attention(torch.randn(1, 8, 16), None, syntax)
        assert not syntax.losses


def test_dbsa_reads_no_parse_to_translate():
    assert not Dbsa(place()).reads
    assert {signal.needs for signal in Dbsa(place()).learns} == {"parents", "words"}


@pytest.mark.parametrize("side", SIDES)
def test_by_default_it_is_the_first_head_of_the_fourth_layer(side):
    layers = small_model(
        {"name": "dbsa", "side": side}, encoder_layers=5, decoder_layers=5
    ).variants[side]
    assert [(dbsa.place.layer, dbsa.place.first_head, dbsa.place.heads) for dbsa in layers] == [
        (4, 0, 1)
    ]
    assert layers[0].loss_weight == 1.0


def test_u_begins_small_and_the_key_bias_at_zero():
    torch.manual_seed(0)
    biaffine = Dbsa(Place("source", layer=4, heads=2, model_dim=64, head_dim=32)).biaffine
    # Xavier: √(6 / (32 + 32)), times 1 / √2
    bound = math.sqrt(6 / 64 / 2)
    assert 0.98 * bound < biaffine.weight.abs().max() <= bound
    assert not biaffine.key_bias.any()
