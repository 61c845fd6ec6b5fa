"""Reports: what every format shows is what the values are, and programs read back the values."""

import csv
import io
import json
import re

from refusing import assert_refused

from synmt.reporting.formats import remarks, render
from synmt.reporting.values import (
    Column,
    Interval,
    Report,
    Table,
    TextBlock,
    Written,
    count_column,
    text_column,
)

COLUMNS = [
    text_column("length (words)"),
    count_column("sentences"),
    Column(title="share", kind="share", digits=1),
    text_column("system"),
    Column(title="difference", signed=True, about="from plain"),
    Column(title="95 % interval", signed=True),
    Column(title="p", kind="p"),
    Column(title="time", kind="seconds"),
    Column(title="memory", kind="bytes"),
]
ROWS = [
    ["1-10", 1234, 0.29, "plain", None, None, None, 1149.0, 2.5e8],
    ["1-10", 1234, 0.29, "a&b|c_d", -0.404, Interval(-1.2, 0.333), 0.0001, 7500.0, "not known"],
    [Written(">10", ">10 *"), 5, 0.01, "[x]\ty\nz", 0.25, None, 0.25, 9.0, 1e6],
]
TABLE = Table(title="by length", columns=COLUMNS, rows=ROWS, shared=3, notes=["*: few sentences"])
REPORT = Report(
    title="two systems", parts=[TABLE, TextBlock(lines=["a <b>", "c"]), TABLE], notes=["BLEU|v:2"]
)


def shown(kind, report=REPORT, **options):
    return render({"a": report}, kind, **options)


def test_text_is_aligned_and_says_each_explanation_once():
    lines = shown("text").splitlines()
    table = lines[lines.index("by length") :]
    assert [line.split("  ")[0] for line in table[1:4]] == ["length (words)", "1-10", ""]
    assert table[3].endswith("-0.40  -1.20 to +0.33  <0.001   2 h 05 min  not known")
    assert ">10 *" in table[4]
    assert "29.0%" in table[2]
    assert "19 min 09 s" in table[2]
    assert lines.count("difference: from plain") == lines.count("*: few sentences") == 1
    assert lines[0] == "two systems"
    assert lines[-1] == "BLEU|v:2"


def test_text_fits_a_terminal_and_sends_it_no_control_characters():
    rows = [["a" * 12 + " " + "b" * 18, 0.5], ["\x1b[2J", 1.0]]
    table = Table(
        columns=[text_column("name"), Column(title="some long title")], rows=rows, notes=["\x1b[1m"]
    )
    lines = shown("text", Report(title="\x1b", parts=[table]), width=30).splitlines()
    assert max(map(len, lines)) <= 30
    assert "\x1b" not in "".join(lines)
    assert "\\x1b[2J" in "".join(lines)


def test_tsv_gives_programs_the_values():
    header, *rows = csv.reader(io.StringIO(shown("tsv").split("\n\n")[0]), delimiter="\t")
    assert header[4:7] == ["difference", "95 % interval, low", "95 % interval, high"]
    assert header[-2:] == ["time (s)", "memory (bytes)"]
    values = "1-10 1234 0.29 a&b|c_d -0.404 -1.2 0.333 0.0001 7500"
    assert rows[1] == [*values.split(), "not known"]
    assert rows[2][:5] == [">10", "5", "0.01", "[x] y z", "0.25"]
    assert remarks({"a": REPORT})[:3] == ["two systems", "by length", "difference: from plain"]


def test_json_has_an_object_for_each_row():
    values = json.loads(shown("json"))
    assert values["title"] == "two systems"
    [first, second] = values["tables"]
    assert first == second
    assert first["rows"][1]["95 % interval"] == [-1.2, 0.333]
    assert first["rows"][2]["length (words)"] == ">10"
    assert first["rows"][0]["difference"] is None
    assert json.loads(render({"a": REPORT, "b": REPORT}, "json")).keys() == {"a", "b"}


def test_markdown_has_the_cells_of_the_table():
    lines = [line for line in shown("markdown").splitlines() if line.startswith("|")][:5]
    cells = [
        [cell.strip().replace("\\", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    ]
    assert cells[0] == [column.title for column in COLUMNS]
    assert cells[3][:5] == ["", "", "", "a&b|c_d", "-0.40"]
    assert cells[4][3] == "[x] y z"
    assert [kind[-1] for kind in cells[1]][:4] == ["-", ":", ":", "-"]


def test_latex_escapes_all_signs_and_breaks_sentences_into_lines():
    text = shown("latex")
    assert r"a\&b\textbar{}c\_d" in text
    assert "$-$0.40" in text
    assert r"29.0\%" in text
    assert "% *: few sentences" in text
    assert not re.search(r"^\s*[\[*]", text, flags=re.MULTILINE)
    long = Table(columns=[text_column("a"), text_column("b")], rows=[["x", "word " * 20]])
    assert r"\begin{tabular}{lp{5cm}}" in shown("latex", Report(title="", parts=[long]))


def test_a_page_and_a_notebook_show_the_same_cells(tmp_path):
    REPORT.save(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    for part in (
        ">+0.25</td>",
        ">-1.20 to +0.33</td>",
        "a&amp;b|c_d",
        "a &lt;b&gt;",
        "BLEU|v:2",
    ):
        assert part in page
        assert part in REPORT._repr_html_()
    assert str(TABLE).splitlines()[0] == "by length"
    assert_refused("not an HTML file name", REPORT.save, tmp_path / "x.txt")


def test_columns_without_values_are_left_out():
    table = Table(columns=COLUMNS[:3], rows=[["a", None, 0.5]], shared=2).without_empty_columns()
    assert [column.title for column in table.columns] == ["length (words)", "share"]
    assert table.shared == 1


def test_people_may_see_a_value_written_otherwise_and_a_page_may_show_something_else():
    columns, row = [text_column("a"), text_column("b")], ["x", Written("plain", "[plain]")]
    table = Table(
        title="t",
        columns=columns,
        rows=[row],
        on_page=lambda: TextBlock(html="<i>card</i>"),
    )
    report = Report(title="r", parts=[table], facts={"a": 1}, late_facts=lambda: {"b": 2})
    assert "[plain]" in shown("text", report)
    assert "x\tplain\n" in shown("tsv", report)
    values = json.loads(shown("json", report))
    assert (values["a"], values["b"], values["tables"][0]["rows"][0]["b"]) == (1, 2, "plain")
    page = shown("html", report)
    assert ("<h2>t</h2>" in page, "<i>card</i>" in page, "plain" in page) == (True, True, False)
