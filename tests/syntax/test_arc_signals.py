"""Tables of arcs by hand, and against loops written from their definition."""

from dataclasses import replace

import numpy as np
import pytest
from notation import arcs_in, matrix
from small import MONKEY, MONKEY_WORD_OF, random_pieces, random_tree

from synmt.errors import SynmtError, UsageError
from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.parse import Arcs, Parse
from synmt.syntax.relations import STANFORD_GROUPS, UNIVERSAL_GROUPS

KINDS = [arcs, tree_arcs, uniform_arcs]
NAMES = ("root", "nsubj", "nsubj:pass", "obj", "det", "odd", "case")
# the passive has its own group; odd and case are in none
GROUPS = (("nsubj", "det"), ("nsubj:pass", "obj"), ("root",))
EVERYTHING = (("nsubj", "odd"), ("root", "obj"), ("det", "case"))

# The: 0.75 det of monkey, 0.25 det of eats; monkey: nsubj of eats; eats: 0.9 root, 0.1 nsubj of
# banana, and so on
SURE_MONKEY = replace(
    MONKEY,
    arcs=arcs_in(
        "0>1 det 0.75, 0>2 det 0.25, 1>2 nsubj 1, 2>2 root 0.9, 2>4 nsubj 0.1, 3>4 det 1, "
        "4>2 obj 0.5, 4>2 odd 0.5",
        NAMES,
    ),
)
MONKEY_AND_EOS = np.append(MONKEY_WORD_OF, -1)


def holder(name, groups):
    """The group that names a relation, or else its relation without the subtype."""
    for wanted in (name, name.split(":")[0]):
        for number, names in enumerate(groups):
            if wanted in names:
                return number
    return None


def slow_entry(kind, parse, groups, group, word, parent):
    """P(parent, a relation of the group | word)."""
    if kind is uniform_arcs:
        return 1 / (len(parse) * (len(groups) if groups else 1))
    if kind is tree_arcs:
        every = [
            (word, parse.parents[word], parse.relations[word], 1.0) for word in range(len(parse))
        ]
    else:
        found = parse.arcs
        relations = [found.names[number] for number in found.relations]
        every = zip(found.words, found.parents, relations, found.probabilities, strict=True)
    return sum(
        probability
        for child, above, relation, probability in every
        if (child, above) == (word, parent)
        and (groups is None or holder(relation, groups) == group)
    )


def slow_table(kind, parse, word_of, groups, split):
    """Loop over groups and pairs of pieces."""
    counts = [list(word_of).count(word) for word in range(len(parse))]
    result = np.zeros((len(groups) if groups else 1, len(word_of), len(word_of)))
    for group, i, j in np.ndindex(result.shape):
        word, parent = word_of[i], word_of[j]
        if word < 0:
            result[group, i, j] = 1
        elif parent >= 0:
            entry = slow_entry(kind, parse, groups, group, word, parent)
            result[group, i, j] = entry / counts[parent] if split else entry
    return result


def random_parse(words, random):
    """Draw a tree with up to five arcs for each word, some of them twice, that sum to less than
    1."""
    tree = random_tree(words, random)
    owners = np.repeat(np.arange(words), random.integers(1, 6, words))
    mass = random.random(len(owners))
    mass /= 1.01 * np.bincount(owners, mass)[owners]
    sparse = Arcs(
        words=owners,
        parents=random.integers(0, words, len(owners)),
        relations=random.integers(0, len(NAMES), len(owners)),
        probabilities=mass.astype(np.float32),
        names=NAMES,
    )
    return replace(tree, arcs=sparse)


# by hand


def test_arcs_of_the_monkey_by_group():
    # ▁The ▁mon key ▁eats ▁a ▁ban ana </s>
    first, second, third = arcs(GROUPS).compute(SURE_MONKEY, MONKEY_AND_EOS)
    # subjects and determiners
    expected = matrix("""
        0 0.75 0.75 0.25 0 0 0 0
        0 0 0 1 0 0 0 0
        0 0 0 1 0 0 0 0
        0 0 0 0 0 0.1 0.1 0
        0 0 0 0 0 1 1 0
        0 0 0 0 0 0 0 0
        0 0 0 0 0 0 0 0
        1 1 1 1 1 1 1 1
    """)
    np.testing.assert_allclose(first, expected)
    # banana as the object of eats; its other half is odd, and in no group
    expected[:7] = 0
    expected[[5, 6], 3] = 0.5
    np.testing.assert_allclose(second, expected)
    # eats as the root
    expected[:7] = 0
    expected[3, 3] = 0.9
    np.testing.assert_allclose(third, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [GROUPS, None])
def test_a_sentence_without_words_is_neutral(kind, groups):
    none = np.zeros(0, int)
    nothing = Arcs(none, none, none, np.zeros(0, np.float32), ())
    empty = Parse([], np.zeros((0, 2), int), none, [], arcs=nothing)
    for split in (False, True):
        values = kind(groups, split=split).compute(empty, np.array([-1, -1]))
        assert values.tolist() == np.ones((len(groups or "1"), 2, 2)).tolist()


# laws


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("groups", [GROUPS, EVERYTHING, None], ids=["3", "all", "none"])
@pytest.mark.parametrize("split", [False, True])
def test_a_table_equals_a_loop_on_random_arcs(kind, groups, split):
    for seed in range(3):
        random = np.random.default_rng(seed)
        words = int(random.integers(1, 6))
        parse, word_of = random_parse(words, random), random_pieces(words, random)
        values = kind(groups, split=split).compute(parse, word_of)
        assert values.dtype == np.float32
        np.testing.assert_allclose(
            values, slow_table(kind, parse, word_of, groups, split), rtol=1e-5, atol=1e-7
        )


def test_small_integers_do_not_overflow():
    # 60 words and 16 groups: the place of an entry is beyond 16 bits, and words may come in 8
    random = np.random.default_rng(0)
    parse, word_of = random_parse(60, random), random_pieces(60, random)
    found = parse.arcs
    columns = (part.astype(np.int8) for part in (found.words, found.parents, found.relations))
    narrow = replace(parse, arcs=Arcs(*columns, found.probabilities, NAMES))
    values = arcs(UNIVERSAL_GROUPS).compute(narrow, word_of.astype(np.int8))
    np.testing.assert_array_equal(values, arcs(UNIVERSAL_GROUPS).compute(parse, word_of))


# names


def test_signals_differ_in_name_where_they_differ_in_values():
    made = [
        kind(groups, split=split)
        for kind in KINDS
        for groups in (GROUPS, UNIVERSAL_GROUPS, STANFORD_GROUPS, None)
        for split in (False, True)
    ]
    assert len({signal.name for signal in made}) == len(made)


@pytest.mark.parametrize(
    ("kind", "needs"), [(arcs, "arcs"), (tree_arcs, "relations"), (uniform_arcs, "words")]
)
def test_equal_arguments_give_the_same_signal(kind, needs):
    signal = kind(GROUPS)
    assert signal == kind(tuple(map(tuple, GROUPS)), split=False)
    assert (signal.needs, signal.pad) == (needs, 0)


# mistakes


def test_a_parse_without_arcs_is_told_where_they_come_from():
    with pytest.raises(
        SynmtError, match=r"a tree has no probabilities of arcs.*`synmt parse --arcs`"
    ):
        arcs(GROUPS).compute(MONKEY, MONKEY_AND_EOS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_relation_in_two_groups_is_refused_at_once(kind):
    with pytest.raises(UsageError, match="relation 'obj' is in groups 1 and 2"):
        kind((("obj",), ("nsubj", "obj")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_without_pieces_is_our_own_mistake(kind):
    with pytest.raises(AssertionError, match="a word without pieces"):
        kind(GROUPS).compute(SURE_MONKEY, np.array([0, 1, 2, 3, -1]))


# gold trees
