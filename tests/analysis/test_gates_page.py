"""The page and the figure of `synmt analyze --gates`."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from pages import HOSTILE, Reader, contrast

from synmt.analysis.gates.norms import GatedSentence, gated_words, tag_rows
from synmt.analysis.gates.page import DARK, DARK_TEXT, LIGHT, LIGHT_TEXT, levels, words_as_html
from synmt.analysis.gates.report import draw_gates
from synmt.reporting.figures import save_figure
from synmt.syntax.parse import Parse, flat_parse

pytestmark = pytest.mark.journey


def gated(target, norms, *, source="a source", line=1, parse=None):
    parse = parse or flat_parse(target)
    parse = replace(parse, tags=(["NOUN", "VERB"] * len(parse))[: len(parse)])
    return GatedSentence(line, source, target, parse, np.array(norms, dtype=float))


def page_of(*sentences, languages=("en", "de"), **options):
    return words_as_html(sentences, languages, **options)


def tabulate(sentences):
    return tag_rows(gated_words(sentences), gated_words(sentences, without="PUNCT"))


@pytest.mark.parametrize(("backgrounds", "texts"), [(LIGHT, LIGHT_TEXT), (DARK, DARK_TEXT)])
def test_text_contrasts_with_every_colour(backgrounds, texts):
    assert len(backgrounds) == len(texts) == 7
    assert min(contrast(*pair) for pair in zip(backgrounds, texts, strict=True)) >= 4.5


@pytest.mark.parametrize(("backgrounds", "screen"), [(LIGHT, "#ffffff"), (DARK, "#14171a")])
def test_colours_contrast_more_with_the_page_for_higher_norms(backgrounds, screen):
    found = [contrast(colour, screen) for colour in backgrounds]
    assert found == sorted(found)
    assert min(high / low for low, high in pairwise(found)) > 1.1


def test_colours_are_equal_steps_from_the_lowest_to_the_highest_norm():
    assert levels(np.array([0.2, 0.3, np.nan, 0.6, 0.59])) == [0, 1, None, 6, 6]
    assert levels(np.array([0.0, 0.5, 1.0])) == [0, 3, 6]
    # equal norms have the colour of the lowest
    assert levels(np.array([0.4, np.nan, 0.4])) == [0, None, 0]


def test_hostile_text_stays_text():
    sentence = gated(HOSTILE, [0.1] * len(HOSTILE.split()), source=HOSTILE)
    read = Reader(page_of(sentence, languages=('e"n><b>', "de")))
    assert {"script", "b"}.isdisjoint(read.tags)
    assert read.text["p", "source"] == [HOSTILE]
    assert read.text["p", "target"] == [HOSTILE]
    # hostile tags, too
    sentence = gated("ein Wort", [0.1, 0.2])
    sentence = replace(sentence, parse=replace(sentence.parse, tags=["<i>", '"><i>']))
    assert "i" not in Reader(page_of(sentence)).tags


@pytest.mark.parametrize(
    "target", ["Er  schläft .", " Hut, der", "猴子吃香蕉", "القرد يأكل 12 موزة"]
)
def test_the_text_of_a_target_is_unchanged_on_the_page(target):
    # words of two characters, with any character between them
    spans = np.array([[start, start + 2] for start in range(1, len(target) - 2, 3)])
    parse = Parse(
        [target[a:b] for a, b in spans], spans, np.zeros(len(spans), int), ["dep"] * len(spans)
    )
    read = Reader(page_of(gated(target, np.linspace(0.1, 0.9, len(spans)), parse=parse)))
    assert read.text["p", "target"] == [target]


def test_latin_tags_do_not_change_the_direction_of_a_line():
    read = Reader(page_of(gated("12 القرد", [0.1, 0.2], source="القرد")))
    lines = [
        attributes
        for tag, attributes in read.attributes
        if attributes.get("class") in ("source", "target")
    ]
    assert [line["dir"] for line in lines] == ["auto", "auto"]
    assert {attributes["dir"] for tag, attributes in read.attributes if tag == "small"} == {"ltr"}


def test_each_word_shows_its_norm_and_the_highest_is_framed():
    page = page_of(gated("der Affe schläft", [0.25, 0.75, np.nan]))
    read = Reader(page)
    assert [name for name in read.classes if "word" in name] == [
        "word n0",
        "word n6 top",
        "word none",
    ]
    assert (
        'title="verb, norm 0.750, the highest of the sentence">Affe<small dir="ltr" '
        'lang="en">VERB 0.750' in page
    )
    assert 'title="noun, no separate piece">schläft' in page
    assert "line 1, norms 0.250 to 0.750" in page


def test_the_page_has_the_first_sentences_in_order_and_their_number():
    sentences = [
        gated("", [], line=2),
        *(gated(f"Satz{line}", [0.5], line=line) for line in (3, 4, 5)),
    ]
    page = page_of(*sentences, shown=2)
    assert re.findall(r"line (\d)", page) == ["3", "4"]
    assert "The first 2 of 3 sentences, in the order of the test set." in page


def punctuated():
    """Make sentences with tags above chance, below chance, never the highest, and with few
    words."""
    made = [gated("Er schläft heute .", [0.3, 0.5, 0.1, 0.6], line=line) for line in range(12)]
    made = [
        replace(one, parse=replace(one.parse, tags=["PRON", "VERB", "ADV", "PUNCT"]))
        for one in made
    ]
    return [*made, gated("$oh$ weh", [0.9, 0.1], line=20)]


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_figure_is_drawn_in_each_format(tmp_path, ending, start):
    path = tmp_path / f"gates.{ending}"
    save_figure(lambda: draw_gates(tabulate(punctuated()), system="sa $1$"), path)
    assert path.read_bytes().startswith(start)


def test_the_figure_names_the_tags_the_shares_and_the_unit(tmp_path):
    for name in ("one.svg", "two.svg"):
        save_figure(lambda: draw_gates(tabulate(punctuated()), system="sa"), tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    # 13 sentences, 12 of them with one full stop in four words
    for wanted in (
        "PUNCT",
        "NOUN *",
        "92.3 (23.1)",
        "times as often as by chance",
        "without punctuation",
    ):
        assert wanted in text


def test_the_axis_of_the_figure_is_not_cut_off():
    figure = draw_gates(tabulate(punctuated()), system="sa")
    figure.draw_without_rendering()
    label = figure.axes[0].xaxis.label
    assert label.get_text().endswith("\n* fewer than 10 words")
    ends, width = label.get_window_extent(), figure.bbox.width
    assert 0 <= ends.x0 < ends.x1 <= width


def test_a_figure_without_punctuation_has_one_mark_for_each_tag(tmp_path):
    table = tabulate([gated("ein Wort", [0.1, 0.2])])
    save_figure(lambda: draw_gates(table, system="sa"), tmp_path / "one.svg")
    assert "without punctuation" not in (tmp_path / "one.svg").read_text(encoding="utf-8")
