"""PASCAL against a slow loop written from the paper's equation, and parent ignoring against its
rate."""

import math

import numpy as np
import pytest
import torch
from attending import alike_terms, random_terms, random_trees, read, slow_attend, with_eos
from small import MONKEY, MONKEY_WORD_OF, batch_for, random_batch, small_model

from synmt.model.attention import attend
from synmt.model.variant import Place, Syntax
from synmt.model.variants.pascal import Pascal, gaussian, parent_only
from synmt.syntax.signals import parent_middle

PLACE = Place("source", layer=1, heads=2, model_dim=8, head_dim=4)


def parents_of_monkey():
    signal = parent_middle(MONKEY, np.append(MONKEY_WORD_OF, -1))
    return torch.from_numpy(signal)[None]


def slow_middles(parse, word_of):
    """p_t: the mean position of the pieces of the parent of piece t's word; specials their own
    position."""
    middles = []
    for position, word in enumerate(word_of):
        pieces = [
            j for j, owner in enumerate(word_of) if word >= 0 and owner == parse.parents[word]
        ]
        middles.append(sum(pieces) / len(pieces) if pieces else position)
    return middles


def slow_pascal(terms, sentences, variance, combine, shape):
    """N = (q · k / √d) · D with D_tj = exp(-(j - p_t)² / 2σ²) / √(2πσ²), softmax, values; without
    padding."""
    middles = [slow_middles(*sentence) for sentence in sentences]

    def score(b, h, t, j):
        plain, distance = terms.q[b, h, t] @ terms.k[b, h, j] / math.sqrt(4), j - middles[b][t]
        if shape == "gaussian":
            d = math.exp(-(distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        else:
            d = 1.0 if abs(distance) < 1 else 0.0
        return plain * d if combine == "multiply" else plain + d

    return slow_attend(terms, score, lengths=[len(word_of) for _, word_of in sentences])


def test_parent_middle_of_the_monkey():
    # ▁The ▁mon key ▁eats ▁a ▁ban ana </s>: monkey is pieces 1 and 2, eats is 3, banana is 5 and 6
    assert parents_of_monkey()[0].tolist() == [1.5, 3, 3, 3, 5.5, 3, 3, 7]


def test_density_rows_of_the_monkey():
    density = gaussian(parents_of_monkey(), 1.0)[0]
    the = [0.130, 0.352, 0.352, 0.130, 0.018, 0.001, 0.0, 0.0]
    mon = [0.004, 0.054, 0.242, 0.399, 0.242, 0.054, 0.004, 0.0]
    np.testing.assert_allclose(density[0], the, atol=6e-4)
    np.testing.assert_allclose(density[1], mon, atol=6e-4)


def test_parent_only_takes_both_pieces_around_a_middle():
    rows = parent_only(parents_of_monkey())[0]
    assert rows[0].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    assert rows[1].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


@pytest.mark.journey
@pytest.mark.parametrize("variance", [1, 4, 25])
@pytest.mark.parametrize(
    ("combine", "shape"),
    [("multiply", "gaussian"), ("add", "gaussian"), ("multiply", "parent_only")],
)
def test_pascal_equals_loops_over_the_equation_on_random_trees(variance, combine, shape):
    trees = random_trees(variance)
    pascal = Pascal(PLACE, variance=variance, combine=combine, shape=shape)
    syntax, mask = read(pascal, trees)
    terms = random_terms(3, 2, mask.size(-1), 4, mask, seed=variance)
    output = attend(pascal.edit(terms, syntax)) * mask.mT
    expected = slow_pascal(terms, with_eos(trees), variance, combine, shape)
    torch.testing.assert_close(output, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("combine", ["multiply", "add"])
def test_gradients_of_pascal_equal_numerical_ones(combine):
    syntax = Syntax({"parent_middle": parents_of_monkey().double()})
    pascal, terms = Pascal(PLACE, combine=combine), random_terms(1, 2, 8, 4, seed=3)

    def output(q, k, v):
        return attend(pascal.edit(terms.edit(q=q, k=k, v=v), syntax))

    assert torch.autograd.gradcheck(output, (terms.q, terms.k, terms.v))


def test_parent_ignoring_has_its_rate_per_sentence_head_and_row():
    pascal = Pascal(PLACE, ignore=0.3).train()
    batch, heads, length = 20, 2, 50
    signal = {"parent_middle": torch.full((batch, length), 7.0)}
    torch.manual_seed(0)
    factor = pascal.edit(alike_terms(torch.zeros(batch, heads, length, 4)), Syntax(signal)).factor
    ignored = (factor == 1).all(-1)  # (B, H, T)
    # 2,000 rows: the rate is 0.3 ± 0.01 (one standard deviation)
    assert abs(ignored.float().mean().item() - 0.3) < 0.04
    assert ((factor == 1).any(-1) == ignored).all()
    assert not torch.equal(ignored[:, 0], ignored[:, 1])
    assert not torch.equal(ignored[0], ignored[1])
    kept = factor[~ignored]  # (rows, T)
    torch.testing.assert_close(
        kept, gaussian(signal["parent_middle"][:1], 1.0)[0, :1].expand(len(kept), -1)
    )


def ignoring_all(**options):
    syntax = Syntax({"parent_middle": torch.zeros(1, 5)})
    return Pascal(PLACE, ignore=1.0, **options), (alike_terms(torch.zeros(1, 2, 5, 4)), syntax)


def test_parent_ignoring_adds_nothing_where_closeness_is_added():
    pascal, inputs = ignoring_all(combine="add")
    assert not pascal.train().edit(*inputs).bias.any()


def test_parent_ignoring_is_for_training_only():
    pascal, inputs = ignoring_all()
    assert not (pascal.eval().edit(*inputs).factor == 1).any()


def test_heads_beyond_those_of_pascal_are_plain():
    plain, scaled = small_model(), small_model({"name": "pascal", "heads": 2})
    scaled.load_state_dict(plain.state_dict())
    _, batch = random_batch(scaled, [3, 5])
    attention, other = scaled.encoder[0].self_attention, plain.encoder[0].self_attention
    x = torch.randn(2, batch.source.ids.size(1), 16)
    seen = {}
    for name, module, syntax in (
        ("plain", other, None),
        ("pascal", attention, Syntax(batch.source_signals)),
    ):
        module.output = torch.nn.Identity()
        seen[name] = module(x, batch.source.mask[:, None, None], syntax)
    torch.testing.assert_close(seen["plain"][..., 8:], seen["pascal"][..., 8:])
    assert not torch.allclose(seen["plain"][..., :8], seen["pascal"][..., :8])


def test_only_the_chosen_layers_change():
    model = small_model({"name": "pascal", "layers": [2]})
    assert len(model.encoder[0].self_attention.variants) == 0
    assert len(model.encoder[1].self_attention.variants) == 1


def test_a_changed_parse_changes_its_own_sentence_and_no_other():
    model = small_model({"name": "pascal", "heads": 2}).eval()
    examples, batch = random_batch(model, [6, 6, 6])
    before = model(batch).states
    batch.source_signals["parent_middle"][0] = 0
    after = model(batch).states
    assert not torch.allclose(before[0], after[0])
    torch.testing.assert_close(before[1:], after[1:])
    assert batch_for(model, examples).source_signals.keys() == {"parent_middle"}
