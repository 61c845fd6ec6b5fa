"""Labelled dependency distributions against loops over parses, and against numbers worked out by
hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from attending import PLACE, alike_terms, assert_attends, drawn, random_trees, read
from small import make_variant

from synmt.data.corpus import Tree
from synmt.model.attention import attend
from synmt.model.variants.dependency_distribution import DependencyDistribution
from synmt.syntax.parse import Arcs, Parse

# nsubj:pass has left the group of nsubj; `case` and `odd` are in none
GROUPS = (("root", "det"), ("nsubj",), ("nsubj:pass", "obj"))
IN_GROUP = {name: head for head, names in enumerate(GROUPS) for name in names}
KINDS = ("ldd", "lda", "ldp", "udp", "udd", "uldd", "uudd")
THREE = replace(PLACE, heads=3, model_dim=12)
SIXTEEN = replace(PLACE, heads=16, model_dim=64)


def options_of(kind, **options):
    """Add the three groups to the kinds that have groups."""
    groups = {"groups": GROUPS} if kind in ("ldd", "lda", "ldp", "uldd") else {}
    return {"kind": kind, **groups, **options}


def probability(parse, kind, head, word, parent):
    """P of two words in one head, straight from the table of kinds."""
    if kind == "uldd":
        return 1 / (len(parse) * len(GROUPS))
    if kind == "uudd":
        return 1 / len(parse)
    if kind in ("ldp", "udp"):
        there = parse.parents[word] == parent
        return float(there and (kind == "udp" or IN_GROUP.get(parse.relations[word]) == head))
    arcs, total = parse.arcs, 0.0
    for number in np.flatnonzero((arcs.words == word) & (arcs.parents == parent)):
        if kind == "udd" or IN_GROUP.get(arcs.names[arcs.relations[number]]) == head:
            total += float(arcs.probabilities[number])
    return total


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("kind", "softmax"), [*((kind, False) for kind in KINDS), ("lda", True)])
def test_every_kind_equals_loops_over_the_equation(kind, softmax, split):
    """N = softmax(S ∘ P) V, or P V for lda."""

    def p(pair):
        query, key = pair.words
        pieces = pair.word_of.tolist().count(key) if split else 1
        return probability(pair.parse, kind, pair.head, query, key) / pieces if key >= 0 else 0.0

    def score(pair):
        special = pair.words[0] < 0
        if kind != "lda":
            return pair.plain if special else pair.plain * p(pair)
        if softmax:
            return torch.tensor(0.0 if special else p(pair), dtype=torch.float64)
        # P itself is the weight; a row without P looks at all pieces alike
        weight = 1 / len(pair.word_of) if special else p(pair)
        return torch.tensor(weight, dtype=torch.float64).log()

    variant = drawn(DependencyDistribution, THREE, **options_of(kind, split=split, softmax=softmax))
    normalized, unused = kind != "lda" or softmax, kind == "lda"
    assert_attends(variant, random_trees(1), score, normalized=normalized, unused=unused)


def sleeping_dog(subject, object_):
    """`dogs sleep`, where the parser is 0.6 sure of a subject, 0.3 of an object, 0.1 of a root on
    the left."""
    arcs = Arcs(
        words=np.array([0, 0, 0, 1, 1]),
        parents=np.array([1, 1, 0, 1, 0]),
        relations=np.array([0, 1, 2, 2, 1]),
        probabilities=np.array([0.6, 0.3, 0.1, 0.8, 0.2], np.float32),
        names=(subject, object_, "root"),
    )
    spans = np.array([[0, 4], [5, 10]])
    parse = Parse(["dogs", "sleep"], spans, np.array([1, 1]), [subject, "root"], arcs=arcs)
    return Tree(parse, np.array([0, 0, 1]))


@pytest.mark.parametrize(
    ("groups", "subject", "object_"),
    [("universal", "nsubj:pass", "obj"), ("stanford", "nsubjpass", "dobj")],
)
def test_heads_are_numbered_as_in_the_paper_in_either_scheme(groups, subject, object_):
    variant = make_variant(DependencyDistribution, SIXTEEN, groups=groups)
    syntax, mask = read(variant, [sleeping_dog(subject, object_)])
    factor = variant.edit(alike_terms(torch.zeros(1, 16, 4, 4), mask), syntax).factor[0]
    # dog s sleep </s>: the sums of the columns, to which EOS adds 1
    sums = {6: [1, 1, 2.2, 1], 4: [1.2, 1.2, 1.6, 1], 1: [1.2, 1.2, 1.8, 1], 16: [1, 1, 1, 1]}
    for head, expected in sums.items():
        np.testing.assert_allclose(factor[head - 1].sum(0), expected)


@pytest.mark.parametrize("kind", ["ldd", "lda"])
def test_scores_of_half_precision_are_computed_in_float32(kind):
    variant = make_variant(DependencyDistribution, THREE, **options_of(kind))
    syntax, mask = read(variant, random_trees(1))
    terms = alike_terms(torch.randn(3, 3, mask.size(-1), 4), mask)
    half = terms.edit(**dict.fromkeys("qkv", terms.q.bfloat16()))
    edited = variant.edit(half, syntax)
    assert edited.scores().dtype == torch.float32
    expected = attend(variant.edit(terms, syntax)).bfloat16()
    torch.testing.assert_close(attend(edited), expected, rtol=0.05, atol=0.05)
