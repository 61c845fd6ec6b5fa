"""Degenerate output: each kind by its definition."""

import pytest

from synmt.decode.records import summarized
from synmt.decode.translation import Translation, degenerate, has_loop

OUTPUTS = """
A dog. | Ein Hund. | none limit
A dog. | | empty empty
A dog. | \u2028 \x07 | empty empty
A dog. | Hund Hund Hund Hund | loop loop
A dog. | Hund Hund Hund Katze Hund | none limit
very very very very big | sehr sehr sehr sehr groß | none limit
A dog. | Ja, a b c a b c a b c a b c nein | loop loop
A dog. | a b c a b c a b c a b | none limit
A dog. | 犬犬犬犬犬犬犬犬 | loop loop
A dog. | 犬だ犬だ犬だ犬だ犬だ犬だ犬だ | none limit
1000000000 dogs | 1000000000 Hunde | none limit
A black dog sees. | a  black dog\tsees. | copy limit
A dog sees. | A dog sees. | none limit
A black dog sees. | A black dog saw. | none limit
"""


@pytest.mark.parametrize("line", OUTPUTS.strip().split("\n"))
def test_each_kind_of_degenerate_output_follows_its_definition(line):
    source, translation, expected = line.split("| ")
    found = [degenerate(source, translation, at_limit=limit) or "none" for limit in (False, True)]
    assert found == expected.split()


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_phrase_four_times_in_a_row_is_a_loop_at_any_place(size, before):
    head, phrase = [f"h{k}" for k in range(before)], [f"w{k}" for k in range(size)]
    assert has_loop(" ".join(head + phrase * 4 + ["end"]))
    assert not has_loop(" ".join(head + phrase * 3 + ["end"]))


def test_a_summary_counts_degenerate_translations_and_unknown_pieces(show_remarks, caplog):
    reasons = ("empty", "loop", "empty", None)
    windows = [([], [Translation(1, unknown=1, degenerate=one)]) for one in reasons]
    assert list(summarized(windows)) == windows
    assert "degenerate translations: 2 empty, 1 loop, of 4 line(s)" in caplog.messages
    assert any("<unk>" in message for message in caplog.messages)
