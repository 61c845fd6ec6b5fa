"""Signals by hand, and against loops written from their definitions."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from notation import tree
from refusing import assert_refused
from small import MONKEY, MONKEY_WORD_OF, random_pieces, random_tree

from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.controls import certain_arcs
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import (
    DISTANCE,
    PARENT_CHAIN,
    PARENT_FIRST,
    PARENT_MIDDLE,
    WORD,
    parent_chain,
    parent_first,
    parent_middle,
    relation_signal,
    word_firsts,
    word_middles,
)

NAMES = ("nsubj", "det", "nsubj:pass", "root")
ALL = [PARENT_MIDDLE, PARENT_FIRST, PARENT_CHAIN, WORD, DISTANCE, relation_signal(NAMES)]
# ▁The ▁mon key ▁eats ▁a ▁ban ana </s>
MONKEY_AND_EOS = np.append(MONKEY_WORD_OF, -1)
NO_WORDS = tree([], [])


def pieces_of(word, word_of):
    return [position for position, owner in enumerate(word_of) if owner == word]


def slow_parent_first(parse, word_of):
    """The first piece of the parent; specials themselves."""
    return [
        position if word < 0 else pieces_of(parse.parents[word], word_of)[0]
        for position, word in enumerate(word_of)
    ]


def slow_parent_chain(parse, word_of):
    """The next piece of the word; of the last one, the parent's first piece, or itself in the
    root."""
    result = []
    for position, word in enumerate(word_of):
        later = [place for place in pieces_of(word, word_of) if place > position]
        if word < 0 or (not later and parse.parents[word] == word):
            result.append(position)
        else:
            result.append(later[0] if later else pieces_of(parse.parents[word], word_of)[0])
    return result


# the others are compared with loops by the tests of the variants that read them
LOOPS = [
    (PARENT_FIRST, slow_parent_first),
    (PARENT_CHAIN, slow_parent_chain),
    (WORD, lambda parse, word_of: word_of.tolist()),
]


def test_a_word_without_pieces_has_no_first_and_no_middle():
    np.testing.assert_array_equal(word_middles(np.array([0, 2, 2]), 3), [0, np.nan, 1.5])
    assert word_firsts(np.array([0, 2, 2]), 3).tolist() == [0, -1, 1]


def test_a_sentence_without_words_has_specials_only():
    word_of = np.array([-1, -1])
    for signal, loop in LOOPS:
        assert signal.compute(NO_WORDS, word_of).tolist() == loop(NO_WORDS, word_of)
    assert parent_middle(NO_WORDS, word_of).tolist() == [0, 1]
    assert DISTANCE.compute(NO_WORDS, word_of).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("compute", [parent_middle, parent_first, parent_chain])
def test_a_parent_without_pieces_is_our_own_mistake(compute):
    with pytest.raises(AssertionError, match="a parent without pieces"):
        compute(MONKEY, np.array([0, 0, 3, -1]))


# relations


def test_a_relation_is_found_by_its_name_before_its_name_without_the_subtype():
    relations = ["nsubj", "nsubj:outer", "nsubj:pass", "det:poss", "obj", "SB", "pass"]
    numbers = relation_signal(NAMES).compute(tree([0] * 7, relations), np.arange(-1, 7))
    assert numbers.tolist() == [0, 1, 1, 3, 2, 5, 5, 5]


def test_each_list_of_relations_has_its_own_signal():
    assert relation_signal() == relation_signal(KNOWN)
    lists = (KNOWN, NAMES, ("a", "b"), ("b", "a"), ("a b",), ())
    first, *others = (relation_signal(names).name for names in lists)
    assert first == "relation"
    assert len({*others}) == len(others)
    assert all(name.startswith("relation.") for name in others)


def test_the_name_of_a_list_is_the_same_in_every_process():
    # a saved model and its batches meet again under this name
    assert relation_signal(("a", "b")).name == "relation.0eee9b877a38"


def test_a_relation_listed_twice_is_refused():
    assert_refused("relation 'obj' is listed twice", relation_signal, ("obj", "det", "obj"))


# laws


@pytest.mark.parametrize(("signal", "loop"), LOOPS, ids=lambda value: getattr(value, "name", ""))
def test_a_signal_equals_a_loop_on_random_trees(signal, loop):
    for seed in range(12):
        random = np.random.default_rng(seed)
        words = int(random.integers(1, 20))
        parse, word_of = random_tree(words, random), random_pieces(words, random)
        assert signal.compute(parse, word_of).tolist() == loop(parse, word_of), seed


GROUPS = (("nsubj", "det"), ("root",))
OF_ARCS = [kind(GROUPS, split=True) for kind in (arcs, tree_arcs, uniform_arcs)]


@pytest.mark.parametrize("signal", [*ALL, *OF_ARCS], ids=lambda signal: signal.name)
def test_a_signal_leaves_its_input_alone_and_survives_pickling(signal):
    word_of, sure = MONKEY_AND_EOS.copy(), replace(MONKEY, arcs=certain_arcs(MONKEY))
    first = signal.compute(sure, word_of)
    expected = first.copy()
    # what a caller writes into it is not seen by the next one
    first[:] = 9
    copy = pickle.loads(pickle.dumps(signal))
    np.testing.assert_array_equal(copy.compute(sure, word_of), expected)
    np.testing.assert_array_equal(word_of, MONKEY_AND_EOS)
    assert MONKEY.parents.tolist() == [1, 2, 2, 4, 2]
