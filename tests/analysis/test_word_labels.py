"""The groups that trees and training texts give to words, and the alignments of source words with
references."""

import re
from collections import Counter

import numpy as np
import pytest
from cases import cases
from places import TESTS
from refusing import assert_fails
from scored import random_parses, walk
from tiny import write_lines
from word_texts import texts_of

from synmt.analysis.words.alignments import carry_over, join_alignments, read_alignments
from synmt.analysis.words.grouping import (
    TREE_LABELS,
    UNKNOWN,
    count_file,
    count_prepared,
    group_by_frequency,
    group_words,
    prepared_text,
    tree_labels,
)
from synmt.analysis.words.texts import TokenizedText
from synmt.evaluation.metrics import MetricOptions
from synmt.files.reading import read_lines
from synmt.run_folder import Run
from synmt.syntax.parse import Parse, flat_parse

OLD = TESTS / "format1"
LINE = "We don't eat, bananas !"
# eat is the root, and bananas hangs below the comma, which a parser should not do
WORDS = ["We", "do", "n't", "eat", ",", "bananas", "!"]
PARENTS = [3, 3, 3, 3, 3, 4, 3]
RELATIONS = ["nsubj:pass", "aux", "advmod", "root", "punct", "obj", "punct"]
TAGS = ["PRON", "AUX", "PART", "VERB", "PUNCT", "NOUN", "PUNCT"]


def parse():
    spans = [(0, 2), (3, 5), (5, 8), (9, 12), (12, 13), (14, 21), (22, 23)]
    return Parse(WORDS, np.array(spans), np.array(PARENTS), RELATIONS, TAGS)


def labels(name, words=WORDS):
    return tree_labels(TREE_LABELS[name], TokenizedText([words]), [LINE], [parse()])


def test_a_word_has_the_tag_and_the_relation_of_its_tree():
    assert labels("tag") == TAGS
    assert labels("relation") == ["nsubj", "aux", "advmod", "root", "punct", "obj", "punct"]


def test_a_word_that_is_cut_otherwise_has_the_label_of_its_first_character():
    found = labels("tag", ["We", "don't", "eat,", "banan", "as", "!"])
    assert found == ["PRON", "AUX", "VERB", "NOUN", "NOUN", "PUNCT"]
    nothing = tree_labels(TREE_LABELS["tag"], TokenizedText([["x"]]), [""], [flat_parse("")])
    assert nothing == [UNKNOWN]


@pytest.mark.parametrize("seed", range(3))
def test_distances_and_depths_are_those_of_a_walk_through_the_tree(seed):
    def named(value, lasts, longer):
        return next((name for last, name in lasts if value <= last), longer)

    for one in random_parses(seed):
        text, lines = TokenizedText([["w"] * len(one)]), ["w" * len(one)]
        found = [
            tree_labels(TREE_LABELS[name], text, lines, [one]) for name in ("distance", "depth")
        ]
        for word, parent in enumerate(one.parents.tolist()):
            steps, length = walk(one, word)
            depth = named(steps, ((4, str(steps)), (6, "5-6")), ">6")
            distance = named(length, ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8")), ">8")
            distance = distance if one.relations[parent] != "punct" else UNKNOWN
            expected = ["root" if word == parent else distance, depth]
            if one.relations[word] == "punct":
                expected = ["punctuation"] * 2
            assert [labels[word] for labels in found] == expected


def test_groups_are_numbered_and_words_without_a_label_are_in_none():
    groups = group_words(
        TREE_LABELS["tag"], ["NOUN", "DET", "NOUN", UNKNOWN], [["X", "DET"]], "target"
    )
    assert (groups.by, groups.names) == ("part of speech of the target word", ["DET", "NOUN", "X"])
    assert (groups.words.tolist(), groups.translated[0].tolist()) == ([1, 0, 1, -1], [2, 0])
    ordered = group_words(TREE_LABELS["depth"], ["2", "0", ">6"], [], "source")
    assert ordered.names == ["0", "1", "2", "3", "4", "5-6", ">6", "punctuation"]
    assert ordered.words.tolist() == [2, 0, 6]


def test_a_frequency_is_in_the_bucket_that_ends_with_it_or_above():
    counts = Counter({"a": 1, "b": 4, "c": 5, "d": 9, "e": 10, "f": 999, "g": 1000})
    groups = group_by_frequency(counts, texts_of(["x a b c d", "e f g"], ["a", ""]), "target", "")
    found = [groups.names[number] for number in groups.words]
    assert found == ["0", "1", "4", "5-9", "5-9", "10-99", "100-999", ">999"]
    assert groups.translated[0].tolist() == [1]


def test_the_words_of_a_training_text_are_counted_in_a_file_or_where_it_was_prepared():
    path, options = OLD / "corpus" / "train.de", MetricOptions()
    counts = count_file(path, options)
    lines = (re.sub(r"([,.?])", r" \1", line) for line in read_lines(path))
    assert counts == Counter(word for line in lines for word in line.split())
    run = Run(OLD / "runs" / "pascal")
    # the vocabulary has no word that was too rare
    found = count_prepared(run, prepared_text(run), "target", options)
    assert 0 < found.total() < counts.total()
    assert found["die"] == counts["die"]
    assert all(count <= counts[word] for word, count in found.items())
    assert count_file(path, MetricOptions(lowercase=True))["der"] == counts["der"] + counts["Der"]


def test_a_target_word_is_in_the_group_of_its_first_aligned_source_word():
    pairs = np.array([(0, 0), (1, 0), (1, 2), (2, 1)])
    assert carry_over(np.array([5, 7, -1]), pairs, 4).tolist() == [5, -1, 7, -1]
    assert carry_over(np.array([5]), pairs[:0], 2).tolist() == [-1, -1]


def test_pairs_are_read_as_pharaoh_wrote_them(tmp_path):
    path = tmp_path / "a.align"
    path.write_text("0-0 1-1\n\n0-1\n")
    source, reference = (
        TokenizedText([["a", "b"], [], ["c"]]),
        TokenizedText([["x", "y"], ["z"], ["u", "v"]]),
    )
    pairs = read_alignments(path, source, reference)
    assert pairs == [[(0, 0), (1, 1)], [], [(0, 1)]]
    # the third source word is aligned with the fifth word of the references
    assert join_alignments(pairs, source, reference).tolist() == [[0, 0], [1, 1], [2, 4]]


MISALIGNED = r"""
0-0 => 1 lines of alignments, but there are 2 sentences
0-0;0:0 => line 2: '0:0' is not a pair of a source word, of 1, and a reference word, of 1\.
0-2; => line 1: '0-2' is not a pair of a source word, of 1, and a reference word, of 2\.
"""


@pytest.mark.parametrize(("text", "message"), cases(MISALIGNED))
def test_alignments_that_do_not_fit_are_refused(tmp_path, text, message):
    path = write_lines(tmp_path / "a.align", text.split(";"))
    assert_fails(
        message,
        read_alignments,
        path,
        TokenizedText([["a"], ["b"]]),
        TokenizedText([["x", "y"], ["z"]]),
    )
