"""Degenerate output: each kind by its definition."""

import pytest

from synmt.decode.translation import degenerate, has_loop


@pytest.mark.parametrize(
    ("source", "translation", "reason"),
    [
        ("A dog.", "Ein Hund.", None),
        ("A dog.", "", "empty"),
        ("A dog.", " \u2028 \x07", "empty"),
        ("A dog.", "Hund Hund Hund Hund", "loop"),
        ("A dog.", "Hund Hund Hund Katze Hund", None),
        ("very very very very big", "sehr sehr sehr sehr groß", None),
        ("A dog.", "Ja, a b c a b c a b c a b c nein", "loop"),
        ("A dog.", "a b c a b c a b c a b", None),
        ("A dog.", "犬犬犬犬犬犬犬犬", "loop"),
        ("A dog.", "犬だ犬だ犬だ犬だ犬だ犬だ犬だ", None),
        ("1000000000 dogs", "1000000000 Hunde", None),
        ("A black dog sees.", "a  black dog\tsees.", "copy"),
        ("A dog sees.", "A dog sees.", None),
        ("A black dog sees.", "A black dog saw.", None),
    ],
)
def test_each_kind_of_degenerate_output_follows_its_definition(source, translation, reason):
    assert degenerate(source, translation) == reason


def test_the_limit_is_reported_if_no_more_specific_reason_applies():
    assert degenerate("A dog.", "Ein Hund", at_limit=True) == "limit"
    assert degenerate("A dog.", "Hund Hund Hund Hund", at_limit=True) == "loop"
    assert degenerate("A dog sees it.", "A dog sees it.", at_limit=True) == "limit"


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_phrase_four_times_in_a_row_is_a_loop_at_any_place(size, before):
    head, phrase = [f"h{k}" for k in range(before)], [f"w{k}" for k in range(size)]
    assert has_loop(" ".join(head + phrase * 4 + ["end"]))
    assert not has_loop(" ".join(head + phrase * 3 + ["end"]))
