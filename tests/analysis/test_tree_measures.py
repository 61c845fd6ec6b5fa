"""The depth of trees, and the distances between words and their parents."""

import numpy as np
import pytest
from scored import random_parses, walk

from synmt.analysis.groups.trees import depth, distances, longest_distance, mean_distance


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_those_of_walks_from_each_word_to_the_root(seed):
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
