"""Tables for other programs: what they read back is what the table says."""

import csv
import io
import re

import pytest

from synmt.analysis.report import TextTable
from synmt.cli import console
from synmt.evaluation.table_formats import number_columns, table_as, without_repeats

COLUMNS = ["source_length (words)", "system", "Δ BLEU"]
ROWS = [["1-10", "plain", ""], ["1-10", "a&b|c", "-0.50"], [">10 *", "plain", ""], [">10 *", "a\tb\nc", "+1.2 %"]]


def test_tsv_repeats_shared_cells_and_has_no_tabs_inside_them():
    made = table_as("tsv", COLUMNS, ROWS, shared=1)
    read = list(csv.reader(io.StringIO(made), delimiter="\t"))
    assert read == [COLUMNS, *ROWS[:3], [">10 *", "a b c", "+1.2 %"]]


def test_tsv_has_numbers_as_programs_read_them():
    columns = {
        # the first column names the rows
        "a": ["1,000", "1 to 5", "-"],
        "b": ["1,234", "−5", "-"],
        "c": ["29.2%", "5 %", "100.0%"],
        "d": ["+1.18 to +4.99", "", "-1 to +0.5"],
        "e": ["[1,200, 1,300.5]", "-", "[1, 2]"],
        "f": ["0.90–1.30", "–", ""],
        "g": ["87.5 (84.8 to 90.1)", "3.0", "-"],
        "h": ["<0.001", "0.5", "1,500"],
        "i": ["3 min 2 s", "not reached", "1,500"],
        "j": ["1.5%", "2", "1e-5"],
        "k": ["", "-", "-"],
    }
    made = table_as("tsv", list(columns), list(zip(*columns.values(), strict=True)))
    header, *rows = csv.reader(io.StringIO(made), delimiter="\t")
    assert dict(zip(header, map(list, zip(*rows, strict=True)), strict=True)) == {
        "a": ["1,000", "1 to 5", "-"],
        "b": ["1234", "-5", ""],
        "c (%)": ["29.2", "5", "100.0"],
        "d, low": ["+1.18", "", "-1"],
        "d, high": ["+4.99", "", "+0.5"],
        "e, low": ["1200", "", "1"],
        "e, high": ["1300.5", "", "2"],
        "f, low": ["0.90", "", ""],
        "f, high": ["1.30", "", ""],
        "g": ["87.5", "3.0", ""],
        "g, low": ["84.8", "", ""],
        "g, high": ["90.1", "", ""],
        "h": ["<0.001", "0.5", "1500"],
        "i": ["3 min 2 s", "not reached", "1500"],
        "j": ["1.5%", "2", "1e-5"],
        "k": ["", "-", "-"],
    }


def test_a_column_of_sentences_is_broken_into_lines_in_latex():
    for text in ("y " * 30, "5 " * 30):
        made = table_as("latex", ["a", "b", "c"], [["x", text, "1"]])
        assert made.splitlines()[0] == r"\begin{tabular}{lp{5cm}r}"


def test_latex_has_rules_of_booktabs_and_escapes_every_sign():
    lines = table_as("latex", COLUMNS, ROWS, shared=1).splitlines()
    assert lines == [
        r"\begin{tabular}{llr}",
        r"\toprule",
        r"source\_length (words) & system & $\Delta$ BLEU \\",
        r"\midrule",
        r"1-10 & plain &  \\",
        r" & a\&b\textbar{}c & $-$0.50 \\",
        r"\addlinespace",
        r"$>$10 * & plain &  \\",
        r" & a b c & +1.2 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    # what is escaped is not escaped again
    assert r"\textbackslash{}\{\}\textasciitilde{}" in table_as("latex", ["x"], [["\\{}~"]])


@pytest.mark.parametrize("first", ["[UNK] x", "*"])
def test_a_row_of_latex_is_no_argument_of_the_line_before(first):
    # `\\\\`, `\\midrule` and `\\addlinespace` look for a star or a bracket after them, also in the next line
    *_, head, _, row, _, _ = table_as("latex", [first, "a"], [[first, "1"]]).splitlines()
    assert [head, row] == [f"{{{first[0]}}}{first[1:]} & {last} \\\\" for last in ("a", "1")]


def test_each_cell_of_markdown_comes_back():
    made = table_as("markdown", COLUMNS, ROWS, shared=1).splitlines()
    assert made[1] == "| --- | --- | ---: |"
    cells = [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in made]
    assert cells[0] == COLUMNS
    assert cells[2:] == [["1-10", "plain", ""], ["", "a&b|c", "-0.50"], [">10 *", "plain", ""], ["", "a b c", "+1.2 %"]]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1", "-2.5", "", "-"], True),
        (["12.5 (1 to 3)", ">10", "<0.001", "$-$3"], True),
        (["[12.0, 13.0]", "(1.5)"], True),
        (["", ""], True),
        (["plain", "pascal-seed2"], False),
        (["not reached", "1,500"], True),
        (["to do", "3 files", "done"], False),
    ],
)
def test_a_column_with_numbers_is_told_from_one_with_text(cells, numbers):
    rows = [["1", cell] for cell in cells]
    assert number_columns(rows, 2) == [False, numbers]


def test_only_equal_neighbours_share_cells():
    rows = [["a", "1", "x"], ["a", "2", "x"], ["b", "2", "x"], ["b", "2", "y"], ["a", "1", "x"]]
    assert without_repeats(rows, 2) == [*rows[:3], ["", "", "y"], rows[4]]
    assert without_repeats(rows, 0) == rows


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", "title\n\na  b\n1  2\n   3\nlegend\nc\n4\n"),
        ("tsv", "a\tb\n1\t2\n1\t3\n\nc\n4\n"),
        ("latex", "% title\n"),
        ("markdown", "title\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n|  | 3 |\n\nlegend\n\n| c |\n| --- |\n| 4 |\n\n"),
    ],
)
def test_lines_and_tables_are_printed_in_each_format(capsys, caplog, kind, expected):
    caplog.set_level("INFO", logger="synmt")
    first, second = TextTable(["a", "b"], [["1", "2"], ["1", "3"]], shared=1), TextTable(["c"], [["4"]])
    console.print_parts(["title", "", first, "legend", second], kind)
    printed = capsys.readouterr().out
    assert printed.startswith(expected)
    assert caplog.messages == (["title", "legend"] if kind == "tsv" else [])
    if kind == "latex":
        assert printed.count(r"\begin{tabular}") == 2
        assert printed.index("% legend") > printed.index(r"\end{tabular}")
