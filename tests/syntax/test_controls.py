"""Controls, trees that replace the parser's: what stays the same, and how the rest is
distributed."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from notation import arcs_in
from small import MONKEY, is_tree

from synmt.syntax.controls import Control, certain_arcs
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree

KINDS = ["none", "random", "left", "right", "shuffled"]
DRAWN = [Control("random"), Control("shuffled"), Control(rewire=0.5), Control("left", rewire=0.5)]

# The: monkey or eats; monkey: eats; eats: root or below banana; a: banana; banana: eats, obj or obl


def parse_of(words, seed=0):
    """Draw a tree whose relations tell its words apart."""
    parents = random_tree(words, np.random.default_rng(seed))
    relations = [
        "root" if word == parent else f"r{word % 7}" for word, parent in enumerate(parents)
    ]
    tags = [f"T{word}" for word in range(words)]
    return Parse(
        [f"w{word}" for word in range(words)], np.zeros((words, 2), int), parents, relations, tags
    )


def key(number):
    return np.array([number, 7, 9], dtype=np.int32).tobytes()


def root_of(parse):
    return [word for word, parent in enumerate(parse.parents) if word == parent]


def below(parents, word):
    """Collect the word and its descendants."""
    found = {word}
    for _ in parents:
        found |= {child for child, parent in enumerate(parents) if parent in found}
    return found


MONKEY_ARCS = arcs_in(
    "0>1 det 0.75, 0>2 det 0.25, 1>2 nsubj 1, 2>2 root 0.875, 2>4 obl 0.125, 3>4 det 1, "
    "4>2 obl 0.5, 4>2 obj 0.5"
)
STAR = replace(parse_of(21), parents=np.zeros(21, dtype=int), relations=["root"] + ["dep"] * 20)


def rows_of(arcs):
    """List the arcs of each word: parent, relation, probability."""
    rows = {}
    columns = (arcs.words, arcs.parents, arcs.relations, arcs.probabilities)
    for word, parent, relation, probability in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        rows.setdefault(word, []).append((parent, arcs.names[relation], probability))
    return rows


def test_an_idle_control_returns_the_same_object():
    assert Control().idle
    assert Control().apply(MONKEY, b"key") is MONKEY
    assert not Control("left").idle
    assert not Control(rewire=0.1).idle


@pytest.mark.parametrize("rewire", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_every_control_gives_a_tree_with_the_same_words_and_relations(kind, rewire):
    for words, seed in product(range(31), range(3)):
        parse = parse_of(words, seed=words)
        tree = Control(kind, rewire=rewire, seed=seed).apply(parse, key(words))
        assert is_tree(tree.parents)
        assert (len(tree.parents), tree.parents.dtype) == (words, np.int64)
        assert (tree.words, tree.tags, tree.arcs) == (parse.words, parse.tags, None)
        assert tree.spans is parse.spans
        assert Counter(tree.relations) == Counter(parse.relations)
        assert [tree.relations[root] for root in root_of(tree)] == ["root"] * min(words, 1)
        moved = {*root_of(parse), *root_of(tree)} if kind != "shuffled" else range(words)
        for word in set(range(words)) - set(moved):
            assert tree.relations[word] == parse.relations[word]
        # the parser's tree is as it was
        assert parse == parse_of(words, seed=words)


@pytest.mark.parametrize("control", DRAWN, ids=str)
def test_the_key_and_the_seed_decide_the_tree(control):
    parse = parse_of(12)
    trees = [control.apply(parse, key(number)) for number in range(40)]
    assert trees == [control.apply(parse, key(number)) for number in range(40)]
    assert len({tuple(tree.parents) for tree in trees}) == 40
    other = replace(control, seed=2)
    assert not any(tree == other.apply(parse, key(number)) for number, tree in enumerate(trees))
    # nor do the two run together
    assert replace(control, seed=12).apply(parse, b"3") != control.apply(parse, b"23")


def test_trees_are_the_same_in_another_process_and_another_year():
    # a model that was trained on random trees must meet them again when it translates
    assert Control("random", seed=3).apply(MONKEY, b"key").parents.tolist() == [1, 1, 0, 1, 0]
    assert Control("shuffled", seed=3).apply(MONKEY, b"key").parents.tolist() == [0, 0, 3, 0, 1]
    assert Control(rewire=0.5, seed=3).apply(MONKEY, b"key").parents.tolist() == [4, 3, 2, 4, 2]


def test_a_shuffled_tree_is_the_same_tree_on_other_words():
    relations = [f"r{word}" for word in range(12)]
    parse = replace(parse_of(12), relations=relations)
    parse.relations[root_of(parse)[0]] = "root"
    for number in range(20):
        tree = Control("shuffled").apply(parse, key(number))
        # every relation occurs once, so that it names its node
        place = [tree.relations.index(name) for name in parse.relations]
        assert [tree.parents[place[word]] for word in range(12)] == [
            place[parent] for parent in parse.parents
        ]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_rewired_share_is_the_probability(share):
    # below the root of a star, a chosen word can always move: 200 trees of 20 such words
    changed = sum(
        (Control(rewire=share).apply(STAR, key(number)).parents > 0).sum() for number in range(200)
    )
    assert abs(changed - 4000 * share) < 4 * (4000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("words", [1, 2, 3, 5, 12, 30])
def test_rewiring_all_changes_every_arc_that_can_change(words):
    for number in range(10):
        parse = parse_of(words, seed=number)
        tree = Control(rewire=1.0).apply(parse, key(number))
        assert tree.relations == parse.relations
        assert root_of(tree) == root_of(parse)
        parents = parse.parents.tolist()
        for word in range(words):
            if parents[word] == word:
                continue
            free = set(range(words)) - below(parents, word) - {parents[word]}
            assert tree.parents[word] in (free or {parents[word]})
            parents[word] = int(tree.parents[word])


def test_a_new_parent_is_drawn_evenly_among_the_words_that_are_free():
    # The is the first word to move: neither itself nor monkey, its parent; it has no children
    found = Counter(
        int(Control(rewire=1.0).apply(MONKEY, key(number)).parents[0]) for number in range(900)
    )
    assert set(found) == {2, 3, 4}
    # 300 each, deviation √(900 · 1/3 · 2/3) = 14
    assert all(abs(count - 300) < 4 * 14 for count in found.values())


def test_certain_arcs_of_the_monkey():
    arcs = certain_arcs(MONKEY)
    expected = arcs_in("0>1 det 1, 1>2 nsubj 1, 2>2 root 1, 3>4 det 1, 4>2 obj 1")
    assert (arcs, arcs.names) == (expected, expected.names)
    assert arcs.probabilities.dtype == np.float32


def test_certain_arcs_of_no_words_are_none():
    arcs = certain_arcs(parse_of(0))
    assert (arcs.names, rows_of(arcs), arcs.relations.dtype) == ((), {}, np.int64)


@pytest.mark.parametrize("kind", ["random", "left", "right", "shuffled"])
def test_another_tree_is_certain_of_its_arcs(kind):
    # the arcs do not know every relation of the tree: obj is a new name
    arcs = replace(MONKEY_ARCS, names=("det", "nsubj", "root", "obl", "obl:tmod"))
    tree = Control(kind).apply(replace(MONKEY, arcs=arcs), key(3))
    assert rows_of(tree.arcs) == rows_of(certain_arcs(tree))
    assert tree.arcs.names[:5] == arcs.names


def test_only_rewired_words_are_certain_of_their_arcs():
    parse, some = replace(MONKEY, arcs=MONKEY_ARCS), Counter()
    for number in range(30):
        tree = Control(rewire=0.5).apply(parse, key(number))
        rows = rows_of(tree.arcs)
        assert tree.arcs.words.tolist() == sorted(tree.arcs.words.tolist())
        for word, parent in enumerate(tree.parents.tolist()):
            moved = bool(parent != MONKEY.parents[word])
            certain = [(parent, MONKEY.relations[word], 1.0)]
            assert rows[word] == (certain if moved else rows_of(MONKEY_ARCS)[word])
            some[word, moved] += 1
    # all have been seen both ways but eats, which is the root
    assert set(some) == {*product(range(5), (False, True))} - {(2, True)}
