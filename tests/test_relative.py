"""Relative positions against a slow loop over their equation, step by step against all at once, and their symmetry."""

import math

import pytest
import torch
from small import random_batch, small_model

from synmt.errors import UsageError
from synmt.model.attention import Terms, attend, causal_mask
from synmt.model.variant import Place, Syntax
from synmt.model.variants.relative import Relative, agreement, clipped_distances

SIZE = 3
NOTHING = Syntax({})


def made(*, heads=2, side="target", **options):
    torch.manual_seed(1)
    place = Place(side, layer=2, heads=heads, model_dim=4 * SIZE, head_dim=SIZE, first_head=4 - heads)
    relative = Relative(place, **options).double()
    for parameter in relative.parameters():
        torch.nn.init.normal_(parameter)
    return relative


def drawn(batch, length, mask, *, heads=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, heads, length, SIZE)
    q, k, v = (torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3))
    return Terms(torch.zeros(batch, length, 4 * SIZE), q, k, v, mask)


def padding_mask(*lengths):
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


def dot(xs, ys):
    return sum(x * y for x, y in zip(xs, ys, strict=True))


def slow_relative(terms, reach, keys, values):
    """O_i = Σ_j softmax_j(q_i · (k_j + a^K[j - i]) / √d) (v_j + a^V[j - i]), one number after the other."""
    batch, heads, length, size = terms.q.shape
    visible = terms.mask.expand(batch, 1, length, length)
    rows = []
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                weights, seen = [], []
                for j in range(length):
                    if not visible[b, 0, i, j]:
                        continue
                    row = max(-reach, min(reach, j - i)) + reach
                    key, value = terms.k[b, h, j], terms.v[b, h, j]
                    if values is not None:
                        value = value + values[row]
                    score = dot(terms.q[b, h, i], [key[n] + keys[row, n] for n in range(size)]) / math.sqrt(size)
                    weights.append(torch.exp(score))
                    seen.append(value)
                rows.append(sum(w * value for w, value in zip(weights, seen, strict=True)) / sum(weights))
    return torch.stack(rows).view_as(terms.v)


@pytest.mark.parametrize("reach", [1, 3, 16])
@pytest.mark.parametrize("options", [{}, {"values": False}, {"shared": True}], ids=str)
@pytest.mark.parametrize("mask", [padding_mask(6, 2), causal_mask(5, torch.device("cpu"))], ids=["padding", "causal"])
def test_relative_attention_equals_loops_over_the_equation_gradients_too(mask, options, reach):
    relative = made(reach=reach, **options)
    terms = drawn(2, mask.size(-1), mask, seed=reach)
    values = None if options.get("values") is False else relative.key if "shared" in options else relative.value
    slope = torch.randn(terms.v.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    inputs = [terms.q, terms.k, terms.v, *relative.parameters()]
    results = []
    for output in (attend(relative.edit(terms, NOTHING)), slow_relative(terms, reach, relative.key, values)):
        results.append([output, *torch.autograd.grad(output, inputs, slope)])
    for ours, slow in zip(*results, strict=True):
        torch.testing.assert_close(ours, slow, rtol=1e-9, atol=1e-9)


def test_rows_of_the_table_by_distance():
    # three pieces, reach 1: rows 0, 1, 2 are before, same, after
    assert clipped_distances(3, 3, 1, torch.device("cpu")).tolist() == [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    # the newest two of four pieces stand at positions 2 and 3
    assert clipped_distances(2, 4, 2, torch.device("cpu")).tolist() == [[0, 1, 2, 3], [0, 0, 1, 2]]


def test_agreement_worked_out_by_hand():
    # d = 4, so √d = 2: a query of ones and rows that sum to -2, 0 and 10 give -1, 0 and 5
    table = torch.tensor([[-2.0, 0, 0, 0], [1, 1, -1, -1], [4, 3, 2, 1]])
    bias = agreement(torch.ones(1, 1, 3, 4), table, clipped_distances(3, 3, 1, torch.device("cpu")))
    assert bias[0, 0].tolist() == [[0, 5, 5], [-1, 0, 5], [-1, -1, 0]]


@pytest.mark.parametrize("newest", [1, 3])
def test_the_newest_queries_alone_give_what_they_give_among_all(newest):
    relative = made(reach=2)
    terms = drawn(2, 7, None)
    at_once = attend(relative.edit(terms, NOTHING))
    last = attend(relative.edit(terms.edit(q=terms.q[:, :, -newest:]), NOTHING))
    torch.testing.assert_close(last, at_once[:, :, -newest:])


def test_attention_without_content_looks_alike_from_everywhere():
    # equal queries, no keys: the score depends on j - i alone, and no longer on that beyond the reach
    relative = made(reach=2)
    q = torch.randn(1, 2, 1, SIZE, dtype=torch.float64).expand(-1, -1, 9, -1)
    scores = relative.edit(Terms(q, q, torch.zeros_like(q), q), NOTHING).scores()
    torch.testing.assert_close(scores[..., 1:, 1:], scores[..., :-1, :-1])
    torch.testing.assert_close(scores[..., 0, 2:], scores[..., 0, 2:3].expand(-1, -1, 7))
    assert not torch.isclose(scores[..., 0, 1], scores[..., 0, 2]).any()
    assert not torch.isclose(scores[..., 4, 3], scores[..., 4, 5]).any()


def test_without_values_only_the_scores_change():
    relative = made(values=False)
    edited = relative.edit(drawn(1, 4, None), NOTHING)
    assert edited.relative is None
    assert [name for name, _ in relative.named_parameters()] == ["key"]


def test_it_stands_in_all_layers_and_heads_of_its_side_unless_told():
    model = small_model({"name": "relative"}, {"name": "relative", "side": "target", "layers": [2], "heads": 1})
    places = [variant.place for side in ("source", "target") for variant in model.variants[side]]
    assert [(place.side, place.layer, place.heads) for place in places] == [
        ("source", 1, 4),
        ("source", 2, 4),
        ("target", 2, 1),
    ]


def test_the_heads_behind_those_of_another_variant_are_relative():
    both = small_model({"name": "pascal", "heads": 2}, {"name": "relative", "layers": [1], "heads": 2})
    alone = small_model({"name": "relative", "layers": [1]})
    _, batch = random_batch(both, [3, 5])
    x = torch.randn(2, batch.source.ids.size(1), 16)
    outputs = []
    for model in (both, alone):
        attention = model.encoder[0].self_attention
        attention.load_state_dict(both.encoder[0].self_attention.state_dict(), strict=False)
        attention.output = torch.nn.Identity()
        attention.variants[-1].load_state_dict(both.encoder[0].self_attention.variants[-1].state_dict())
        outputs.append(attention(x, batch.source.mask[:, None, None], Syntax(batch.source_signals)))
    torch.testing.assert_close(outputs[0][..., 8:], outputs[1][..., 8:])
    assert not torch.allclose(outputs[0][..., :8], outputs[1][..., :8])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reach": 0}, "reach: input should be greater than 0, not 0"),
        ({"values": False, "shared": True}, "no table to share"),
        ({"reach": 2.5}, "reach: "),
        ({"range": 4}, "no option 'range'"),
    ],
)
def test_a_recipe_that_relative_cannot_follow_is_refused(options, said):
    with pytest.raises(UsageError, match=said):
        small_model({"name": "relative", **options})
