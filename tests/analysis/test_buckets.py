"""Buckets of numbers: those of the papers, those of the user, quarters of the data."""

import itertools

import numpy as np
import pytest
from each import of_each
from refusing import assert_refused

from synmt.analysis.groups.grouping import (
    PAPERS,
    bucket_names,
    bucket_numbers,
    parse_buckets,
    quarters,
)


def bucket(value, edges):
    values = np.array([value])
    return bucket_names(values, edges)[bucket_numbers(values, edges)[0]]


@pytest.mark.parametrize(
    ("paper", "length", "name"),
    [
        ("pascal", 1, "1-10"),
        ("pascal", 10, "1-10"),
        ("pascal", 51, ">50"),
        ("deps-san", 80, "71-80"),
        ("deps-san", 81, ">80"),
        ("ldd", 11, "11-20"),
    ],
)
def test_the_names_of_the_papers_buckets_include_their_last_length(paper, length, name):
    assert bucket(length, PAPERS[paper].edges) == name


def test_the_lowest_value_is_named_where_it_is_less_than_one():
    assert bucket_names(np.array([0, 3, 4]), (1, 3)) == ["0-1", "2-3", ">3"]
    assert bucket_names(np.array([2, 4]), (1, 3)) == ["1", "2-3", ">3"]
    assert bucket_names(np.array([2, 4]), (0, 3)) == ["0", "1-3", ">3"]


def test_buckets_of_decimals_say_that_their_last_value_belongs_to_them():
    means = np.array([2.5, 2.6, 3.0, 3.1])
    assert bucket_names(means, (2.5, 3)) == ["≤2.5", ">2.5 to 3", ">3"]
    assert bucket_numbers(means, (2.5, 3)).tolist() == [0, 1, 1, 2]


@of_each(range(20))
def test_a_value_is_in_the_bucket_that_a_search_from_the_first_one_finds(seed):
    random = np.random.default_rng(seed)
    edges = tuple(sorted(set(random.integers(0, 30, size=5).tolist())))
    values = random.integers(0, 40, size=50)
    expected = [
        next((n for n, edge in enumerate(edges) if value <= edge), len(edges)) for value in values
    ]
    assert bucket_numbers(values, edges).tolist() == expected


@of_each(list(itertools.product(range(50), (0, 1))))
def test_quarters_make_at_most_four_buckets_and_none_is_empty(case):
    seed, decimals = case
    random = np.random.default_rng(seed)
    values = np.round(random.gamma(2, 2, size=int(random.integers(1, 12))), 2 * decimals)
    edges = quarters(values, decimals=decimals)
    counts = np.bincount(bucket_numbers(values, edges), minlength=len(edges) + 1)
    assert len(counts) == len(edges) + 1 <= 4
    assert counts.min() > 0
    assert edges == tuple(round(edge, decimals) for edge in edges)


def test_equal_values_have_one_bucket():
    assert quarters(np.array([3, 3, 3])) == ()
    assert bucket_names(np.array([3, 3]), ()) == ["any"]
    assert bucket_numbers(np.array([3, 3]), ()).tolist() == [0, 0]
    # a fifth of the sentences is above all the others
    assert quarters(np.array([2, 2, 2, 2, 9])) == (2,)


def test_buckets_are_read_by_name_or_as_numbers():
    assert parse_buckets("10, 20,30").edges == (10, 20, 30)
    assert parse_buckets("2.5,3").edges == (2.5, 3)
    assert parse_buckets("Deps-SAN") == PAPERS["deps-san"]
    assert parse_buckets("ldd").side == "target"


@pytest.mark.parametrize("text", ["", "a", "10,,20", "20,10", "10,10", "-3", "nan", "inf"])
def test_text_that_does_not_describe_buckets_is_refused(text):
    assert_refused(
        r"does not name or list buckets\. Buckets: pascal, deps-san, ldd, or", parse_buckets, text
    )
