"""Localness against a loop over its equation, and where sigmoids are saturated."""

import pytest
import torch
from attending import PLACE, assert_attends, drawn, padding_mask, random_terms, random_trees

from synmt.model.attention import attend
from synmt.model.variant import Syntax
from synmt.model.variants.localness import Localness


def share(x, inner, outer):
    """Sigmoid of U tanh(W x + b) + c."""
    return torch.sigmoid(
        outer.weight[0] @ torch.tanh(inner.weight @ x + inner.bias) + outer.bias[0]
    )


@pytest.mark.parametrize("window", ["fixed", "layer", "query"])
def test_localness_equals_loops_over_the_equation(window):
    variant = drawn(Localness, window=window, size=3.0)

    def score(pair):
        """q · k / √d - (j - P)² / 2σ², σ = D / 2."""
        length = len(pair.word_of)
        centre = length * share(pair.q, variant.w_p, variant.u_p)
        if window == "fixed":
            size = torch.tensor(3.0)
        elif window == "query":
            size = length * share(pair.q, variant.w_p, variant.u_d)
        else:
            keys = pair.terms.k[pair.sentence, pair.head, :length]
            size = length * share(sum(keys) / length, variant.w_d, variant.u_d)
        return pair.plain - (pair.j - centre) ** 2 / (2 * (size.clamp(min=0.1) / 2) ** 2)

    assert_attends(variant, random_trees(1), score)


@pytest.mark.parametrize("window", ["layer", "query"])
def test_a_window_never_closes(window):
    variant = Localness(PLACE, window=window).double()
    for parameter in variant.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.constant_(variant.u_d.bias, -200.0)
    terms = random_terms(1, 2, 5, 4, padding_mask(1, 5)[:1])
    edited = variant.edit(terms, Syntax({}))
    # one piece, P = 1/2, D = 0.1, σ = 0.05: G = -(0 - 1/2)² / 0.005 = -50
    assert edited.bias[0, :, 0, 0].tolist() == pytest.approx([-50.0, -50.0])
    attend(edited).square().sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in (terms.q, *variant.parameters()))


def test_autocast_does_not_round_centres_and_windows():
    variant, terms = Localness(PLACE), random_terms(1, 2, 9, 4)
    q, k = terms.q.bfloat16(), terms.k.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        bias = variant.edit(terms.edit(q=q, k=k), Syntax({})).bias
    expected = variant.edit(terms.edit(q=q.float(), k=k.float()), Syntax({})).bias
    torch.testing.assert_close(bias, expected)
