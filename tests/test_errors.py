"""User errors and their four parts."""

from pathlib import Path

import pytest

from synmt.errors import (
    SynmtError,
    UsageError,
    adding_advice,
    did_you_mean,
    listed,
    naming,
)


def test_a_copy_keeps_its_class_and_the_parts_that_are_not_replaced():
    error = UsageError("no such key", where="training", allowed="max_steps", do="Look again")
    copy = error.with_(do="Did you mean 'max_steps'?")
    assert type(copy) is UsageError
    assert str(copy) == "training: no such key. max_steps. Did you mean 'max_steps'?"
    assert str(error) == "training: no such key. max_steps. Look again."


def test_a_list_has_and_before_its_last_name_and_counts_those_that_it_leaves_out():
    assert [listed("abc"[:length]) for length in range(4)] == ["", "a", "a and b", "a, b and c"]
    shortened = [listed(map(str, range(2000)), most) for most in (1, 2)]
    assert shortened == ["0 and 1,999 more", "0, 1 and 1,998 more"]
    assert listed("abc", 3) == "a, b and c"


@pytest.mark.parametrize(
    ("where", "expected"), [("", "a.yaml: wrong."), ("key", "a.yaml: key: wrong.")]
)
def test_an_error_in_a_file_begins_with_its_name(where, expected):
    with pytest.raises(SynmtError) as raised, naming(Path("a.yaml")):
        raise SynmtError("wrong", where=where)
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("name", "near"), [("EN", "en"), ("bleu", "BLEU"), ("Metor", "meteor"), ("xyz", None)]
)
def test_a_name_in_other_letters_is_near(name, near):
    assert did_you_mean(name, ["en", "BLEU", "meteor"]) == (
        f"Did you mean '{near}'?" if near else ""
    )


ADVICE = """
Make room | Leave out x | cannot write. Make room. Leave out x.
Room? | Leave out x | cannot write. Room? Leave out x.
 | Leave out x | cannot write. Leave out x.
Make room |  | cannot write. Make room.
 |  | cannot write.
Run `synmt` |  | cannot write. Run `synmt`
"""


@pytest.mark.parametrize("case", ADVICE.strip("\n").splitlines())
def test_advice_is_added_as_a_sentence(case):
    do, more, said = case.split(" | ")
    with pytest.raises(SynmtError) as caught, adding_advice(more):
        raise SynmtError("cannot write", do=do)
    assert str(caught.value) == said
