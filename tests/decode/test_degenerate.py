"""Degenerate output: each kind by its definition."""

import pytest

from synmt.decode.records import TranslationSummary, too_long
from synmt.decode.translation import Translation, degenerate, has_loop


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


def test_one_and_several_are_said_as_a_person_says_them(show_remarks, caplog):
    assert too_long("line 3", 40, 1, "not scored").endswith("so the last one is not scored")
    assert too_long("line 3", 40, 2, "not scored").endswith(
        "has 42 pieces; the model takes 40 (filters.max_pieces), so the last 2 are not scored"
    )
    for lines, said in (
        ([5], "1 empty, of 1 line (line 5)"),
        ([5, 7], "2 empty, of 2 lines (lines 5, 7)"),
    ):
        summary = TranslationSummary(40)
        for line in lines:
            summary.add(Translation(line, unknown=("x",), degenerate="empty"))
        summary.log()
        assert f"degenerate translations: {said}" in caplog.messages
    assert [message.partition(" not")[0] for message in caplog.messages if "<unk>" in message] == [
        "1 piece is",
        "2 pieces are",
    ]
