"""Dependency-based self-attention against a slow loop written from the paper's equations, on both sides."""

import math

import numpy as np
import pytest
import torch
from small import MONKEY, MONKEY_WORD_OF, random_tree, small_model

from synmt.errors import UsageError
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
    """The next piece of the word; after its last, the first piece of the parent, or itself for the root."""
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
    """Draw trees whose words have one to three pieces."""
    random = np.random.default_rng(seed)
    trees = [random_tree(words, random) for words in (1, 4, 5)]
    word_ofs = [np.repeat(np.arange(len(tree)), random.integers(1, 4, len(tree))) for tree in trees]
    return [(tree, with_special(side, word_of)) for tree, word_of in zip(trees, word_ofs, strict=True)]


def padded(sentences):
    """Put the two signals side by side, computed by our own loop; padding is no word."""
    length = max(len(word_of) for _, word_of in sentences)
    chain, words = torch.zeros(len(sentences), length, dtype=torch.int64), torch.full((len(sentences), length), -1)
    for row, (tree, word_of) in enumerate(sentences):
        chain[row, : len(word_of)] = torch.tensor(slow_chain(tree, word_of))
        words[row, : len(word_of)] = torch.from_numpy(word_of)
    return {"parent_chain": chain, "word": words}


def mask_of(side, lengths):
    if side == "target":
        return causal_mask(max(lengths), torch.device("cpu"))
    return torch.tensor([[j < length for j in range(max(lengths))] for length in lengths])[:, None, None]


def random_variant(side, heads=2):
    variant = Dbsa(place(side, heads)).double()
    torch.nn.init.normal_(variant.biaffine.key_bias)
    return variant


def slow_dbsa(side, sentences, q, k, v, weight, key_bias):
    """Output and loss of A = softmax(q U kᵀ / √d + k u) over what a piece sees, sentence by sentence, no padding."""
    batch, heads, length, size = q.shape
    output, loss = [[None] * batch for _ in range(heads)], 0
    for h in range(heads):
        for b, (tree, word_of) in enumerate(sentences):
            gold, rows = slow_chain(tree, word_of), []
            for t, word in enumerate(word_of):
                seen = range(t + 1) if side == "target" else range(len(word_of))
                scores = [
                    (torch.outer(q[b, h, t], k[b, h, j]) * weight[h]).sum() / math.sqrt(size)
                    + (k[b, h, j] * key_bias[h]).sum()
                    for j in seen
                ]
                total = sum(score.exp() for score in scores)
                rows.append(sum(score.exp() / total * v[b, h, j] for j, score in enumerate(scores)))
                if word >= 0 and gold[t] in seen:
                    loss = loss - (scores[gold[t]].exp() / total).log() / heads
            rows += [torch.zeros(size, dtype=q.dtype)] * (length - len(word_of))
            output[h][b] = torch.stack(rows)
    return torch.stack([torch.stack(rows) for rows in output], 1), loss


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("side", SIDES)
def test_dbsa_equals_loops_over_the_equation_on_random_trees_gradients_too(side, heads):
    sentences = random_sentences(side, seed=heads)
    lengths = [len(word_of) for _, word_of in sentences]
    torch.manual_seed(heads)
    q, k, v = (torch.randn(3, heads, max(lengths), 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    dbsa = random_variant(side, heads)
    dbsa.loss_weight = 0.7
    syntax = Syntax(padded(sentences))
    real = mask_of("source", lengths)[:, :, 0, :, None]
    terms = Terms(torch.zeros(3, max(lengths), 8), q, k, v, mask_of(side, lengths))
    output = attend(dbsa.edit(terms, syntax)) * real
    loss = syntax.losses[f"dbsa.{side}.4"]
    leaves = q, k, v, dbsa.biaffine.weight, dbsa.biaffine.key_bias
    slow_output, slow_loss = slow_dbsa(side, sentences, *leaves)
    torch.testing.assert_close(output, slow_output)
    torch.testing.assert_close(loss, 0.7 * slow_loss)
    slopes = torch.randn_like(output)
    torch.testing.assert_close(
        torch.autograd.grad((output * slopes).sum() + loss, leaves),
        torch.autograd.grad((slow_output * slopes).sum() + 0.7 * slow_loss, leaves),
    )


@pytest.mark.parametrize("side", SIDES)
def test_the_signals_are_those_of_our_own_loop(side):
    for seed in range(20):
        for tree, word_of in random_sentences(side, seed):
            assert PARENT_CHAIN.compute(tree, word_of).tolist() == slow_chain(tree, word_of)
            assert WORD.compute(tree, word_of).tolist() == word_of.tolist()
    assert WORD.pad < 0


def loss_of_equal_scores(side):
    sentence = MONKEY, with_special(side, MONKEY_WORD_OF)
    zeros = torch.zeros(1, 1, 8, 4)
    syntax = Syntax(padded([sentence]))
    Dbsa(place(side, heads=1)).edit(Terms(torch.zeros(1, 8, 8), zeros, zeros, zeros, mask_of(side, [8])), syntax)
    return syntax.losses[f"dbsa.{side}.4"].item()


def test_the_chain_of_the_monkey():
    # 0 ▁The 1 ▁mon 2 key 3 ▁eats 4 ▁a 5 ▁ban 6 ana 7 </s>: mon -> key -> eats, ban -> ana -> eats, eats -> itself
    assert slow_chain(MONKEY, with_special("source", MONKEY_WORD_OF)) == [1, 2, 3, 3, 5, 6, 3, 7]
    # 0 <s> 1 ▁The 2 ▁mon 3 key 4 ▁eats 5 ▁a 6 ▁ban 7 ana
    assert slow_chain(MONKEY, with_special("target", MONKEY_WORD_OF)) == [0, 2, 3, 4, 4, 6, 7, 4]


def test_the_source_of_the_monkey_teaches_every_piece_but_eos():
    # equal scores: each of seven pieces finds its parent among eight
    assert loss_of_equal_scores("source") == pytest.approx(7 * math.log(8))


def test_the_target_of_the_monkey_teaches_only_parents_that_are_not_in_the_future():
    # only ▁eats (itself, among <s> to ▁eats: 5) and ana (▁eats, among 8) have a parent that they may see
    assert loss_of_equal_scores("target") == pytest.approx(math.log(5) + math.log(8))


def attention_with(side, heads=1):
    variant = Dbsa(Place(side, layer=4, heads=heads, model_dim=16, head_dim=8))
    return SelfAttention(16, 2, variants=[variant]), variant


@pytest.mark.parametrize("side", SIDES)
def test_a_head_learns_the_parents_of_the_monkey(side):
    word_of = with_special(side, MONKEY_WORD_OF)
    signals, mask = padded([(MONKEY, word_of)]), mask_of(side, [8])
    torch.manual_seed(1)
    attention, dbsa = attention_with(side)
    x = torch.randn(1, 8, 16)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        syntax = Syntax(signals)
        attention(x, mask, syntax)
        losses.append(syntax.losses[f"dbsa.{side}.4"])
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[0] > 2
    assert losses[-1] < 0.05
    q, k, v = (split_heads(part, 2) for part in attention.project(x).chunk(3, -1))
    found = dbsa.edit(Terms(x, q, k, v, mask).heads(0, 1), Syntax({})).scores().argmax(-1)[0, 0].tolist()
    gold = slow_chain(MONKEY, word_of)
    taught = [t for t, word in enumerate(word_of) if word >= 0 and (side == "source" or gold[t] <= t)]
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
    assert {signal.needs for signal in Dbsa(place()).learns} == {"parents"}


@pytest.mark.parametrize("side", SIDES)
def test_by_default_it_is_the_first_head_of_the_fourth_layer(side):
    layers = small_model({"name": "dbsa", "side": side}, encoder_layers=5, decoder_layers=5).variants[side]
    assert [(dbsa.place.layer, dbsa.place.first_head, dbsa.place.heads) for dbsa in layers] == [(4, 0, 1)]
    assert layers[0].loss_weight == 1.0


def test_u_begins_small_and_the_key_bias_at_zero():
    torch.manual_seed(0)
    biaffine = Dbsa(Place("source", layer=4, heads=2, model_dim=64, head_dim=32)).biaffine
    # Xavier: √(6 / (32 + 32)), times 1 / √2
    bound = math.sqrt(6 / 64 / 2)
    assert 0.98 * bound < biaffine.weight.abs().max() <= bound
    assert not biaffine.key_bias.any()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no layer 4"),
        ({"layers": [1], "heads": 5}, "5 heads of layer 1, but 4 of 4 are free"),
        ({"layers": [1], "gain": 2}, "no option 'gain'"),
    ],
)
def test_a_recipe_that_dbsa_cannot_follow_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        small_model({"name": "dbsa", **options})
