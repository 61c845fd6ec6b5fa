"""Drawn trees are read back, from the text of a terminal and from SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from small import MONKEY
from test_attachment import with_full_stop

from synmt.analysis.trees.drawing import display_width, draw_arcs, draw_tree
from synmt.analysis.trees.svg import TreeDrawing, draw_svg
from synmt.syntax.parse import Parse
from synmt.syntax.trees import random_tree

UP, DOWN, LEFT, RIGHT = "│┘┤┴┼", "│┐┤┬┼", "┐┘┤┬┴┼", "┬┴┼"
SVG = "{http://www.w3.org/2000/svg}"


def read_back(lines):
    """Follow every arrow to the only row without an arrow that its track connects to."""
    wide = max(map(len, lines))
    grid = [line.ljust(wide) for line in lines]
    parents = []
    for word, line in enumerate(grid):
        if "<" not in line:
            assert line[0] == "*"
            parents.append(word)
            continue
        (column,) = (place + 1 for place, letter in enumerate(line) if letter == "<")
        met = [place for place in [word, *along(grid, column, word)] if grid[place][column] in LEFT]
        (parent,) = (place for place in met if grid[place][column - 1] != "<")
        parents.append(parent)
    return parents


def along(grid, column, row):
    """Yield the rows that a track connects with this one."""
    for step, here, there in ((-1, UP, DOWN), (1, DOWN, UP)):
        place = row
        while grid[place][column] in here:
            place += step
            assert grid[place][column] in there
            yield place


def test_the_monkey_and_a_tree_of_one_word_look_like_this():
    assert draw_tree(MONKEY.parents, MONKEY) == [
        "1 The    <┐    + det",
        "2 monkey ─┴<┐  + nsubj",
        "3 eats   *──┤  + root",
        "4 a      <┐ │  + det",
        "5 banana ─┴<┘  + obj",
    ]
    one = Parse(["Yes"], np.zeros((1, 2), int), np.zeros(1, int), ["root"])
    assert draw_tree(one.parents, one) == ["1 Yes *  + root"]
    assert draw_tree(np.zeros(0, int), Parse([], np.zeros((0, 2), int), np.zeros(0, int), [])) == []


def test_wrong_parents_are_named_and_reversed_arcs_are_marked():
    parse = with_full_stop(MONKEY)
    lines = draw_tree(np.array([1, 1, 1, 2, 2, 2]), parse)
    remarks = [re.search(r"[-+~ ] [a-z]+( of .*)?$", line)[0] for line in lines]
    assert remarks == [
        "+ det",
        "~ nsubj of 3 eats",
        "- root",
        "- det of 5 banana",
        "+ obj",
        "  punct",
    ]


def test_every_drawing_determines_its_tree():
    for seed in range(300):
        random = np.random.default_rng(seed)
        parents = random_tree(int(random.integers(1, 15)), random)
        assert read_back(draw_arcs(parents)) == parents.tolist(), seed


def test_arcs_that_do_not_cross_are_drawn_without_a_crossing():
    for seed in range(200):
        parents = projective_tree(12, np.random.default_rng(seed))
        lines = draw_arcs(np.array(parents))
        assert read_back(lines) == parents
        for line in lines:
            # a line that crosses a track would contain a bare track
            assert "│" not in line[: max(map(line.rfind, "<┐┘┤┬┴┼"))].lstrip(" │"), lines


def projective_tree(words, random, first=0):
    """Sample a root, then trees of the words before and after it."""
    parents = [0] * words
    root = int(random.integers(words))
    parents[root] = first + root
    for low, high in ((0, root), (root + 1, words)):
        if low < high:
            inner = projective_tree(high - low, random, first + low)
            parents[low:high] = [
                first + root if parent == word else parent
                for word, parent in enumerate(inner, first + low)
            ]
    return parents


def test_a_tree_of_a_long_sentence_fits_on_eighty_columns():
    words = [f"word{number:02}" for number in range(40)]
    for seed in range(20):
        parents = np.array(projective_tree(40, np.random.default_rng(seed)))
        gold = Parse(words, np.zeros((40, 2), int), parents, ["obl:agent"] * 40)
        assert max(map(display_width, draw_tree(parents, gold))) <= 80


def test_wide_letters_and_long_words_keep_the_columns_in_line():
    words = ["猿", "é", "e\u0301", "Donaudampfschifffahrt", "a\u2028b"]
    parse = Parse(words, np.zeros((5, 2), int), np.array([1, 1, 1, 1, 1]), ["x"] * 5)
    lines = draw_tree(parse.parents, parse)
    assert len({display_width(line.split("+")[0]) for line in lines}) == 1
    assert "Donaudampfschif… " in lines[3]
    assert "a b " in lines[4]


def drawn(*parents):
    parse = with_full_stop(MONKEY)
    return ElementTree.fromstring(
        draw_svg([TreeDrawing("sentence 1", np.array(parents), parse)], "a & b <c>")
    )


def of_class(svg, tag, name):
    return [element for element in svg.iter(SVG + tag) if element.get("class") == name]


def test_the_picture_has_an_arc_for_each_word_above_and_below():
    svg = drawn(1, 1, 1, 2, 2, 0)
    assert [len(of_class(svg, "path", name)) for name in ("right", "wrong", "gold")] == [2, 3, 7]
    assert [element.text for element in of_class(svg, "text", "word")] == [
        "The",
        "monkey",
        "eats",
        "a",
        "banana",
        ".",
    ]
    relations = {element.text for element in of_class(svg, "text", "label")}
    assert relations == {"det", "nsubj", "root", "obj", "punct"}
    assert of_class(svg, "text", "title")[0].text == "a & b <c>"


def test_arcs_end_in_an_arrow_at_the_child():
    svg = drawn(*with_full_stop(MONKEY).parents)
    words = {element.text: float(element.get("x")) for element in of_class(svg, "text", "word")}
    ends = []
    for path in of_class(svg, "path", "right"):
        tip = float(re.search(r"L([\d.]+) [\d.]+L[\d.]+ [\d.]+$", path.get("d"))[1])
        ends.append(min(words, key=lambda word: abs(words[word] - tip)))
    assert sorted(ends) == sorted(["The", "monkey", "eats", "a", "banana"])


def test_everything_is_inside_the_picture_and_words_do_not_touch():
    for seed in range(20):
        random = np.random.default_rng(seed)
        words = int(random.integers(1, 25))
        gold = Parse(
            [f"w{'x' * (n % 9)}" for n in range(words)],
            np.zeros((words, 2), int),
            *labelled(words, random),
        )
        svg = ElementTree.fromstring(
            draw_svg([TreeDrawing("one", random_tree(words, random), gold)] * 2, "all")
        )
        width, height = float(svg.get("width")), float(svg.get("height"))
        for element in svg.iter(SVG + "text"):
            assert 0 < float(element.get("x")) < width
            assert 0 < float(element.get("y")) < height
        for path in svg.iter(SVG + "path"):
            along_x = [float(found) for found in re.findall(r"[MLQH]([-\d.]+)", path.get("d"))]
            along_y = [float(found) for found in re.findall(r"V([-\d.]+)", path.get("d"))]
            assert 0 < min(along_x) <= max(along_x) < width
            assert 0 < min(along_y) <= max(along_y) < height
        places = [(float(e.get("x")), len(e.text)) for e in of_class(svg, "text", "word")][:words]
        for (left, one), (right, other) in pairwise(places):
            assert right - left > 8 * (one + other) / 2


def labelled(words, random):
    parents = random_tree(words, random)
    return parents, [
        "nsubj:pass" if parent != word else "root" for word, parent in enumerate(parents)
    ]


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\u2028", "\ufffe", "\ud800", "]]>", "&amp;"])
def test_odd_characters_leave_the_picture_readable(odd):
    parse = Parse([odd, "x"], np.zeros((2, 2), int), np.array([1, 1]), ["dep", "root"])
    text = draw_svg([TreeDrawing(odd, parse.parents, parse)], odd)
    assert ElementTree.fromstring(text.encode("utf-8")) is not None


def test_the_picture_is_deterministic_and_has_dark_colours():
    parse = with_full_stop(MONKEY)
    first, second = (draw_svg([TreeDrawing("one", parse.parents, parse)], "all") for _ in range(2))
    assert first == second
    assert "prefers-color-scheme: dark" in first
