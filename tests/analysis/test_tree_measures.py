"""What is measured of trees: depth, distances, dependents, projectivity, entropy."""

from dataclasses import replace

import numpy as np
import pytest
from refusing import assert_fails
from scored import random_parses, walk
from small import random_tree
from walks import way_up

from synmt.analysis.groups.trees import (
    arity,
    crossings,
    depth,
    distances,
    longest_distance,
    mean_distance,
    parent_entropy,
)


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_those_of_walks_from_each_word_to_the_root(seed):
    found = {False: 0, True: 0}
    for parse in random_parses(seed):
        counts = [relation != "punct" for relation in parse.relations]
        words = [word for word in range(len(parse)) if counts[word]]
        lengths = [
            walk(parse, word)[1]
            for word in words
            if parse.parents[word] != word and counts[parse.parents[word]]
        ]
        assert depth(parse) == max((walk(parse, word)[0] for word in words), default=0)
        assert distances(parse).tolist() == lengths
        assert longest_distance(parse) == max(lengths, default=0)
        assert mean_distance(parse) == (pytest.approx(np.mean(lengths)) if lengths else 0)
        parents = parse.parents.tolist()
        children = [word for word in words if parents[word] != word]
        most = [sum(parents[child] == word for child in children) for word in range(len(parse))]
        assert arity(parse) == max(most, default=0)
        over = [
            any(
                parents[child] not in way_up(parents, word)
                for word in between(parents, child, counts)
            )
            for child in children
        ]
        assert crossings(parse) == sum(over)
        found[any(over)] += 1
    assert min(found.values()) > 3


def between(parents, child, counts):
    """List the words between a word and its parent that are no punctuation."""
    low, high = sorted((child, parents[child]))
    return [word for word in range(low + 1, high) if counts[word]]


def test_the_entropy_is_that_of_the_distribution_over_parents():
    parse = random_tree(9, np.random.default_rng(3))
    bits = []
    for word in range(9):
        of_parents = dict.fromkeys(range(9), 0.0)
        arcs = parse.arcs
        for child, parent, value in zip(arcs.words, arcs.parents, arcs.probabilities, strict=True):
            of_parents[int(parent)] += float(value) * (child == word)
        bits.append(-sum(value * np.log2(value) for value in of_parents.values() if value))
    assert parent_entropy(parse) == pytest.approx(np.mean(bits), rel=1e-5)
    assert_fails(
        "no probabilities of arcs, and --by-entropy reads them",
        parent_entropy,
        replace(parse, arcs=None),
    )
