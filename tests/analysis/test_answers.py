"""The sentences on top of reports."""

import pytest

from synmt.analysis.answers import differences_in_words, range_in_words
from synmt.reporting.values import Column, Interval, Table, text_column

COLUMNS = [
    text_column("length", name="group"),
    text_column("system"),
    Column("BLEU", name="value"),
    Column("difference", signed=True),
    Column("95 %", signed=True, name="interval"),
    Column("p", kind="p", name="holm_p"),
]
BASE = ["1-10", "plain", 30.25, None, None, None]
GAIN = ["1-10", "b", 32.5, 2.25, Interval(1.0, 3.5), 0.001]
LOSS = [">10", "b", 20.0, -1.5, Interval(-2.0, -1.0), 0.03]
NOTHING = ["all", "b", 35.0, 4.75, Interval(-0.5, 10.0), 0.0501]
THE = "the largest is "
OF_GAIN = "+2.25 BLEU (length 1-10, system b; 95 % interval +1.00 to +3.50)."


OF_LOSS = "-1.50 BLEU (length >10, system b; 95 % interval -2.00 to -1.00)."
OF_NONE = "+4.75 BLEU (length all, system b; 95 % interval -0.50 to +10.00)."
RANGE = "1.00 (length 9, system a) and 30.25 (length 1-10, system plain)."

ANSWERS = [
    ([BASE, GAIN, LOSS, NOTHING], f"2 of 3 differences from plain are significant; {THE}{OF_GAIN}"),
    ([BASE, LOSS, NOTHING], f"1 of 2 differences from plain is significant; {THE}{OF_LOSS}"),
    ([NOTHING, NOTHING], f"None of 2 differences from plain is significant; {THE}{OF_NONE}"),
    ([GAIN], f"The difference from plain is significant: {OF_GAIN}"),
    ([NOTHING], f"The difference from plain is not significant: {OF_NONE}"),
    ([BASE, ["length 9", "a", 1.0, *[None] * 3]], f"BLEU is between {RANGE}"),
]


@pytest.mark.parametrize(("rows", "expected"), ANSWERS)
def test_the_largest_significant_difference_is_said(rows, expected):
    table = Table(columns=COLUMNS, rows=rows)
    assert differences_in_words([table], "plain").lines == [expected]


def test_there_is_no_answer_without_values():
    for name in ("value", "parent"):
        assert not range_in_words(Table(columns=COLUMNS, rows=[[None] * 6]), name, "").lines
