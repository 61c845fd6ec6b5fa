"""Signals of arcs: their names, what they refuse, and large tables; the tests of dependency
distributions compare them with loops."""

from dataclasses import replace

import numpy as np
import pytest
from refusing import assert_fails, assert_refused
from small import MONKEY, MONKEY_WORD_OF, random_pieces, random_tree

from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.parse import Arcs
from synmt.syntax.relations import STANFORD_GROUPS, UNIVERSAL_GROUPS

KINDS = [arcs, tree_arcs, uniform_arcs]
GROUPS = (("nsubj", "det"), ("nsubj:pass", "obj"), ("root",))

MONKEY_AND_EOS = np.append(MONKEY_WORD_OF, -1)


def test_small_integers_do_not_overflow():
    # 60 words and 16 groups: the place of an entry is beyond 16 bits, and words may come in 8
    random = np.random.default_rng(0)
    parse, word_of = random_tree(60, random), random_pieces(60, random)
    found = parse.arcs
    columns = (part.astype(np.int8) for part in (found.words, found.parents, found.relations))
    narrow = replace(parse, arcs=Arcs(*columns, found.probabilities, found.names))
    values = arcs(UNIVERSAL_GROUPS).compute(narrow, word_of.astype(np.int8))
    assert values.dtype == np.float32
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
    assert_fails(
        r"a tree has no probabilities of arcs.*`synmt parse --arcs`",
        arcs(GROUPS).compute,
        MONKEY,
        MONKEY_AND_EOS,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_relation_in_two_groups_is_refused_at_once(kind):
    assert_refused("relation 'obj' is in groups 1 and 2", kind, (("obj",), ("nsubj", "obj")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_without_pieces_is_our_own_mistake(kind):
    with pytest.raises(AssertionError, match="a word without pieces"):
        kind(GROUPS).compute(random_tree(5, np.random.default_rng(0)), np.array([0, 1, 2, 3, -1]))
