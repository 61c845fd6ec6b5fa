"""Attachment accuracy without punctuation, its intervals, and branching baselines."""

import gzip
from itertools import compress

import numpy as np
import pytest
from small import MONKEY, random_tree

from synmt.analysis.trees.attachment import (
    branching,
    branching_baselines,
    compare_trees,
    not_punctuation,
)
from synmt.syntax.conllu import read_conllu
from synmt.syntax.parse import Parse


def with_full_stop(parse, *, relation="punct", tag="PUNCT"):
    """*The monkey eats a banana.*"""
    return Parse(
        [*parse.words, "."],
        np.vstack([parse.spans, [[24, 25]]]),
        np.append(parse.parents, 2),
        [*parse.relations, relation],
        ["X"] * len(parse) + [tag],
    )


def slowly(trees, gold):
    """Count as in the equations, word by word."""
    words = directed = undirected = 0
    for parents, parse in zip(trees, gold, strict=True):
        tags = parse.tags or ["_"] * len(parse)
        for word, (parent, relation, tag) in enumerate(
            zip(parse.parents, parse.relations, tags, strict=True)
        ):
            if relation == "punct" or tag == "PUNCT":
                continue
            words += 1
            directed += parents[word] == parent
            undirected += parents[word] == parent or (word != parent and parents[parent] == word)
    return words, directed, undirected


def test_the_monkey_is_attached_backwards_and_the_banana_to_its_article():
    # The <- monkey is correct, monkey -> eats is reversed, eats is no longer the root,
    # a <- banana is reversed, banana <- eats is missing
    found = compare_trees([np.array([1, 1, 1, 2, 3])], [MONKEY])
    assert found.directed.tolist() == [True, False, False, False, False]
    assert found.undirected.tolist() == [True, True, False, True, False]
    assert (found.words, found.da.value, found.ua.value) == (5, 0.2, 0.6)
    # the root is correct if it is the root of both trees
    found = compare_trees([np.array([2, 2, 2, 2, 2])], [MONKEY])
    assert found.directed.tolist() == [False, True, True, False, True]


@pytest.mark.parametrize(
    ("relation", "tag"), [("punct", "X"), ("punct:list", "_"), ("dep", "PUNCT")]
)
def test_punctuation_is_recognised_by_relation_or_tag(relation, tag):
    parse = with_full_stop(MONKEY, relation=relation, tag=tag)
    assert not_punctuation(parse).tolist() == [True] * 5 + [False]
    assert compare_trees([np.array([1, 2, 2, 4, 2, 0])], [parse]).da.value == 1


def test_shares_equal_a_count_word_by_word():
    for seed in range(30):
        random = np.random.default_rng(seed)
        gold = [
            with_full_stop(MONKEY),
            *(random_tree(int(words), random) for words in random.integers(1, 9, 6)),
        ]
        trees = [random_tree(len(parse), random).parents for parse in gold]
        found, (words, directed, undirected) = compare_trees(trees, gold), slowly(trees, gold)
        assert found.words == words
        assert found.da.value == pytest.approx(directed / words, abs=1e-15)
        assert found.ua.value == pytest.approx(undirected / words, abs=1e-15)
        assert found.da.low <= found.da.value <= found.da.high


def test_relations_cover_all_words():
    random = np.random.default_rng(3)
    gold = [random_tree(8, random) for _ in range(20)]
    found = compare_trees([random_tree(8, random).parents for _ in gold], gold)
    rows = found.by_relation()
    assert sum(words for words, _, _ in rows.values()) == found.words == 160
    assert sum(words * da for words, da, _ in rows.values()) == pytest.approx(found.directed.sum())
    assert sum(words * ua for words, _, ua in rows.values()) == pytest.approx(
        found.undirected.sum()
    )
    assert [words for words, _, _ in rows.values()] == sorted(
        (words for words, _, _ in rows.values()), reverse=True
    )
    assert rows["root"][0] == 20


def test_the_width_of_the_interval_follows_from_the_variance_of_sentences():
    # 400 sentences of one word each: the share of correct ones varies by sqrt(p (1 - p) / 400)
    random = np.random.default_rng(0)
    two = Parse(["a", "b"], np.zeros((2, 2), int), np.array([1, 1]), ["punct", "root"])
    right = random.random(400) < 0.3
    trees = [np.array([1, 1]) if one else np.array([0, 0]) for one in right]
    found = compare_trees(trees, [two] * 400)
    share = right.mean()
    expected = 1.96 * np.sqrt(share * (1 - share) / 400)
    assert found.da.value == share
    assert [found.da.high - share, share - found.da.low] == pytest.approx([expected] * 2, rel=0.15)
    assert found.da == compare_trees(trees, [two] * 400).da


def test_without_parents_or_words_all_shares_are_zero():
    found = compare_trees([np.full(5, -1)], [MONKEY])
    assert (found.da.value, found.ua.value) == (0, 0)
    nothing = Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])
    found = compare_trees([np.zeros(0, int)], [nothing])
    assert (found.words, found.da.value, found.by_relation()) == (0, 0, {})
    assert compare_trees([], []).words == 0


def test_chains_skip_punctuation():
    parse = Parse(
        list("a,bc."),
        np.zeros((5, 2), int),
        np.array([2, 0, 2, 2, 2]),
        ["x", "punct", "root", "y", "punct"],
    )
    assert branching(parse, "left").tolist() == [2, -1, 3, 3, -1]
    assert branching(parse, "right").tolist() == [0, -1, 0, 2, -1]


CHAINS = {"en_ewt": ((34.6, 41.6), (9.4, 42.0)), "de_gsd": ((36.1, 42.8), (6.8, 41.2))}


@pytest.mark.parametrize("name", CHAINS)
def test_baselines_on_real_trees_equal_a_count_over_the_file(data_folder, name):
    path = data_folder / "ud" / f"{name}-ud-dev.conllu.gz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    gold = [parse for _, parse in read_conllu(path)]
    assert percent(gold) == [pytest.approx(shares, abs=0.05) for shares in CHAINS[name]]
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        blocks = stream.read().removesuffix("\n\n").split("\n\n")
    # synmt merges the words of a multi-word token: only files without such tokens have the same
    # words
    plain = ["-" not in "".join(row.split("\t")[0] for row in rows_of(block)) for block in blocks]
    assert sum(plain) > 300
    expected = rows_say([block for block, one in zip(blocks, plain, strict=True) if one])
    assert np.ravel(percent(list(compress(gold, plain)))) == pytest.approx(expected, abs=1e-9)


def percent(gold):
    found = [compare_trees(trees, gold) for _, trees in branching_baselines(gold)]
    return [(100 * one.da.value, 100 * one.ua.value) for one in found]


def rows_of(block):
    return [row for row in block.split("\n") if not row.startswith("#")]


def rows_say(blocks):
    """Compute DA and UA of left branching, then of right branching, from the columns of a file."""
    totals = np.zeros(5)
    for block in blocks:
        rows = [row.split("\t") for row in rows_of(block) if "." not in row.split("\t")[0]]
        heads = {int(row[0]): int(row[6]) for row in rows}
        chain = [int(row[0]) for row in rows if row[3] != "PUNCT" and row[7] != "punct"]
        for place, word in enumerate(chain):
            # 0 is the head of the root in the file; here also the neighbour beyond either end of
            # the chain
            before, after = ([0, *chain][place], [*chain, 0][place + 1])
            beside = heads[word] in (before, after) and heads[word] != 0
            is_last, is_first = heads[word] == 0 == after, heads[word] == 0 == before
            left, right = heads[word] == after, heads[word] == before
            totals += [1, left, beside or is_last, right, beside or is_first]
    return 100 * totals[1:] / totals[0]
