"""The equation of attention: the fused kernel, the written-out one and slow loops agree."""

import math

import pytest
import torch

from synmt.model.attention import Terms, attend, attend_written_out, softmax


def random_terms(seed=0, **filled):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    terms = Terms(draw(2, 4, 6), draw(2, 3, 4, 2), draw(2, 3, 5, 2), draw(2, 3, 5, 2), mask)
    made: dict = {"factor": draw(2, 1, 4, 5), "bias": draw(2, 3, 4, 5), "relative": draw(4, 5, 2)}
    return terms.edit(**{name: made[name] for name in filled})


def slow_attention(terms):
    """O = N(mask((q kᵀ / √d) ⊙ F + B)) (v + R), one number after the other."""
    batch, heads, queries, size = terms.q.shape
    keys = terms.k.size(2)
    output = torch.zeros(batch, heads, queries, size, dtype=torch.float64)
    full = (batch, heads, queries, keys)
    terms = terms.edit(**{name: getattr(terms, name).detach() for name in ("q", "k", "v")})
    factor = (terms.factor if terms.factor is not None else torch.ones(1, dtype=torch.float64)).expand(full)
    bias = (terms.bias if terms.bias is not None else torch.zeros(1, dtype=torch.float64)).expand(full)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                visible = [j for j in range(keys) if bool(terms.mask[b, 0, 0, j])]
                scores = [
                    sum((terms.q[b, h, i, n] * terms.k[b, h, j, n]).item() for n in range(size))
                    / math.sqrt(size)
                    * factor[b, h, i, j].item()
                    + bias[b, h, i, j].item()
                    for j in visible
                ]
                total = sum(math.exp(s) for s in scores)
                for j, score in zip(visible, scores, strict=True):
                    value = terms.v[b, h, j]
                    if terms.relative is not None:
                        value = value + terms.relative[i, j]
                    output[b, h, i] += math.exp(score) / total * value.detach()
    return output


@pytest.mark.parametrize("filled", [(), ("factor",), ("bias",), ("relative",), ("factor", "bias", "relative")])
def test_attention_equals_loops_over_the_equation(filled):
    terms = random_terms(**dict.fromkeys(filled))
    torch.testing.assert_close(attend(terms).detach(), slow_attention(terms), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("filled", [(), ("bias",)])
def test_fused_equals_written_out_gradients_too(filled):
    results = []
    for kernel in (attend, attend_written_out):
        terms = random_terms(**dict.fromkeys(filled))
        output = kernel(terms)
        output.square().sum().backward()
        parts = [terms.q, terms.k, terms.v] + ([terms.bias] if terms.bias is not None else [])
        results.append([output.detach(), *(part.grad for part in parts)])
    for fused, written in zip(*results, strict=True):
        torch.testing.assert_close(fused, written, rtol=1e-5, atol=1e-6)


def test_another_normalizer_takes_the_place_of_softmax():
    terms = random_terms()
    uniform = attend(terms.edit(normalize=lambda scores: softmax(torch.zeros_like(scores)), mask=None))
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
