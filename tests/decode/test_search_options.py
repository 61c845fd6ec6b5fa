"""Invalid search options are refused before the search, named as on the command line."""

import pytest

from synmt.decode.options import Sampling, SearchOptions
from synmt.errors import UsageError


@pytest.mark.parametrize(
    "options",
    [
        dict(beam_size=1),
        dict(beam_size=4, n_best=4),
        dict(beam_size=6, n_best=6, groups=3, diversity=0.0, no_repeat=3),
        dict(
            beam_size=4, n_best=100, sampling=Sampling(top_k=10, top_p=0.5, temperature=0.1, seed=0)
        ),
    ],
)
def test_valid_options_are_accepted(options):
    made = SearchOptions(**options)
    assert {name: getattr(made, name) for name in options} == options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(beam_size=0), "--beam-size cannot be 0. Allowed: 1 to 10,000."),
        (dict(beam_size=10**12, groups=7), "--beam-size cannot be 1000000000000."),
        (
            dict(beam_size=4, length_penalty=1000.0),
            "--length-penalty cannot be 1000.0. Allowed: 0 to 10.",
        ),
        (dict(beam_size=4, length_penalty=float("nan")), "--length-penalty cannot be nan."),
        (dict(beam_size=4, n_best=0), "--n-best cannot be 0. Allowed: 1 or more."),
        (
            dict(beam_size=4, n_best=5),
            "a beam of 4 cannot give 5 translations. Allowed: --n-best from 1 to 4. Use a wider "
            "beam (--beam-size).",
        ),
        (dict(beam_size=4, no_repeat=-1), "--no-repeat cannot be -1. Allowed: 0 or more."),
        (dict(beam_size=4, diversity=-0.1), "--diversity cannot be -0.1. Allowed: 0 or more."),
        (
            dict(beam_size=6, groups=4),
            "a beam of 6 cannot be divided into 4 equal groups. Allowed: --groups 1, 2, 3, 6.",
        ),
        (dict(beam_size=6, groups=0), "a beam of 6 cannot be divided into 0 equal groups."),
        (
            dict(beam_size=6, groups=2, sampling=Sampling()),
            "sampling has no beam to divide into groups. Leave out --groups or --sample.",
        ),
        (dict(beam_size=4, sampling=Sampling(top_k=-1)), "--top-k cannot be -1."),
        (
            dict(beam_size=4, sampling=Sampling(top_p=0.0)),
            "--top-p cannot be 0.0. Allowed: above 0 and up to 1.",
        ),
        (dict(beam_size=4, sampling=Sampling(top_p=1.5)), "--top-p cannot be 1.5."),
        (dict(beam_size=4, sampling=Sampling(top_p=float("nan"))), "--top-p cannot be nan."),
        (
            dict(beam_size=4, sampling=Sampling(temperature=0.0)),
            "--temperature cannot be 0.0. Allowed: above 0.",
        ),
        (
            dict(beam_size=4, sampling=Sampling(temperature=float("inf"))),
            "--temperature cannot be inf.",
        ),
        (dict(beam_size=4, sampling=Sampling(seed=-1)), "--seed cannot be -1."),
    ],
)
def test_invalid_options_are_named_as_on_the_command_line(options, message):
    with pytest.raises(UsageError) as error:
        SearchOptions(**options)
    assert message in str(error.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(UsageError) as error:
        SearchOptions(beam_size=4, groups=3, no_repeat=-2, sampling=Sampling(top_p=2.0))
    assert all(name in str(error.value) for name in ("--groups", "--no-repeat", "--top-p"))
