"""Relative positions against a slow loop over their equation, step by step against all at once, and
their symmetry."""

import math

import pytest
import torch
from attending import assert_same_with_gradients, padding_mask, random_terms, slow_attend
from small import random_batch, small_model

from synmt.model.attention import Terms, attend, causal_mask
from synmt.model.pairs import Pairs
from synmt.model.variant import Place, Syntax
from synmt.model.variants.relative import Relative, clipped_distances

SIZE = 3
NOTHING = Syntax({})


def made(*, heads=2, side="target", **options):
    torch.manual_seed(1)
    place = Place(
        side, layer=2, heads=heads, model_dim=4 * SIZE, head_dim=SIZE, first_head=4 - heads
    )
    relative = Relative(place, **options).double()
    for parameter in relative.parameters():
        torch.nn.init.normal_(parameter)
    return relative


def slow_relative(terms, reach, keys, values):
    """O_i = Σ_j softmax_j(q_i · (k_j + a^K[j - i]) / √d) (v_j + a^V[j - i])."""

    def row(i, j):
        return max(-reach, min(reach, j - i)) + reach

    def score(b, h, i, j):
        return terms.q[b, h, i] @ (terms.k[b, h, j] + keys[row(i, j)]) / math.sqrt(SIZE)

    def value(b, h, i, j):
        return terms.v[b, h, j] + (0 if values is None else values[row(i, j)])

    return slow_attend(terms, score, value=value)


@pytest.mark.parametrize("reach", [1, 3, 16])
@pytest.mark.parametrize("options", [{}, {"values": False}, {"shared": True}], ids=str)
@pytest.mark.parametrize(
    "mask", [padding_mask(6, 2), causal_mask(5, torch.device("cpu"))], ids=["padding", "causal"]
)
def test_relative_attention_equals_loops_over_the_equation_gradients_too(mask, options, reach):
    relative = made(reach=reach, **options)
    terms = random_terms(2, 2, mask.size(-1), SIZE, mask, seed=reach)
    values = (
        None
        if options.get("values") is False
        else relative.key
        if "shared" in options
        else relative.value
    )
    inputs = [terms.q, terms.k, terms.v, *relative.parameters()]
    output, expected = (
        attend(relative.edit(terms, NOTHING)),
        slow_relative(terms, reach, relative.key, values),
    )
    assert_same_with_gradients(output, expected, inputs, rtol=1e-9, atol=1e-9)


def test_rows_of_the_table_by_distance():
    # three pieces, reach 1: rows 0, 1, 2 are before, same, after
    assert clipped_distances(3, 3, 1, torch.device("cpu")).tolist() == [
        [1, 2, 2],
        [0, 1, 2],
        [0, 0, 1],
    ]
    # the newest two of four pieces are at positions 2 and 3
    assert clipped_distances(2, 4, 2, torch.device("cpu")).tolist() == [[0, 1, 2, 3], [0, 0, 1, 2]]


def test_scores_of_the_table_worked_out_by_hand():
    # d = 4, so √d = 2: a query of ones and rows that sum to -2, 0 and 10 give -1, 0 and 5
    table = torch.tensor([[-2.0, 0, 0, 0], [1, 1, -1, -1], [4, 3, 2, 1]])
    bias = Pairs(table, clipped_distances(3, 3, 1, torch.device("cpu"))).scores(
        torch.ones(1, 1, 3, 4)
    )
    assert bias[0, 0].tolist() == [[0, 5, 5], [-1, 0, 5], [-1, -1, 0]]


@pytest.mark.parametrize("newest", [1, 3])
def test_the_newest_queries_alone_give_what_they_give_among_all(newest):
    relative = made(reach=2)
    terms = random_terms(2, 2, 7, SIZE)
    at_once = attend(relative.edit(terms, NOTHING))
    last = attend(relative.edit(terms.edit(q=terms.q[:, :, -newest:]), NOTHING))
    torch.testing.assert_close(last, at_once[:, :, -newest:])


def test_attention_without_content_looks_alike_from_everywhere():
    # equal queries, no keys: the score depends on j - i alone, and no longer on that beyond the
    # reach
    relative = made(reach=2)
    q = torch.randn(1, 2, 1, SIZE, dtype=torch.float64).expand(-1, -1, 9, -1)
    scores = relative.edit(Terms(q, q, torch.zeros_like(q), q), NOTHING).scores()
    torch.testing.assert_close(scores[..., 1:, 1:], scores[..., :-1, :-1])
    torch.testing.assert_close(scores[..., 0, 2:], scores[..., 0, 2:3].expand(-1, -1, 7))
    assert not torch.isclose(scores[..., 0, 1], scores[..., 0, 2]).any()
    assert not torch.isclose(scores[..., 4, 3], scores[..., 4, 5]).any()


def test_without_values_only_the_scores_change():
    relative = made(values=False)
    edited = relative.edit(random_terms(1, 2, 4, SIZE), NOTHING)
    assert edited.relative is None
    assert [name for name, _ in relative.named_parameters()] == ["key"]


def test_it_stands_in_all_layers_and_heads_of_its_side_unless_told():
    model = small_model(
        {"name": "relative"}, {"name": "relative", "side": "target", "layers": [2], "heads": 1}
    )
    places = [variant.place for side in ("source", "target") for variant in model.variants[side]]
    assert [(place.side, place.layer, place.heads) for place in places] == [
        ("source", 1, 4),
        ("source", 2, 4),
        ("target", 2, 1),
    ]


def test_the_heads_behind_those_of_another_variant_are_relative():
    both = small_model(
        {"name": "pascal", "heads": 2}, {"name": "relative", "layers": [1], "heads": 2}
    )
    alone = small_model({"name": "relative", "layers": [1]})
    _, batch = random_batch(both, [3, 5])
    x = torch.randn(2, batch.source.ids.size(1), 16)
    outputs = []
    for model in (both, alone):
        attention = model.encoder[0].self_attention
        attention.load_state_dict(both.encoder[0].self_attention.state_dict(), strict=False)
        attention.output = torch.nn.Identity()
        attention.variants[-1].load_state_dict(
            both.encoder[0].self_attention.variants[-1].state_dict()
        )
        outputs.append(attention(x, batch.source.mask[:, None, None], Syntax(batch.source_signals)))
    torch.testing.assert_close(outputs[0][..., 8:], outputs[1][..., 8:])
    assert not torch.allclose(outputs[0][..., :8], outputs[1][..., :8])
