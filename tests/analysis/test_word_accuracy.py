"""How often words are translated right: the counts and figures are those of compare-mt 0.2.10 on
the same files."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import cases
from each import of_seeds
from word_texts import PAIRS, REFERENCE, SOURCE, A, B, random_lines, texts_of

from synmt.analysis.groups.results import FEW_SENTENCES
from synmt.analysis.words.accuracy import WordCounts, WordGroups, count_words, tabulate_words
from synmt.analysis.words.alignments import join_alignments
from synmt.analysis.words.grouping import group_by_frequency
from synmt.analysis.words.texts import TokenizedText, found_words, match_words
from synmt.evaluation.bootstrap import SEED, interval
from synmt.evaluation.significance import (
    bootstrap_scores,
    compare_on_resamples,
    holm,
    resample_seeds,
)

TAGS = {
    "reference": ["DET NOUN VERB DET NOUN"] * 2 + ["DET NOUN VERB CCONJ DET NOUN VERB"],
    "a": ["DET NOUN VERB NOUN NOUN", "DET NOUN VERB DET NOUN", "DET NOUN VERB CCONJ VERB ADV"],
    "b": ["DET NOUN VERB DET NOUN", "DET NOUN CCONJ DET NOUN", "DET NOUN VERB"],
}
NAMES = ["CCONJ", "DET", "NOUN", "VERB"]
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def cut(lines):
    return TokenizedText([line.split() for line in lines])


def numbers(tags):
    return np.array(
        [NAMES.index(tag) if tag in NAMES else -1 for line in tags for tag in line.split()]
    )


def counts_of(hypotheses, references):
    """Count all words together."""
    nowhere = [np.full(len(cut(lines)), -1) for lines in (references, hypotheses)]
    found = WordGroups("any", "", [], nowhere[0], nowhere[1:])
    return count_words(texts_of(references, hypotheses), found, NO_PAIRS)["a"][0]


def test_copies_of_a_word_match_in_their_order_and_no_more_than_the_reference_has():
    # Hund: the second and the fifth word of the reference; the third copy matches nothing
    assert match_words(cut(A[:1]), cut(REFERENCE[:1])).tolist() == [0, 1, 2, 4, -1]
    # words are numbered through the text: the first sentence of the reference has five
    assert match_words(cut(B[:2]), cut(REFERENCE[:2])).tolist() == [3, 1, 2, 0, 4, 5, 6, -1, 8, 9]
    assert match_words(cut([""]), cut([""])).tolist() == []


@of_seeds(5)
def test_matches_are_those_of_bags_of_words(random):
    references, hypotheses = random_lines(random, 30), random_lines(random, 30)
    matches = match_words(cut(hypotheses), cut(references))
    bags = ([Counter(line.split()) for line in lines] for lines in (hypotheses, references))
    expected = [(one & other).total() for one, other in zip(*bags, strict=True)]
    assert counts_of(hypotheses, references).matches[:, -1].tolist() == expected
    words, translated = (" ".join(lines).split() for lines in (references, hypotheses))
    for word, place in zip(translated, matches.tolist(), strict=True):
        assert place < 0 or words[place] == word
    assert found_words(matches, len(words)).sum() == sum(expected)


def percent(*fractions):
    return [None if one is None else float(100 * Fraction(one)) for one in fractions]


def row_of(tables, group, system):
    """Return F1, precision and recall, or the recall of source words."""
    return [cells_of(table, group, "ab"[system]).get("value") for table in tables]


def cells_of(table, group, system):
    rows = table.as_json()["rows"]
    return next(row for row in rows if (row["group"], row["system"]) == (group, system))


# compare-mt a b with ref_labels and out_labels: recall, precision, F1 of each system
BY_TAG = """
CCONJ => 1 1 1 => 0 0 0
DET => 2/3 1 4/5 => 5/6 1 10/11
NOUN => 5/6 5/6 5/6 => 5/6 1 10/11
VERB => 1 1 1 => 1/2 1 2/3
"""


def test_the_accuracy_by_tag_is_that_of_compare_mt():
    reference, *systems = map(numbers, TAGS.values())
    groups = WordGroups("tag", "", NAMES, reference, systems)
    tables = tabulate_words(groups, count_words(texts_of(REFERENCE, A, B), groups, NO_PAIRS))
    for group, *expected in cases(BY_TAG):
        for system, shares in enumerate(expected):
            recall, precision, f1 = shares.split()
            found = row_of(tables, group, system)
            assert found == pytest.approx(percent(f1, precision, recall))
    sizes = [f"{row[0]} {row[1]}" for row in tables[0].rows[::2]]
    assert sizes == ["DET 6", "NOUN 6", "VERB 4", "CCONJ 1", "all 17"]


BY_FREQUENCY = """
1 => 4/5 4/5 4/5 => 3/4 3/5 2/3
2 => 10/11 5/6 20/23 => 1 3/4 6/7
"""


def test_the_accuracy_by_frequency_in_the_references_is_that_of_compare_mt():
    texts = texts_of(REFERENCE, A, B)
    groups = group_by_frequency(Counter(texts.reference), texts, "target", "the text")
    tables = tabulate_words(groups, count_words(texts, groups, NO_PAIRS))
    assert " ".join(groups.names) == "0 1 2 3 4 5-9 10-99 100-999 >999"
    assert [row[0] for row in tables[0].rows[::2]] == ["1", "2", "all"]
    for group, *expected in cases(BY_FREQUENCY):
        for system, shares in enumerate(expected):
            precision, recall, f1 = shares.split()
            expected_shares = percent(f1, precision, recall)
            assert row_of(tables, group, system) == pytest.approx(expected_shares)


def test_a_source_word_is_right_if_all_words_aligned_with_it_are_found():
    texts = texts_of(REFERENCE, A, B, source=SOURCE)
    groups = WordGroups("tag", "", NAMES, numbers(TAGS["reference"]), [], side="source")
    counts = count_words(texts, groups, join_alignments(PAIRS, texts.source, texts.reference))
    # the fifth word of the last sentence
    assert [one.words[:, -1].tolist() for [one] in counts.values()] == [[5, 5, 6]] * 2
    [table] = tables = tabulate_words(groups, counts)
    assert table.title == "recall by tag"
    # compare-mt divides by all six articles, one of which is not aligned: 1/2 and 5/6
    for row in ("DET 3/5 5/5", "CCONJ 1 0", "NOUN 5/6 5/6", "VERB 1 1/2"):
        group, *shares = row.split()
        found = row_of(tables, group, 0) + row_of(tables, group, 1)
        assert found == pytest.approx(percent(*shares))


def test_without_words_there_is_nothing_to_divide_by():
    tables = tabulate_words(
        WordGroups("any", "", [], np.full(2, -1), []), {"a": [counts_of([""], ["x y"])]}
    )
    assert row_of(tables, "all", 0) == [0.0, None, 0.0]


SOME = WordGroups("any", "", ["often", "seldom"], np.zeros(1, dtype=np.int64), [])


def many_counts(random, sentences=14):
    """Make counts of two groups and their sum, for two systems with two seeds and three."""
    shape = sentences, 2
    words = random.integers(1, 4, shape).astype(float)
    words[FEW_SENTENCES - 1 :, 1] = 0
    found = {"a": [], "b": []}
    for system in ("a", "a", "b", "b", "b"):
        translated = random.integers(1, 4, shape).astype(float)
        wrong = random.integers(0, 2, shape)
        matches = (np.minimum(words, translated) - wrong).clip(min=0)
        parts = (np.c_[one, one.sum(1)] for one in (words, matches, translated))
        found[system].append(WordCounts(*parts))
    return found


def test_intervals_and_differences_resample_sentences_and_seeds():
    counts = many_counts(np.random.default_rng(5))
    tables = tabulate_words(SOME, counts)

    def f1(totals):
        words, matches, translated = totals
        return float(200 * matches / (words + translated))

    def of_column(column):
        return [
            [np.c_[one.words, one.matches, one.translated][:, column::3] for one in seeds]
            for seeds in counts.values()
        ]

    base, other = (cells_of(tables[0], "often", system) for system in "ab")
    [compared] = compare_on_resamples(of_column(0), f1)
    assert other["difference"] == pytest.approx(compared.difference)
    assert other["interval"] == pytest.approx([compared.low, compared.high])
    drawn = bootstrap_scores(of_column(0)[0], f1)
    means = resample_seeds(drawn, np.random.default_rng(SEED))
    assert base["value_interval"] == pytest.approx(interval(means).tolist())
    # the second group is in nine sentences: two comparisons by each measure
    for table in tables:
        assert "corrected for 2 comparisons" in " ".join(table.explanations())
    assert cells_of(tables[0], "seldom", "b")["interval"] is None
    of_all = cells_of(tables[0], "all", "b")
    [total] = compare_on_resamples(of_column(2), f1)
    corrected = holm([compared.p_value, total.p_value])
    assert [other["holm_p"], of_all["holm_p"]] == pytest.approx(corrected)
