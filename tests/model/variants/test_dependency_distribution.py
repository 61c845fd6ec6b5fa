"""Labelled dependency distributions against loops over parses, and against numbers worked out by
hand."""

import math
from itertools import chain

import numpy as np
import pytest
import torch
from attending import (
    alike_terms,
    assert_alone_as_in_a_batch,
    assert_same_with_gradients,
    random_terms,
    random_trees,
    read,
    slow_attend,
)
from small import MONKEY, MONKEY_WORD_OF, make_variant, relation_warnings, small_model

from synmt.data.corpus import Tree
from synmt.model.attention import Terms, attend
from synmt.model.variant import Place
from synmt.model.variants.dependency_distribution import DependencyDistribution
from synmt.syntax.parse import Arcs, Parse

# nsubj:pass has left the group of nsubj; `case` and `odd` are in none
GROUPS = (("root", "det"), ("nsubj",), ("nsubj:pass", "obj"))
IN_GROUP = {"root": 0, "det": 0, "nsubj": 1, "nsubj:pass": 2, "obj": 2}
KINDS = ("ldd", "lda", "ldp", "udp", "udd", "uldd", "uudd")
LABELLED = ("ldd", "lda", "ldp", "uldd")
THREE = Place("source", layer=1, heads=3, model_dim=12, head_dim=4)


def made(kind, place=THREE, **options):
    """Make a variant with the three groups, if the kind has groups."""
    return make_variant(DependencyDistribution, place, kind=kind, **{**groups_of(kind), **options})


def warnings(kind, occurrences, **options):
    """List the warnings of a kind with the three groups, if the kind has groups."""
    return relation_warnings(
        DependencyDistribution, occurrences, kind=kind, **{**groups_of(kind), **options}
    )


def groups_of(kind):
    return {"groups": GROUPS} if kind in LABELLED else {}


def terms_for(mask, seed):
    """Draw queries, keys and values of three heads of size 4."""
    return random_terms(mask.size(0), 3, mask.size(-1), 4, mask, seed=seed)


def slow_value(parse, kind, head, word, parent):
    """P of two words in one head, straight from the table of kinds."""
    if kind == "uldd":
        return 1 / (len(parse) * len(GROUPS))
    if kind == "uudd":
        return 1 / len(parse)
    if kind in ("ldp", "udp"):
        there = parse.parents[word] == parent
        return float(there and (kind == "udp" or IN_GROUP.get(parse.relations[word]) == head))
    total = 0.0
    entries = zip(
        parse.arcs.words,
        parse.arcs.parents,
        parse.arcs.relations,
        parse.arcs.probabilities,
        strict=True,
    )
    for child, above, number, probability in entries:
        counted = kind == "udd" or IN_GROUP.get(parse.arcs.names[number]) == head
        if (child, above) == (word, parent) and counted:
            total += float(probability)
    return total


def slow_row(tree, kind, head, piece, split):
    """P of one piece to all pieces and EOS; None for EOS and a piece without a word."""
    word_of = [*tree.word_of.tolist(), -1]
    word = word_of[piece]
    if word < 0:
        return None
    return [
        slow_value(tree.parse, kind, head, word, parent) / (word_of.count(parent) if split else 1)
        if parent >= 0
        else 0
        for parent in word_of
    ]


def slow_output(terms, trees, kind, split, softmax):
    """N = softmax(S ∘ P) V, or P V for lda, piece by piece; 0 in rows of padding."""
    lengths = [len(tree.word_of) + 1 for tree in trees]

    def score(b, head, piece, key):
        row = slow_row(trees[b], kind, head, piece, split)
        if kind == "lda" and not softmax:
            # P itself is the weight; a row without P looks at all pieces alike
            return torch.tensor(row[key] if row else 1 / lengths[b], dtype=torch.float64).log()
        if kind == "lda":
            return torch.tensor(row[key] if row else 0.0, dtype=torch.float64)
        plain = terms.q[b, head, piece] @ terms.k[b, head, key] / math.sqrt(4)
        return plain * row[key] if row else plain

    return slow_attend(terms, score, lengths=lengths, normalized=kind != "lda" or softmax)


@pytest.mark.journey
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("kind", "softmax"), [*((kind, False) for kind in KINDS), ("lda", True)])
def test_every_kind_equals_loops_over_the_equation_on_random_trees(kind, softmax, split):
    for seed in range(2):
        trees = random_trees(seed)
        variant = made(kind, split=split, softmax=softmax)
        syntax, mask = read(variant, trees)
        terms = terms_for(mask, seed)
        output = attend(variant.edit(terms, syntax)) * mask.mT
        expected = slow_output(terms, trees, kind, split, softmax)
        leaves = terms.q, terms.k, terms.v
        assert_same_with_gradients(
            output, expected, leaves, unused=kind == "lda", rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("kind", ["ldd", "lda", "udp"])
def test_gradients_equal_numerical_ones(kind):
    variant = made(kind)
    syntax, mask = read(variant, random_trees(3)[1:2])
    terms = terms_for(mask, 3)

    def output(q, k, v):
        return attend(variant.edit(terms.edit(q=q, k=k, v=v), syntax))

    assert torch.autograd.gradcheck(output, (terms.q, terms.k, terms.v))


SIXTEEN = Place("source", layer=1, heads=16, model_dim=64, head_dim=4)
PLAIN_PLACE = Place("source", layer=1, heads=1, model_dim=4, head_dim=4)
MONKEY_TREE = Tree(MONKEY, MONKEY_WORD_OF)
# ▁The ▁mon key ▁eats ▁a ▁ban ana </s>; heads as the paper numbers the groups
MONKEY_ARCS = {
    13: [(0, 1), (0, 2), (4, 5), (4, 6)],  # determiners: The -> monkey, a -> banana
    6: [(1, 3), (2, 3)],  # subjects: monkey -> eats
    1: [(3, 3)],  # the root
    4: [(5, 3), (6, 3)],  # objects: banana -> eats
}


def factor(variant, tree):
    """Give P of one sentence: (1 or H, T, T)."""
    syntax, mask = read(variant, [tree])
    terms = alike_terms(torch.zeros(1, variant.place.heads, mask.size(-1), 4), mask)
    return variant.edit(terms, syntax).factor[0]


@pytest.mark.parametrize(("split", "half"), [(False, 1.0), (True, 0.5)])
def test_the_tree_of_the_monkey_puts_each_arc_in_the_head_of_its_group(split, half):
    expected = torch.zeros(16, 8, 8)
    expected[:, 7] = 1
    for head, places in MONKEY_ARCS.items():
        for row, column in places:
            expected[head - 1, row, column] = 1 if column == 3 else half
    variant = make_variant(DependencyDistribution, SIXTEEN, kind="ldp", split=split)
    torch.testing.assert_close(factor(variant, MONKEY_TREE), expected)


def test_without_labels_the_arcs_of_the_monkey_stand_in_one_matrix_for_all_heads():
    expected = torch.zeros(1, 8, 8)
    expected[:, 7] = 1
    for row, column in chain(*MONKEY_ARCS.values()):
        expected[0, row, column] = 1
    variant = make_variant(DependencyDistribution, PLAIN_PLACE, kind="udp")
    torch.testing.assert_close(factor(variant, MONKEY_TREE), expected)


@pytest.mark.parametrize(
    ("kind", "place", "value"), [("uldd", SIXTEEN, 1 / 80), ("uudd", PLAIN_PLACE, 1 / 5)]
)
def test_uniform_kinds_give_five_words_the_same_everywhere(kind, place, value):
    # 5 words; 16 groups share the mass with labels
    expected = torch.full((place.heads, 8, 8), value)
    expected[:, :, 7] = 0
    expected[:, 7] = 1
    torch.testing.assert_close(
        factor(make_variant(DependencyDistribution, place, kind=kind), MONKEY_TREE), expected
    )


def sleeping_dog(spelling):
    """`dogs sleep`, where the parser is 0.6 sure of a subject, 0.3 of an object, 0.1 of a root on
    the left."""
    arcs = Arcs(
        words=np.array([0, 0, 0, 1, 1]),
        parents=np.array([1, 1, 0, 1, 0]),
        relations=np.array([0, 1, 2, 2, 1]),
        probabilities=np.array([0.6, 0.3, 0.1, 0.8, 0.2], np.float32),
        names=(spelling["nsubj"], spelling["obj"], "root"),
    )
    relations = [spelling["nsubj"], "root"]
    parse = Parse(
        ["dogs", "sleep"], np.array([[0, 4], [5, 10]]), np.array([1, 1]), relations, arcs=arcs
    )
    return Tree(parse, np.array([0, 0, 1]))


@pytest.mark.parametrize(
    ("groups", "spelling"),
    [
        ("universal", {"nsubj": "nsubj:pass", "obj": "obj"}),
        ("stanford", {"nsubj": "nsubjpass", "obj": "dobj"}),
    ],
)
def test_head_6_reads_subjects_and_head_4_objects_in_either_scheme(groups, spelling):
    # dog s sleep </s>
    found = factor(
        make_variant(DependencyDistribution, SIXTEEN, groups=groups), sleeping_dog(spelling)
    )
    ones = [1.0, 1, 1, 1]
    np.testing.assert_allclose(found[6 - 1], [[0, 0, 0.6, 0], [0, 0, 0.6, 0], [0, 0, 0, 0], ones])
    np.testing.assert_allclose(
        found[4 - 1], [[0, 0, 0.3, 0], [0, 0, 0.3, 0], [0.2, 0.2, 0, 0], ones]
    )
    np.testing.assert_allclose(
        found[1 - 1], [[0.1, 0.1, 0, 0], [0.1, 0.1, 0, 0], [0, 0, 0.8, 0], ones]
    )


def test_lda_takes_the_distribution_for_the_weights_as_it_is():
    variant = make_variant(DependencyDistribution, SIXTEEN, kind="lda")
    syntax, mask = read(variant, [sleeping_dog({"nsubj": "nsubj", "obj": "obj"})])
    v = torch.tensor([[1.0], [2.0], [4.0], [8.0]]).expand(1, 16, 4, 1)
    q = torch.full((1, 16, 4, 1), 9.0)
    output = attend(variant.edit(Terms(torch.zeros(1, 4, 16), q, q, v, mask), syntax))[0, :, :, 0]
    # the row of EOS would sum 15, but looks at 4 pieces alike
    eos = 15 / 4
    np.testing.assert_allclose(output[6 - 1], [0.6 * 4, 0.6 * 4, 0, eos], rtol=1e-6)
    np.testing.assert_allclose(output[4 - 1], [0.3 * 4, 0.3 * 4, 0.2 * 1 + 0.2 * 2, eos], rtol=1e-6)
    np.testing.assert_allclose(output[16 - 1], [0, 0, 0, eos], rtol=1e-6)


def test_lda_reads_which_pieces_are_words_only_where_it_has_no_softmax():
    assert [signal.name for signal in made("lda").reads][1:] == ["word"]
    assert len(made("lda", softmax=True).reads) == 1


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        *((kind, "arcs") for kind in ("ldd", "lda", "udd")),
        *((kind, "relations") for kind in ("ldp", "udp")),
        *((kind, "words") for kind in ("uldd", "uudd")),
    ],
)
def test_only_distributions_need_probabilities_of_arcs(kind, needs):
    assert made(kind).reads[0].needs == needs


@pytest.mark.parametrize("kind", ["ldd", "lda"])
def test_scores_of_half_precision_are_computed_in_float32(kind):
    variant = made(kind)
    syntax, mask = read(variant, random_trees(1))
    terms = terms_for(mask, 1)
    edited = variant.edit(
        terms.edit(q=terms.q.bfloat16(), k=terms.k.bfloat16(), v=terms.v.bfloat16()), syntax
    )
    assert edited.scores().dtype == torch.float32
    assert attend(edited).dtype == torch.bfloat16
    expected = attend(variant.edit(terms, syntax))
    torch.testing.assert_close(attend(edited).double(), expected, rtol=0.05, atol=0.05)


@pytest.mark.journey
@pytest.mark.parametrize(
    "options", [{"kind": "lda"}, {"kind": "lda", "softmax": True}, {"kind": "udp"}]
)
def test_other_kinds_compile_as_one_graph_too(options):
    variant = made(**options)
    syntax, mask = read(variant, random_trees(2))
    terms = terms_for(mask, 2)

    def output(q):
        return attend(variant.edit(terms.edit(q=q), syntax))

    compiled = torch.compile(output, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(terms.q), output(terms.q))


@pytest.mark.parametrize(
    "options", [{"kind": kind} for kind in KINDS] + [{"kind": "lda", "softmax": True}]
)
def test_a_recipe_places_every_kind_and_a_sentence_alone_equals_the_sentence_in_a_batch(options):
    groups = [["root", "det"], ["nsubj"], ["nsubj:pass"], ["obj"]]
    own = {"groups": groups} if options["kind"] in LABELLED else {}
    model = small_model({"name": "dependency_distribution", **options, **own}).eval()
    variants = [len(layer.self_attention.variants) for layer in model.encoder]
    assert variants == [1, 0]
    assert not list(model.variants["source"][0].parameters())
    assert_alone_as_in_a_batch(model, [2, 7, 1])


def test_the_warning_names_relations_that_no_group_has_and_no_list_leaves_out():
    counts = {"nsubj": 500, "nsubj:pass": 30, "case": 200, "case:loc": 2, "prep": 1200, "dobj": 68}
    [text] = relation_warnings(DependencyDistribution, counts)
    assert text == (
        "dependency_distribution leaves out 1,268 of 2,000 arcs, whose 2 relations are in no "
        "group: "
        "prep (1,200), dobj (68)"
    )


def test_warnings_about_stanford_groups_skip_what_the_paper_leaves_out():
    assert warnings("ldd", {"dobj": 5, "prep": 7, "nn": 2}, groups="stanford") == []
    [text] = warnings("ldd", {"dobj": 5, "prep": 7, "obl": 1}, groups="stanford")
    assert "1 of 13 arcs" in text


def test_the_warning_about_custom_groups_names_the_five_most_frequent_other_relations():
    own = dict.fromkeys(("root", "det", "nsubj", "nsubj:pass", "obj"), 1)
    # custom groups leave out `case` on purpose, but not relations that no scheme has
    others = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "case": 8}
    [text] = warnings("ldd", {**own, **others})
    assert "21 of 34 arcs, whose 6 relations" in text
    assert text.endswith(": f (6), e (5), d (4), c (3), b (2), …")


def test_the_warning_about_custom_groups_names_relations_that_do_not_occur():
    [text] = warnings("ldd", {"nsubj": 5, "obj:x": 1, "root": 1, "det": 3})
    assert (
        text
        == "no arc of the training text has nsubj:pass, named in dependency_distribution.groups"
    )
    assert warnings("ldd", {"nsubj": 5}, groups="universal") == []


@pytest.mark.parametrize(
    ("kind", "occurrences"),
    [
        *((kind, {"odd": 5}) for kind in ("udp", "udd", "uudd")),
        ("ldp", {"nsubj": 5, "nsubj:pass": 1, "obj:x": 1, "root": 1, "det": 3}),
    ],
)
def test_there_is_no_warning_without_labels_nor_where_every_relation_has_a_group(kind, occurrences):
    assert warnings(kind, occurrences) == []
