"""What cannot be searched for is refused before the search, in the words of the command line."""

import pytest

from synmt.decode.options import Sampling, SearchOptions, check_options
from synmt.errors import UsageError


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(1, 0.6),
        SearchOptions(4, 0.6, n_best=4),
        SearchOptions(6, 0.6, n_best=6, groups=3, diversity=0.0, no_repeat=3),
        SearchOptions(4, 0.6, n_best=100, sampling=Sampling(top_k=10, top_p=0.5, temperature=0.1, seed=0)),
    ],
)
def test_what_can_be_done_is_not_refused(options):
    check_options(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SearchOptions(0, 0.6), "--beam-size cannot be 0. Allowed: 1 to 10,000."),
        (SearchOptions(10**12, 0.6, groups=7), "--beam-size cannot be 1000000000000."),
        (SearchOptions(4, 1000.0), "--length-penalty cannot be 1000.0. Allowed: 0 to 10."),
        (SearchOptions(4, float("nan")), "--length-penalty cannot be nan."),
        (SearchOptions(4, 0.6, n_best=0), "--n-best cannot be 0. Allowed: 1 and more."),
        (
            SearchOptions(4, 0.6, n_best=5),
            "a beam of 4 has no 5 best translations. --n-best from 1 to 4. Take a wider beam (--beam-size).",
        ),
        (SearchOptions(4, 0.6, no_repeat=-1), "--no-repeat cannot be -1. Allowed: 0 and more."),
        (SearchOptions(4, 0.6, diversity=-0.1), "--diversity cannot be -0.1. Allowed: 0 and more."),
        (
            SearchOptions(6, 0.6, groups=4),
            "a beam of 6 has no 4 groups of one size. --groups for --beam-size 6: 1, 2, 3, 6.",
        ),
        (SearchOptions(6, 0.6, groups=0), "a beam of 6 has no 0 groups of one size."),
        (
            SearchOptions(6, 0.6, groups=2, sampling=Sampling()),
            "sampling knows no groups of hypotheses. Leave out --groups or --sample.",
        ),
        (SearchOptions(4, 0.6, sampling=Sampling(top_k=-1)), "--top-k cannot be -1."),
        (SearchOptions(4, 0.6, sampling=Sampling(top_p=0.0)), "--top-p cannot be 0.0. Allowed: above 0 and up to 1."),
        (SearchOptions(4, 0.6, sampling=Sampling(top_p=1.5)), "--top-p cannot be 1.5."),
        (SearchOptions(4, 0.6, sampling=Sampling(top_p=float("nan"))), "--top-p cannot be nan."),
        (SearchOptions(4, 0.6, sampling=Sampling(temperature=0.0)), "--temperature cannot be 0.0. Allowed: above 0."),
        (SearchOptions(4, 0.6, sampling=Sampling(temperature=float("inf"))), "--temperature cannot be inf."),
        (SearchOptions(4, 0.6, sampling=Sampling(seed=-1)), "--seed cannot be -1."),
    ],
)
def test_what_cannot_be_is_said_in_the_words_of_the_command_line(options, message):
    with pytest.raises(UsageError) as error:
        check_options(options)
    assert message in str(error.value)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(UsageError) as error:
        check_options(SearchOptions(4, 0.6, groups=3, no_repeat=-2, sampling=Sampling(top_p=2.0)))
    assert all(name in str(error.value) for name in ("--groups", "--no-repeat", "--top-p"))
