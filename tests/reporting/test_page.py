"""The page of `synmt analyze --html`."""

import base64
import re
from pathlib import Path

import pytest
from pages import HOSTILE, Reader, contrast
from refusing import assert_refused

from synmt.reporting.page import check_page, fragment, page_of, picture
from synmt.reporting.values import Figure, Report, Table, TextBlock, text_column

WORDS = TextBlock(title="Words", lines=["Some words."], style=".words { color: red; }\n")
REPORT = Report(title="sa", parts=[WORDS, TextBlock(title="Trees", lines=["Trees."])])


def hostile_table():
    return Table(title="", columns=[text_column(HOSTILE)] * 2, rows=[[HOSTILE] * 2])


def attributes_of(tag, html):
    return [given for name, given in Reader(html).attributes if name == tag]


def test_the_page_is_well_formed_and_self_contained():
    parts = [
        *REPORT.parts,
        hostile_table(),
        TextBlock(html=picture("<svg></svg>", caption="A tree")),
    ]
    page = page_of([Report(title="sa", parts=parts)])
    read = Reader(page)
    assert page.startswith("<!doctype html>")
    assert {"script", "link", "iframe"}.isdisjoint(read.tags)
    assert not [name for _, given in read.attributes for name in given if name.startswith("on")]
    assert not re.search(r"https?:|url\(|@import", page)
    assert all(given["src"].startswith("data:") for given in attributes_of("img", page))
    viewport = {"name": "viewport", "content": "width=device-width, initial-scale=1"}
    assert viewport in attributes_of("meta", page)


def test_several_parts_have_a_list_of_contents_that_leads_to_them():
    page = page_of([REPORT])
    assert [given["href"] for given in attributes_of("a", page)] == ["#part-1", "#part-2"]
    assert [given["id"] for given in attributes_of("section", page)] == ["part-1", "part-2"]
    assert "nav" not in Reader(page_of([Report(title="sa", parts=[WORDS])])).tags
    # a style that two parts need comes once
    assert page_of([REPORT, REPORT]).count(WORDS.style) == 1


def test_a_title_is_said_once_and_the_answer_stands_above_the_contents():
    parts = [TextBlock(lines=["The answer."]), *REPORT.parts]
    read = Reader(page_of([Report(title="sa", parts=parts)]))
    assert (read.text["h1", ""], read.text["h2", ""]) == (["sa"], ["Words", "Trees"])
    assert "".join(read.text["main", ""]).split()[:4] == ["sa", "The", "answer.", "WordsTrees"]
    both = Reader(page_of([REPORT, Report(title="pascal", parts=parts, runs=[Path("runs/b")])]))
    assert both.text["h1", ""] == ["Analyses of b"]
    assert both.text["h2", ""] == ["Words", "Trees", "pascal", "Words", "Trees"]


def test_a_section_begins_with_each_title_and_what_comes_before_has_that_of_the_report():
    parts = [TextBlock(lines=["a"]), WORDS, TextBlock(lines=["b"])]
    assert re.findall("<h3>.*</h3>|<p.*</p>", fragment(Report(title="sa", parts=parts))) == [
        *("<h3>sa</h3>", "<p>a</p>"),
        *("<h3>Words</h3>", "<p>Some words.</p>", "<p>b</p>"),
    ]
    [alone] = re.findall("<h3>.*", fragment(Report(title="sa", parts=[], notes=["a note"])))
    assert alone == "<h3>sa</h3>"


def test_hostile_text_stays_text():
    parts = [TextBlock(title=HOSTILE * 2, lines=[HOSTILE]), hostile_table()]
    parts.append(TextBlock(html=picture("<svg></svg>", caption=HOSTILE)))
    page = page_of([Report(title=HOSTILE, parts=parts)], command=HOSTILE)
    read = Reader(page)
    assert {"script", "b"}.isdisjoint(read.tags)
    for place in ("title", "h1", "figcaption", "code"):
        assert read.text[place, ""] == [HOSTILE]
    assert (read.text["h2", ""], read.text["td", "text"]) == ([HOSTILE * 2], [HOSTILE])
    assert [given["alt"] for given in attributes_of("img", page)] == [HOSTILE]


@pytest.mark.parametrize("screen", [0, 1])
def test_text_can_be_read_on_light_and_dark_screens(screen):
    page = page_of([REPORT])
    ink, faint, link, paper = (
        re.findall(rf"--{name}: (#\w{{6}})", page)[screen]
        for name in ("ink", "faint", "link", "paper")
    )
    assert min(contrast(one, paper) for one in (ink, faint, link)) >= 4.5


@pytest.mark.parametrize("name", ["out.txt", "out", "html"])
def test_a_page_has_the_ending_of_a_page(tmp_path, name):
    check_page(tmp_path / "out.HTML")
    assert_refused(r"not an HTML file name. Endings: \.html, \.htm", check_page, tmp_path / name)


@pytest.mark.journey
def test_a_chart_is_the_picture_that_was_drawn_and_shrinks_but_no_tree_does():
    from matplotlib.figure import Figure as Drawing

    def draw():
        drawn = Drawing()
        drawn.subplots().set_title("Affe")
        return drawn

    [chart] = attributes_of("img", fragment(Figure(draw=draw, caption="one")))
    assert "Affe" in base64.b64decode(chart["src"].partition(",")[2]).decode()
    [tree] = attributes_of("img", picture("<svg></svg>", caption="one"))
    assert (chart["class"], "class" in tree) == ("chart", False)


def test_recipes_and_the_command_stand_below_the_sections():
    read = Reader(page_of([REPORT], recipes={"<b>": "a: </pre>"}, command="synmt analyze > x"))
    assert read.text["summary", ""] == ["Recipe of <b>"]
    assert read.text["pre", ""] == ["a: </pre>", "synmt analyze > x"]
    assert read.text["code", ""] == ["synmt analyze > x"]
    assert "footer" not in Reader(page_of([REPORT])).tags
