"""Invalid search options are refused before the search, named as on the command line."""

import re
from dataclasses import fields

import pytest
from refusing import assert_refused

from synmt.decode.options import Sampling, SearchOptions

SAMPLED = [field.name for field in fields(Sampling)]


def options_of(text):
    """Make options of `name=value …`; those of sampling, or `sample`, make samples."""
    values = {}
    for part in text.split():
        name, _, value = part.partition("=")
        values[name] = int(value) if value.lstrip("-").isdecimal() else float(value or "nan")
    drawing = {name: values.pop(name) for name in SAMPLED if name in values}
    if drawing or values.pop("sample", None):
        values["sampling"] = Sampling(**drawing)
    return values


INVALID = """
beam_size=0 | --beam-size cannot be 0. Allowed: from 1 up to 10,000.
beam_size=1000000000000 groups=7 | --beam-size cannot be 1000000000000.
beam_size=4 length_penalty=1000.0 | --length-penalty cannot be 1000.0. Allowed: from 0 up to 10.
beam_size=4 length_penalty=nan | --length-penalty cannot be nan.
beam_size=4 n_best=0 | --n-best cannot be 0. Allowed: from 1.
beam_size=4 n_best=5 | --n-best 5 needs a wider beam
beam_size=4 no_repeat=-1 | --no-repeat cannot be -1. Allowed: from 0.
beam_size=4 diversity=-0.1 | --diversity cannot be -0.1. Allowed: from 0.
beam_size=6 groups=4 | --groups 4 must divide --beam-size
beam_size=6 groups=0 | --groups cannot be 0. Allowed: from 1.
beam_size=6 groups=2 sample | --groups 2 must divide --beam-size, and does not go with --sample
beam_size=4 top_k=-1 | --top-k cannot be -1.
beam_size=4 top_p=0.0 | --top-p cannot be 0.0. Allowed: above 0 up to 1.
beam_size=4 top_p=1.5 | --top-p cannot be 1.5.
beam_size=4 top_p=nan | --top-p cannot be nan.
beam_size=4 temperature=0.0 | --temperature cannot be 0.0. Allowed: above 0.
beam_size=4 temperature=inf | --temperature cannot be inf.
beam_size=4 seed=-1 | --seed cannot be -1.
"""


@pytest.mark.parametrize("line", INVALID.strip().splitlines())
def test_invalid_options_are_named_as_on_the_command_line(line):
    text, message = line.split(" | ")
    assert_refused(re.escape(message), SearchOptions, **options_of(text))


def test_all_problems_are_reported_at_once():
    invalid = options_of("beam_size=4 groups=0 no_repeat=-2 top_p=2.0")
    for name in ("--groups", "--no-repeat", "--top-p"):
        assert_refused(name, SearchOptions, **invalid)
