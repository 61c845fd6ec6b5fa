"""Trees against gold trees: attachment accuracy, branching baselines, and the grammar of parts of
speech."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from each import of_seeds
from full_stop import with_full_stop
from small import random_tree

from synmt.analysis.trees.attachment import (
    branching,
    compare_trees,
    count_rules,
    share_of_rule,
)
from synmt.syntax.trees import not_punctuation

MONKEY = with_full_stop()
TAGS = ["NOUN", "VERB", "PUNCT"]


@pytest.mark.parametrize(
    ("relation", "tag"), [("punct", "X"), ("punct:list", "_"), ("dep", "PUNCT")]
)
def test_punctuation_is_recognised_by_relation_or_tag(relation, tag):
    parse = with_full_stop(relation=relation, tag=tag)
    assert not_punctuation(parse).tolist() == [True] * 5 + [False]


def drawn(random):
    """Sample gold trees with tags, and other trees of the same words."""
    gold = [MONKEY]
    for words in random.integers(1, 9, 6):
        tags = random.choice(TAGS, words).tolist()
        gold.append(replace(random_tree(int(words), random), tags=tags))
    return [random_tree(len(parse), random).parents for parse in gold], gold


def counted(trees, gold):
    """Yield the relation of each word, and whether it is attached right, as in the equations."""
    for parents, parse in zip(trees, gold, strict=True):
        columns = zip(parse.parents, parse.relations, parse.tags, strict=True)
        for word, (parent, relation, tag) in enumerate(columns):
            if relation != "punct" and tag != "PUNCT":
                directed = parents[word] == parent
                reverse = word != parent and parents[parent] == word
                yield relation, directed, directed or reverse


@of_seeds(15)
def test_shares_equal_a_count_word_by_word(random):
    trees, gold = drawn(random)
    found, words = compare_trees(trees, gold), list(counted(trees, gold))
    assert found.words == len(words)
    assert found.da.low <= found.da.value <= found.da.high
    both = [row[1:] for row in words]
    assert (found.da.value, found.ua.value) == pytest.approx(np.mean(both, 0))
    expected = {}
    for name, count in sorted(Counter(row[0] for row in words).items()):
        shares = np.mean([row[1:] for row in words if row[0] == name], 0)
        expected[name] = (count, *map(pytest.approx, shares))
    assert found.relations == expected
    counts = [count for count, *_ in found.relations.values()]
    assert counts == sorted(counts, reverse=True)


def test_words_without_a_parent_are_wrong():
    found = compare_trees([np.full(6, -1)], [MONKEY])
    assert (found.words, found.da.value, found.ua.value) == (5, 0, 0)


def test_chains_skip_punctuation():
    parse = replace(MONKEY, relations=["x", "punct", "root", "y", "punct", "punct"])
    assert branching(parse, "left").tolist() == [2, -1, 3, 3, -1, -1]
    assert branching(parse, "right").tolist() == [0, -1, 0, 2, -1, -1]


@of_seeds(10)
def test_rules_equal_a_count_word_by_word(random):
    trees, gold = drawn(random)
    trees[0] = np.where([True, *[False] * 5], -1, MONKEY.parents)
    found, seen = count_rules(trees, gold), Counter()
    for parents, parse in zip(trees, gold, strict=True):
        for word, tag in enumerate(parse.tags):
            punctuation = tag == "PUNCT" or parse.relations[word] == "punct"
            if parents[word] not in (word, -1) and not punctuation:
                seen[parse.tags[parents[word]], tag] += 1
    assert found == seen
    for rule in seen:
        total = sum(count for (parent, _), count in seen.items() if parent == rule[0])
        assert share_of_rule(rule, found) == seen[rule] / total
    assert share_of_rule(("SYM", "NOUN"), found) == 0
    assert not count_rules(trees[:1], [replace(MONKEY, tags=[])])
