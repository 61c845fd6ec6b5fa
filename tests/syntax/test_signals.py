"""Signals by hand, against loops written from their definitions, and on the gold trees of
treebanks."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from notation import matrix
from small import MONKEY, MONKEY_WORD_OF, random_pieces, random_tree, slow_distances

from synmt.errors import UsageError
from synmt.syntax.arc_signals import arcs, tree_arcs, uniform_arcs
from synmt.syntax.controls import certain_arcs
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import (
    DISTANCE,
    PARENT_CHAIN,
    PARENT_FIRST,
    PARENT_MIDDLE,
    WORD,
    distance,
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
NO_WORDS = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])


def pieces_of(word, word_of):
    return [position for position, owner in enumerate(word_of) if owner == word]


def parents_pieces(parse, word_of):
    """Loop over pieces: the pieces of the parent; specials themselves."""
    return [
        [position] if word < 0 else pieces_of(parse.parents[word], word_of)
        for position, word in enumerate(word_of)
    ]


def slow_parent_middle(parse, word_of):
    """Take the mean of the first and the last position of the parent's pieces."""
    return [(pieces[0] + pieces[-1]) / 2 for pieces in parents_pieces(parse, word_of)]


def slow_parent_first(parse, word_of):
    return [pieces[0] for pieces in parents_pieces(parse, word_of)]


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


def slow_distance(parse, word_of):
    """Count the steps from word to word; a special is 1 farther from all than the farthest words, 0
    from itself."""
    steps = slow_distances(parse.parents)
    far = 1 + max((max(row) for row in steps), default=0)
    return [
        [
            0 if i == j else far if min(one, other) < 0 else steps[one][other]
            for j, other in enumerate(word_of)
        ]
        for i, one in enumerate(word_of)
    ]


def slow_relation(parse, word_of, names):
    """0, 1 + the place of the name, of the name without subtype, or of one more name."""
    result = []
    for word in word_of:
        name = parse.relations[word] if word >= 0 else None
        tried = [name, name.split(":")[0]] if name is not None else []
        places = [names.index(one) for one in tried if one in names]
        result.append(0 if name is None else 1 + (places[0] if places else len(names)))
    return result


SLOW = {
    "parent_middle": slow_parent_middle,
    "parent_first": slow_parent_first,
    "parent_chain": slow_parent_chain,
    "word": lambda parse, word_of: word_of.tolist(),
    "distance": slow_distance,
    relation_signal(NAMES).name: lambda parse, word_of: slow_relation(parse, word_of, NAMES),
}


# by hand


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        # The -> monkey (1 and 2), monkey -> eats (3), a -> banana (5 and 6), banana -> eats
        (PARENT_MIDDLE, "1.5 3 3 3 5.5 3 3 7"),
        (PARENT_FIRST, "1 3 3 3 5 3 3 7"),
        # mon -> key -> eats, ban -> ana -> eats
        (PARENT_CHAIN, "1 2 3 3 5 6 3 7"),
        (WORD, "0 1 1 2 3 4 4 -1"),
        # nsubj 1, det 2, nsubj:pass 3, root 4; obj is another one: 5
        (relation_signal(NAMES), "2 1 1 4 2 5 5 0"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_signals_of_the_monkey(signal, expected):
    assert [signal.compute(MONKEY, MONKEY_AND_EOS).tolist()] == matrix(expected).tolist()


def test_distances_of_the_monkey():
    # of words: 0 1 2 4 3, 1 0 1 3 2, 2 1 0 2 1, 4 3 2 0 1, 3 2 1 1 0; the largest is 4, so EOS is 5
    # away
    expected = matrix("""
        0 1 1 2 4 3 3 5
        1 0 0 1 3 2 2 5
        1 0 0 1 3 2 2 5
        2 1 1 0 2 1 1 5
        4 3 3 2 0 1 1 5
        3 2 2 1 1 0 0 5
        3 2 2 1 1 0 0 5
        5 5 5 5 5 5 5 0
    """)
    assert distance(MONKEY, MONKEY_AND_EOS).tolist() == expected.tolist()


def test_a_word_without_pieces_has_no_first_and_no_middle():
    np.testing.assert_array_equal(word_middles(np.array([0, 2, 2]), 3), [0, np.nan, 1.5])
    assert word_firsts(np.array([0, 2, 2]), 3).tolist() == [0, -1, 1]


def test_a_sentence_without_words_has_specials_only():
    for signal in ALL:
        word_of = np.array([-1, -1])
        assert signal.compute(NO_WORDS, word_of).tolist() == SLOW[signal.name](NO_WORDS, word_of)


@pytest.mark.parametrize("compute", [parent_middle, parent_first, parent_chain])
def test_a_parent_without_pieces_is_our_own_mistake(compute):
    with pytest.raises(AssertionError, match="a parent without pieces"):
        compute(MONKEY, np.array([0, 0, 3, -1]))


# relations


def test_a_relation_is_found_by_its_name_before_its_name_without_the_subtype():
    relations = ["nsubj", "nsubj:outer", "nsubj:pass", "det:poss", "obj", "SB", "pass"]
    parse = Parse(relations, np.zeros((7, 2), int), np.zeros(7, int), relations)
    numbers = relation_signal(NAMES).compute(parse, np.arange(-1, 7))
    assert numbers.tolist() == [0, 1, 1, 3, 2, 5, 5, 5]


def test_each_list_of_relations_has_its_own_signal():
    assert relation_signal() == relation_signal(KNOWN)
    lists = (KNOWN, NAMES, ("a", "b"), ("b", "a"), ("a b",), ())
    first, *others = (relation_signal(names).name for names in lists)
    assert first == "relation"
    assert len({*others}) == len(others)
    assert all(name.startswith("relation.") for name in others)


@pytest.mark.journey
def test_the_name_of_a_list_is_the_same_in_every_process():
    # a saved model and its batches meet again under this name
    code = (
        "from synmt.syntax.signals import relation_signal; print(relation_signal(('a', 'b')).name)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == relation_signal(("a", "b")).name


def test_a_relation_listed_twice_is_refused():
    with pytest.raises(UsageError, match="relation 'obj' is listed twice"):
        relation_signal(("obj", "det", "obj"))


# laws


@pytest.mark.parametrize("signal", ALL, ids=lambda signal: signal.name)
def test_a_signal_equals_a_loop_on_random_trees(signal):
    for seed in range(12):
        random = np.random.default_rng(seed)
        words = int(random.integers(1, 20))
        parse, word_of = random_tree(words, random), random_pieces(words, random)
        assert signal.compute(parse, word_of).tolist() == SLOW[signal.name](parse, word_of), seed


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
