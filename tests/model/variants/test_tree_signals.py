"""Signals that variants read for pairs of words, against walks through trees."""

from functools import partial

import numpy as np
import pytest
import walks
from attending import NO_WORDS
from small import MONKEY, all_trees, random_pieces, random_tree

from synmt.syntax.kinship import (
    NO_STEPS,
    SYMBOLS,
    arcs_of_pairs,
    edge_kinds,
    kinship,
    label_paths,
    signed_steps,
)
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN

CHAIN = Parse([""] * 20, np.zeros((20, 2), int), np.arange(20).clip(1) - 1, ["det"] * 20)


def steps(parse, i, j):
    return NO_STEPS if min(i, j) < 0 else walks.signed_steps(parse.parents, i, j)


def path(longest, parse, i, j):
    return walks.number_of_path(walks.path(parse, j, i, longest))


SIGNALS = {
    "kinship": (kinship, lambda parse, i, j: walks.kind_of_kin(parse.parents, i, j)),
    "steps": (signed_steps, steps),
    "arcs": (partial(arcs_of_pairs, names=KNOWN), partial(walks.arc, labelled=True)),
    "edges": (partial(arcs_of_pairs, names=None), partial(walks.arc, labelled=False)),
    "short paths": (partial(label_paths, longest=2), partial(path, 2)),
    "paths": (partial(label_paths, longest=8), partial(path, 8)),
}


def parses():
    """Yield every tree of few words, a large one and a long one."""
    relations = ["nsubj", "obj", "odd", "nsubj:pass"]
    yield NO_WORDS.parse
    for words in range(1, 5):
        for parents in all_trees(words):
            yield Parse([""] * words, np.zeros((words, 2), int), parents, relations[:words])
    yield random_tree(40, np.random.default_rng(4))
    yield CHAIN


@pytest.mark.parametrize(("compute", "walk"), SIGNALS.values(), ids=SIGNALS)
def test_a_signal_of_pairs_equals_walks_through_trees(compute, walk):
    random = np.random.default_rng(1)
    for parse in parses():
        pieces = random_pieces(len(parse), random) if len(parse) else np.zeros(0, int)
        word_of = np.append(pieces, -1)
        known = {}
        for words in np.ndindex(len(parse) + 1, len(parse) + 1):
            i, j = (word - 1 for word in words)
            known[i, j] = walk(parse, i, j)
        expected = [[known[i, j] for j in word_of.tolist()] for i in word_of.tolist()]
        assert compute(parse, word_of).tolist() == expected


def test_the_numbers_of_arcs_and_paths_end_where_they_should():
    # none, and 71 names and one for all others in two directions
    assert (edge_kinds(None), edge_kinds(KNOWN)) == (3, 145)
    assert SYMBOLS == walks.path(MONKEY, 0, -1)[0] + 1 <= 256
