"""Constituents: brackets read, moved to other words, made binary or built from dependencies; their
signals."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import cases
from each import of_seeds
from notation import matrix, pairs
from refusing import assert_fails
from small import MONKEY, MONKEY_WORD_OF, all_trees, random_pieces, random_tree

from synmt.syntax.conllu import read_conllu, read_parses
from synmt.syntax.constituent_signals import CUT, boundaries, boundary_heights, owners, splits
from synmt.syntax.constituents import (
    binary_dependencies,
    binary_tree,
    constituents_of_tokens,
    heights,
    parse_brackets,
    read_brackets,
    right_binary,
)
from synmt.syntax.controls import Control
from synmt.syntax.merging import merge_unowned

SENTENCE = "The monkey eats a banana"
BRACKETS = "(ROOT (S (NP (DT The) (NN monkey)) (VP (VBZ eats) (NP (DT a) (NN banana)))))"
SPANS = pairs("0-5 0-2 2-5 3-5")
TREE = pairs("0-1 3-4 2-6 5-7")
"""((The monkey) (eats (a banana))), from dependencies: nodes 5 (The monkey), 6 (a banana), 7 (eats
…), 8 all."""


def leaves_of(merges):
    """List the words under every node, words first, by following the merges."""
    found = [{word} for word in range(len(merges) + 1)]
    for left, right in merges:
        assert not found[left] & found[right]
        found.append(found[left] | found[right])
    return found


def random_spans(words, random):
    """Draw nested spans: split a span at random places, and the parts again."""
    spans, waiting = set(), [(0, words)]
    while waiting:
        start, end = waiting.pop()
        if end - start < 2:
            continue
        if random.random() < 0.7:
            spans.add((start, end))
        cuts = sorted({start, end, *random.integers(start + 1, end, size=2).tolist()})
        waiting += pairwise(cuts)
    return np.array(sorted(spans, key=lambda span: (span[0], -span[1])), dtype=np.int64).reshape(
        -1, 2
    )


def test_brackets_of_the_monkey():
    words, spans = read_brackets(BRACKETS)
    assert (words, spans.tolist()) == (SENTENCE.split(), SPANS)
    same, without_tags = read_brackets("( (S (NP The monkey ) (VP eats (NP a banana ) ) ) )")
    assert (same, without_tags.tolist()) == (words, SPANS)


NO_BRACKETS = r"""
(S (NP The monkey) eats => not closed
(S The) monkey) => 'monkey' is outside
(S The)) => '\)' is outside
The monkey => 'The' is outside
"""


@pytest.mark.parametrize(("text", "fault"), cases(NO_BRACKETS))
def test_what_is_no_bracketing_is_refused(text, fault):
    with pytest.raises(ValueError, match=fault):
        read_brackets(text)
    assert_fails(
        rf"x\.brackets, line 3.*{fault}",
        parse_brackets,
        text,
        "The monkey",
        where="x.brackets, line 3",
    )


def test_words_are_placed_in_the_line_with_its_whitespace_and_its_brackets():
    parse = parse_brackets(
        "(S (NP Monkeys) (PRN -LRB- (NP apes) -RRB-) (VP eat))", "Monkeys  (apes) eat", where="x"
    )
    assert parse.words == ["Monkeys", "(", "apes", ")", "eat"]
    assert parse.spans.tolist() == pairs("0-7 9-10 10-14 14-15 16-19")
    assert parse.constituents.tolist() == pairs("0-5 1-4")
    assert parse.relations == []


STANZAS_COMMENT = """\
# text = zum Haus gehen
# constituency = (S (PP zu (NP dem Haus)) (VP gehen))
1-2 zum _ _ _ _ _ _ _ _
1 zu _ X _ _ 3 dep _ _
2 dem _ X _ _ 3 dep _ _
3 Haus _ X _ _ 4 dep _ _
4 gehen _ X _ _ 0 dep _ _

"""


def test_the_comment_of_stanza_counts_words_and_the_tree_counts_tokens(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(
        re.sub("^[^#].*", lambda row: row[0].replace(" ", "\t"), STANZAS_COMMENT, flags=8)
    )
    ((_, parse),) = read_conllu(path)
    # zu (dem Haus) of three words is zum Haus of two tokens
    assert parse.constituents.tolist() == pairs("0-3 0-2")
    tokens = [range(2), range(2, 3), range(3, 4)]
    found = constituents_of_tokens("(S zum (NP Haus gehen))", tokens)
    assert found.tolist() == pairs("0-3 1-3")
    assert constituents_of_tokens("(S zum)", tokens[:2]) is None
    assert constituents_of_tokens("(S zum", tokens[:1]) is None


def test_a_file_of_brackets_is_read_only_where_no_dependencies_are_needed(tmp_path):
    path = tmp_path / "x.brackets"
    path.write_text(f"{BRACKETS}\n\n", encoding="utf-8")
    first, empty = read_parses(path, [SENTENCE, ""], brackets=True)
    assert first.constituents.tolist() == SPANS
    assert len(empty) == 0
    assert_fails(
        "comes as brackets, and the model reads dependencies",
        read_parses,
        path,
        [SENTENCE, ""],
    )
    assert_fails(
        "ends before line 3 of the text",
        list,
        read_parses(path, [SENTENCE, "", SENTENCE], brackets=True),
    )
    assert_fails(
        "has more trees than the text, which has 1 lines",
        list,
        read_parses(path, [SENTENCE], brackets=True),
    )


def test_the_binary_trees_of_the_monkey():
    assert binary_tree(MONKEY).tolist() == TREE
    given = binary_tree(replace(MONKEY, constituents=np.array(SPANS)))
    assert leaves_of(given)[5:] == [{3, 4}, {2, 3, 4}, {0, 1}, {0, 1, 2, 3, 4}]
    assert heights(np.array(TREE)) == [2, 2, 3, 4]
    assert boundary_heights(np.array(TREE)).tolist() == [2, 4, 3, 2]


@pytest.mark.parametrize("words", [0, 1, 2, 3, 4, 5])
def test_every_dependency_tree_becomes_a_binary_tree_that_has_its_subtrees(words):
    for parents in all_trees(words) if words else [[]]:
        merges = binary_dependencies(list(parents))
        nodes = leaves_of(merges.tolist())
        assert len(merges) == max(words - 1, 0)
        assert not words or nodes[-1] == set(range(words))
        below = [{word} for word in range(words)]
        for _ in range(words):
            for word, parent in enumerate(parents):
                below[parent] |= below[word]
        # the words below each word are a node
        assert all(subtree in nodes for subtree in below)


def test_a_head_joins_its_right_side_first_and_what_is_near_before_what_is_far():
    # 2 is the head of 0, 1, 3 and 4: ((2 3) 4), then 1, then 0
    assert binary_dependencies([2, 2, 2, 2, 2]).tolist() == pairs("2-3 5-4 1-6 0-7")


@of_seeds(20)
def test_a_binary_tree_of_constituents_keeps_them_and_branches_to_the_right(random):
    words = int(random.integers(1, 12))
    spans = random_spans(words, random)
    merges = right_binary(spans, words)
    nodes = leaves_of(merges.tolist())
    assert len(merges) == words - 1
    assert all(set(range(*span)) in nodes for span in spans.tolist())
    given = {frozenset(range(*span)) for span in [*spans.tolist(), [0, words]]}
    for left, right in merges.tolist():
        joined = nodes[left] | nodes[right]
        assert min(nodes[right]) == max(nodes[left]) + 1
        # the left part is a word or given; a node that is not given ends where a given one ends
        assert len(nodes[left]) == 1 or frozenset(nodes[left]) in given
        assert frozenset(joined) in given or max(joined) in {max(each) for each in given}


@of_seeds(20)
def test_the_height_of_a_boundary_is_that_of_the_lowest_node_over_both_words(random):
    merges = binary_tree(random_tree(int(random.integers(2, 12)), random))
    nodes, high = leaves_of(merges.tolist())[len(merges) + 1 :], heights(merges)
    for boundary, height in enumerate(boundary_heights(merges).tolist()):
        over = [h for node, h in zip(nodes, high, strict=True) if {boundary, boundary + 1} <= node]
        assert height == min(over)


def test_a_piece_without_a_word_inside_the_text_belongs_to_the_word_before():
    assert owners(np.array([-1, 0, -1, -1, 1, 1, -1])).tolist() == [-1, 0, 0, 0, 1, 1, -1]
    assert owners(np.array([-1, -1])).tolist() == [-1, -1]


def test_boundaries_and_splits_of_the_monkey():
    word_of = np.append(MONKEY_WORD_OF, -1)
    # ▁The | ▁mon key | ▁eats | ▁a | ▁ban ana </s>: δ = 2 4 3 2 between words, 1 inside them
    assert boundaries(MONKEY, word_of).tolist() == [2, 1, 4, 3, 2, 1, CUT, CUT]
    # (eats (a banana)) is split after eats, all after key; two words have one split and no row
    expected = matrix("""
        -1 -1 -1 3 2 1 1 0
        2 1 3 2 2 1 1 0
    """)
    assert splits(MONKEY, word_of).tolist() == expected.tolist()
    assert boundaries(MONKEY, np.append(-1, word_of)).tolist()[:2] == [CUT, 2]


@of_seeds(20)
def test_splits_are_those_of_all_nodes_that_are_spans(random):
    parse = random_tree(int(random.integers(1, 9)), random)
    word_of = random_pieces(len(parse), random)
    owner, merges, expected = owners(word_of).tolist(), binary_tree(parse).tolist(), []
    nodes = leaves_of(merges)
    for left, right in merges:
        joined, cut = sorted(nodes[left] | nodes[right]), max(nodes[left])
        if len(joined) < 3 or cut > min(nodes[right]) or joined[-1] - joined[0] >= len(joined):
            continue
        row = [-1 if word >= 0 else 0 for word in owner]
        for place, word in enumerate(owner):
            last = place + 1 == len(owner) or owner[place + 1] != word
            if word in joined:
                row[place] = 1 + (last and word != joined[-1]) + (last and word == cut)
        expected.append(row)
    assert splits(parse, word_of).tolist() == expected


def test_a_sentence_of_one_word_or_none_has_no_boundary_and_no_split():
    one = random_tree(1, np.random.default_rng(0))
    none = replace(one, words=[], parents=one.parents[:0])
    for parse, word_of, expected in ((one, [0, 0, -1], [1, CUT, CUT]), (none, [-1], [CUT])):
        assert splits(parse, np.array(word_of)).shape == (0, len(word_of))
        assert boundaries(parse, np.array(word_of)).tolist() == expected


def test_constituents_follow_words_that_are_merged():
    # one piece has monkey and eats: monkey owns it, and eats is removed
    spans = np.array(pairs("0-3 4-15 16-17 18-24"))
    parse = replace(MONKEY, tags=["X"] * 5, constituents=np.array(SPANS))
    merged, after = merge_unowned(parse, spans, np.array([0, 1, 3, 4]))
    assert (merged.words, after.tolist()) == (["The", "monkey", "a", "banana"], [0, 1, 2, 3])
    # (The monkey), (a banana) and all remain; (eats (a banana)) has lost its verb
    assert merged.constituents.tolist() == pairs("0-4 0-2 2-4")
    alone, _ = merge_unowned(replace(parse, relations=[]), spans, np.array([0, 1, 3, 4]))
    assert alone.relations == []


def test_a_control_drops_constituents_that_were_given():
    parse = replace(MONKEY, constituents=np.array(SPANS))
    assert Control("left").apply(parse, b"").constituents is None
    assert Control().apply(parse, b"").constituents.tolist() == SPANS
    # those that are built from the dependencies follow the control: a chain to the right branches
    # to the left
    chain = Control("right").apply(parse, b"")
    assert binary_tree(chain).tolist() == pairs("3-4 2-5 1-6 0-7")
