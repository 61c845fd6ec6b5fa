"""The depth of trees, and the distances between words and their parents."""

import numpy as np
import pytest
from full_stop import with_full_stop

from synmt.analysis.groups.trees import depth, distances, longest_distance, mean_distance
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree

MONKEY = with_full_stop()


def test_distances_leave_out_the_root_and_punctuation():
    # The-monkey 1, monkey-eats 1, a-banana 1, banana-eats 2
    assert distances(MONKEY).tolist() == [1, 1, 1, 2]
    assert (longest_distance(MONKEY), mean_distance(MONKEY), depth(MONKEY)) == (2, 5 / 4, 2)


@pytest.mark.parametrize("seed", range(30))
def test_measures_are_those_of_walks_from_each_word_to_the_root(seed):
    random = np.random.default_rng(seed)
    size = seed // 2
    parents = random_tree(size, random) if size else np.zeros(0, int)
    relations = random.choice(["punct", "dep"], size, p=[0.2, 0.8]).tolist()
    parse = Parse(["w"] * size, np.zeros((size, 2), int), parents, relations)
    counts = [relation != "punct" for relation in relations]
    depths, lengths = [0], []
    for word in range(size):
        if not counts[word]:
            continue
        above, steps, parent = word, 0, parents[word]
        while parents[above] != above:
            above, steps = parents[above], steps + 1
        depths.append(steps)
        if parent != word and counts[parent]:
            low, high = sorted((word, parent))
            lengths.append(sum(counts[low + 1 : high + 1]))
    assert depth(parse) == max(depths)
    assert distances(parse).tolist() == lengths
    assert longest_distance(parse) == max(lengths, default=0)
    assert mean_distance(parse) == (pytest.approx(np.mean(lengths)) if lengths else 0)
