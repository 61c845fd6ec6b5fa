"""The grammar of trees: how often a part of speech depends on another."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from small import MONKEY, random_tree

from synmt.analysis.trees.attachment import count_rules, share_of_rule
from synmt.syntax.conllu import read_conllu

TAGS = ["DET", "NOUN", "VERB", "DET", "NOUN"]
TAGGED = replace(MONKEY, tags=TAGS)


def test_the_monkey_and_the_banana_have_a_determiner_and_the_verb_has_two_nouns():
    gold = count_rules([TAGGED.parents], [TAGGED])
    assert gold == {("NOUN", "DET"): 2, ("VERB", "NOUN"): 2}
    # The <- monkey -> eats -> a <- banana, and eats is a banana's: the root monkey has no parent
    other = count_rules([np.array([1, 1, 1, 2, 3])], [TAGGED])
    assert other == {
        ("NOUN", "DET"): 1,
        ("NOUN", "VERB"): 1,
        ("VERB", "DET"): 1,
        ("DET", "NOUN"): 1,
    }
    assert [share_of_rule(("NOUN", "DET"), one) for one in (other, gold)] == [0.5, 1]
    assert share_of_rule(("DET", "NOUN"), gold) == 0


def test_punctuation_and_words_without_a_parent_do_not_count_nor_do_trees_without_tags():
    comma = replace(TAGGED, tags=["DET", "NOUN", "VERB", "PUNCT", "NOUN"])
    assert count_rules([TAGGED.parents], [comma]) == {("NOUN", "DET"): 1, ("VERB", "NOUN"): 2}
    assert count_rules([np.array([-1, 2, 2, 4, -1])], [TAGGED]) == {
        ("VERB", "NOUN"): 1,
        ("NOUN", "DET"): 1,
    }
    assert not count_rules([MONKEY.parents], [MONKEY])


def test_shares_equal_a_count_word_by_word():
    random = np.random.default_rng(3)
    gold, trees = [], []
    for seed in range(20):
        parse = random_tree(1 + seed % 7, random)
        gold.append(
            replace(parse, tags=random.choice(["NOUN", "VERB", "PUNCT"], len(parse)).tolist())
        )
        trees.append(random_tree(len(parse), random).parents)
    found, seen = count_rules(trees, gold), Counter()
    for parents, parse in zip(trees, gold, strict=True):
        for word in range(len(parse)):
            punctuation = parse.tags[word] == "PUNCT" or parse.relations[word] == "punct"
            if parents[word] != word and not punctuation:
                seen[parse.tags[parents[word]], parse.tags[word]] += 1
    assert found == seen
    for parent, child in seen:
        assert share_of_rule((parent, child), found) == seen[parent, child] / sum(
            seen[parent, tag] for tag in ("NOUN", "VERB")
        )


REPORTED = {
    ("VERB", "NOUN"): 25.1,
    ("VERB", "PRON"): 18.6,
    ("VERB", "ADV"): 9.1,
    ("VERB", "VERB"): 12.8,
    ("NOUN", "DET"): 23.2,
    ("NOUN", "ADP"): 17.2,
    ("NOUN", "NOUN"): 18.4,
    ("NOUN", "ADJ"): 13.9,
}
"""Tran & Bisk (2018, in the version under review): gold shares of English, in percent, of other
sentences."""


def test_english_treebanks_have_about_the_shares_that_the_paper_reports(data_folder):
    path = data_folder / "ud" / "en_ewt-ud-dev.conllu.gz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    parses = [parse for _, parse in read_conllu(path)]
    found = count_rules([parse.parents for parse in parses], parses)
    assert {rule: 100 * share_of_rule(rule, found) for rule in REPORTED} == pytest.approx(
        REPORTED, abs=2
    )
