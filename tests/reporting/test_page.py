"""The page of `synmt analyze --html`."""

import base64
import re

import pytest
from pages import HOSTILE, Reader, contrast

from synmt.errors import UsageError
from synmt.reporting.page import (
    Section,
    check_page,
    code,
    figure,
    make_page,
    paragraph,
    picture,
    table,
)

SECTIONS = [
    Section("Words", paragraph("Some words."), ".words { color: red; }\n"),
    Section("Trees", paragraph("Trees.")),
]


def test_the_page_is_well_formed_and_self_contained():
    body = table(["word", "score"], [["Affe", "0.5"]], caption="Scores") + picture(
        "<svg></svg>", caption="A tree"
    )
    page = make_page("sa", [Section("Words", body), *SECTIONS])
    read = Reader(page)
    assert page.startswith("<!doctype html>")
    assert {"script", "link", "iframe"}.isdisjoint(read.tags)
    assert not {name for _, attributes in read.attributes for name in attributes} & {
        "onclick",
        "onload",
    }
    assert not re.search(r"https?:|url\(|@import", page)
    assert all(given["src"].startswith("data:") for tag, given in read.attributes if tag == "img")
    assert (
        "meta",
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    ) in read.attributes
    assert "prefers-color-scheme: dark" in page


def test_several_parts_have_a_list_of_contents_that_leads_to_them():
    read = Reader(make_page("sa", SECTIONS))
    links = [attributes["href"] for tag, attributes in read.attributes if tag == "a"]
    assert links == ["#part-1", "#part-2"]
    assert [attributes["id"] for tag, attributes in read.attributes if tag == "section"] == [
        "part-1",
        "part-2",
    ]
    assert "nav" not in Reader(make_page("sa", SECTIONS[:1])).tags
    # a style that two parts need comes once
    assert make_page("sa", [SECTIONS[0], SECTIONS[0]]).count(".words { color: red; }") == 1


def test_hostile_text_stays_text():
    body = paragraph(HOSTILE) + table([HOSTILE, HOSTILE], [[HOSTILE, HOSTILE]], caption=HOSTILE)
    read = Reader(
        make_page(HOSTILE, [Section(HOSTILE, body + picture("<svg></svg>", caption=HOSTILE))])
    )
    assert {"script", "b"}.isdisjoint(read.tags)
    for place in ("title", "h1", "h2", "p", "td", "caption", "figcaption"):
        assert read.text[place, ""] == [HOSTILE]
    assert [given["alt"] for tag, given in read.attributes if tag == "img"] == [HOSTILE]


@pytest.mark.journey
def test_a_figure_is_the_picture_that_was_drawn():
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(2, 1))
    drawn.subplots().set_title("Affe")
    [source] = [
        given["src"]
        for tag, given in Reader(figure(lambda: drawn, caption="one")).attributes
        if tag == "img"
    ]
    assert "Affe" in base64.b64decode(source.partition(",")[2]).decode()


@pytest.mark.parametrize("screen", [0, 1])
def test_text_can_be_read_on_light_and_dark_screens(screen):
    page = make_page("sa", SECTIONS)
    colours = {
        name: re.findall(rf"--{name}: (#\w{{6}})", page)[screen]
        for name in ("ink", "faint", "link", "paper")
    }
    assert (
        min(contrast(colours[name], colours["paper"]) for name in ("ink", "faint", "link")) >= 4.5
    )


@pytest.mark.parametrize("name", ["out.txt", "out", "html"])
def test_a_page_has_the_ending_of_a_page(tmp_path, name):
    check_page(tmp_path / "out.HTML")
    with pytest.raises(UsageError, match=r"not an HTML file name. Endings: \.html, \.htm"):
        check_page(tmp_path / name)


@pytest.mark.journey
def test_a_chart_becomes_smaller_with_the_screen_until_it_scrolls_and_a_tree_does_not():
    from matplotlib.figure import Figure

    def images(html):
        return [given for tag, given in Reader(html).attributes if tag == "img"]

    # 4 inches are 288 points
    [chart] = images(figure(lambda: Figure(figsize=(4, 1)), caption="one"))
    assert (chart["class"], chart["style"]) == ("chart", "min-width: 173pt")
    [heat_map] = images(figure(lambda: Figure(figsize=(4, 1)), caption="one", shrinks=False))
    [tree] = images(picture('<svg width="288.0pt"></svg>', caption="one"))
    assert "class" not in heat_map | tree


def test_a_caption_is_no_wider_than_the_screen_whatever_its_table_is():
    # a table that is wider scrolls, and would take its caption along
    [style] = re.findall(r"\ncaption \{([^}]*)\}", make_page("sa", SECTIONS))
    for rule in (
        "white-space: normal",
        "position: sticky",
        "left: 0",
        "max-width: min(calc(100vw - 2rem), 54rem)",
    ):
        assert rule in style


def test_text_around_the_sections_is_optional():
    read = Reader(
        make_page("sa", SECTIONS, about=paragraph("A run."), made_by=code("synmt analyze > x"))
    )
    assert read.text["p", ""][0] == "A run."
    assert read.text["footer", ""] == ["\nsynmt analyze > x\n"]
    assert "footer" not in Reader(make_page("sa", SECTIONS)).tags


def test_the_columns_of_a_table_of_words_stay_wide_enough_to_read_on_a_telephone():
    style = make_page("sa", SECTIONS)
    assert ".facts th, .facts td { min-width: 7.5rem; overflow-wrap: break-word; }" in style
