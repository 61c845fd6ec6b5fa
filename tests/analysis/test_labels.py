"""Labels of test sentences, and conditions on them."""

import numpy as np
import pytest
from cases import cases
from refusing import assert_fails, assert_refused

from synmt.analysis.groups.grouping import (
    choose_sentences,
    group_by_labels,
    number_values,
    read_labels,
)


def test_labels_that_are_numbers_are_ordered_as_numbers():
    assert number_values(["10", "9", "0", "9"])[0] == ["0", "9", "10"]
    assert number_values(["10", "9", "none", ""])[0] == ["(empty)", "10", "9", "none"]


def test_labels_are_columns_by_their_names(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("phenomenon\tattractors\r\nagreement\t1\r\n\t0\r\n")
    labels = read_labels(path, 2)
    assert labels == {"phenomenon": ["agreement", ""], "attractors": ["1", "0"]}
    sizes = np.ones(2, dtype=np.int64)
    assert [one.by for one in group_by_labels(labels, ["attractors"], sizes)] == ["attractors"]
    unknown = r"no label 'atractors'.*phenomenon, attractors.*'attractors'\?"
    assert_refused(unknown, group_by_labels, labels, ["atractors"], sizes)


def test_a_label_with_many_values_makes_groups_only_if_it_is_chosen():
    labels = {"id": list(map(str, range(60))), "kind": ["a"] * 60}
    sizes = np.ones(60, dtype=np.int64)
    assert [one.by for one in group_by_labels(labels, [], sizes)] == ["kind"]
    assert len(group_by_labels(labels, ["id"], sizes)[0].names) == 60


SPLITS = {"split": ["seen", "length", "seen", ""], "attractors": ["0", "0", "1", "2"]}


CHOSEN = """
split=seen => 1010
split!=length => 1011
split!=length attractors!=0 => 0011
split=seen attractors=0 => 1000
split= => 0001
split!=(empty) => 1110
"""


@pytest.mark.parametrize(("conditions", "expected"), cases(CHOSEN))
def test_sentences_are_chosen_by_all_conditions_on_their_labels(conditions, expected):
    found = choose_sentences(SPLITS, conditions.split())
    assert "".join(map(str, found.astype(int))) == expected


NOTHING = r"""
split => 'split' is not a condition\. Conditions: COLUMN=VALUE, COLUMN!=VALUE
splt!=length => no label 'splt'\. Labels: split, attractors\. Did you mean 'split'\?
split=lenght => no value 'lenght'\. .* \(empty\), length, seen\. Did you mean 'length'\?
attractors=3 => label 'attractors': there is no value '3'\. Values: 0, 1, 2\.$
split=length attractors=2 => no test sentence has split=length and attractors=2
"""


@pytest.mark.parametrize(("conditions", "message"), cases(NOTHING))
def test_a_condition_that_chooses_nothing_is_refused(conditions, message):
    assert_refused(message, choose_sentences, SPLITS, conditions.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 rows of labels below the header, but there are 2 test sentences"),
        ("a\tb\n1\t2\n1\n", "line 3: 1 cells, but the first row names 2"),
        ("a\ta\n1\t2\n", "line 1: 2 cells, but the first row names 1 different"),
        ("a\n1\n", "1 rows? of labels below the header, but there are 2 test sentences"),
    ],
)
def test_labels_that_do_not_fit_are_refused(tmp_path, text, message):
    path = tmp_path / "labels.tsv"
    path.write_text(text)
    assert_fails(message, read_labels, path, 2)
