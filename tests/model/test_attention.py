"""The equation of attention: the fused kernel, the written-out one and slow loops agree."""

import math

import pytest
import torch
from attending import assert_same_with_gradients, slow_attend

from synmt.model.attention import Terms, attend, attend_written_out, softmax
from synmt.model.pairs import Pairs


def random_terms(seed=0, **filled):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    terms = Terms(draw(2, 4, 6), draw(2, 3, 4, 2), draw(2, 3, 5, 2), draw(2, 3, 5, 2), mask)
    rows = torch.randint(7, (2, 4, 5), generator=generator)
    made: dict = {
        "factor": draw(2, 1, 4, 5),
        "bias": draw(2, 3, 4, 5),
        "relative": Pairs(draw(7, 2), rows),
    }
    return terms.edit(**{name: made[name] for name in filled})


def slow_attention(terms):
    """O = N(mask((q kᵀ / √d) ⊙ F + B)) (v + R), one score after the other."""

    def score(b, h, i, j):
        plain = terms.q[b, h, i] @ terms.k[b, h, j] / math.sqrt(2)
        # one factor for all heads
        scaled = plain if terms.factor is None else plain * terms.factor[b, 0, i, j]
        return scaled if terms.bias is None else scaled + terms.bias[b, h, i, j]

    def value(b, h, i, j):
        return terms.v[b, h, j] + (
            0 if terms.relative is None else terms.relative.table[terms.relative.index[b, i, j]]
        )

    return slow_attend(terms, score, value=value)


@pytest.mark.parametrize(
    "filled", [(), ("factor",), ("bias",), ("relative",), ("factor", "bias", "relative")]
)
def test_attention_equals_loops_over_the_equation(filled):
    terms = random_terms(**dict.fromkeys(filled))
    torch.testing.assert_close(attend(terms), slow_attention(terms), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("filled", [(), ("bias",)])
def test_fused_equals_written_out_gradients_too(filled):
    terms = random_terms(**dict.fromkeys(filled))
    leaves = [terms.q, terms.k, terms.v] + ([terms.bias] if terms.bias is not None else [])
    assert_same_with_gradients(
        attend(terms), attend_written_out(terms), leaves, rtol=1e-5, atol=1e-6
    )


def test_another_normalizer_takes_the_place_of_softmax():
    terms = random_terms()
    uniform = attend(
        terms.edit(normalize=lambda scores: softmax(torch.zeros_like(scores)), mask=None)
    )
    expected = terms.v.mean(2, keepdim=True).expand_as(uniform)
    torch.testing.assert_close(uniform, expected, rtol=1e-6, atol=1e-6)


def test_masked_keys_have_no_influence():
    terms = random_terms(factor=None)
    changed = terms.k.detach().clone()
    changed[1, :, 3:] = 100.0
    torch.testing.assert_close(attend(terms), attend(terms.edit(k=changed)))


def test_scores_are_masked_after_all_edits():
    terms = random_terms(factor=None, bias=None)
    scores = terms.scores()
    assert torch.isinf(scores[1, :, :, 3:]).all()
    assert torch.isfinite(scores[0]).all()
