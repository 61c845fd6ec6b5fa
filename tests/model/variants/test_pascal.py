"""PASCAL against a loop over its equation, and parent ignoring against its rate."""

import math

import pytest
import torch
from attending import PLACE, alike_terms, assert_attends, drawn, random_trees

from synmt.model.variant import Syntax
from synmt.model.variants.pascal import Pascal, gaussian


def middle(pair):
    """p_t: the mean position of the pieces of the parent; without a word, the piece itself."""
    word = pair.words[0]
    if word < 0:
        return pair.i
    pieces = [j for j, owner in enumerate(pair.word_of) if owner == pair.parse.parents[word]]
    return sum(pieces) / len(pieces)


@pytest.mark.parametrize("variance", [1, 4, 25])
@pytest.mark.parametrize("combine", ["multiply", "add"])
@pytest.mark.parametrize("shape", ["gaussian", "parent_only"])
def test_pascal_equals_loops_over_the_equation(shape, combine, variance):
    def score(pair):
        distance = pair.j - middle(pair)
        d = math.exp(-(distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        if shape == "parent_only":
            d = float(abs(distance) < 1)
        return pair.plain * d if combine == "multiply" else pair.plain + d

    pascal = drawn(Pascal, variance=variance, combine=combine, shape=shape)
    assert_attends(pascal, random_trees(variance), score)


def test_parent_ignoring_has_its_rate_per_sentence_head_and_row():
    pascal, parents = Pascal(PLACE, ignore=0.3).train(), torch.full((20, 50), 7.0)
    torch.manual_seed(0)
    terms = alike_terms(torch.zeros(20, 2, 50, 4))
    factor = pascal.edit(terms, Syntax({"parent_middle": parents})).factor
    ignored = (factor == 1).all(-1)  # (B, H, T)
    # 2,000 rows: the rate is 0.3 ± 0.01 (one standard deviation)
    assert abs(ignored.float().mean().item() - 0.3) < 0.04
    assert not torch.equal(ignored[:, 0], ignored[:, 1])
    assert not torch.equal(ignored[0], ignored[1])
    kept = factor[~ignored]  # (rows, T)
    torch.testing.assert_close(kept, gaussian(parents[:1], 1.0)[0, :1].expand_as(kept))


@pytest.mark.parametrize(
    ("combine", "blank", "neutral"), [("multiply", "factor", 1), ("add", "bias", 0)]
)
def test_ignored_parents_change_nothing_in_training_only(combine, blank, neutral):
    pascal, terms = Pascal(PLACE, ignore=1.0, combine=combine), alike_terms(torch.zeros(1, 2, 5, 4))
    for training in (True, False):
        edited = pascal.train(training).edit(terms, Syntax({"parent_middle": torch.zeros(1, 5)}))
        assert (getattr(edited, blank) == neutral).any() == training
