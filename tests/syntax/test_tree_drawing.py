"""Drawn trees are read back, from the text of a terminal and from SVG."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from each import of_seeds
from full_stop import with_full_stop
from notation import tree
from rich.cells import cell_len

from synmt.syntax.drawing import (
    TreeDrawing,
    draw_arcs,
    draw_svg,
    draw_tree,
)
from synmt.syntax.trees import random_tree

UP, DOWN, LEFT = "│┘┤┴┼", "│┐┤┬┼", "┐┘┤┬┴┼"
SVG = "{http://www.w3.org/2000/svg}"
MONKEY = with_full_stop()


def read_back(lines):
    """Follow every arrow to the only row without an arrow that its track connects to."""
    grid, parents = [line.ljust(max(map(len, lines))) for line in lines], []
    for word, line in enumerate(grid):
        if "<" not in line:
            assert line[0] == "*"
            parents.append(word)
            continue
        assert line.count("<") == 1
        column = line.index("<") + 1
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


DRAWN = """\
1 The    <┐    + det
2 monkey *┤    ~ nsubj of 3 eats
3 eats   <┘─┐  - root
4 a      ──<┤  - det of 5 banana
5 banana ──<┤  + obj
6 .      ──<┘    punct"""


def test_wrong_parents_are_named_and_reversed_arcs_are_marked():
    assert "\n".join(draw_tree(np.array([1, 1, 1, 2, 2, 2]), MONKEY)) == DRAWN
    nothing = tree([], [])
    assert draw_tree(nothing.parents, nothing) == []


def test_every_drawing_determines_its_tree():
    for seed in range(300):
        random = np.random.default_rng(seed)
        parents = random_tree(int(random.integers(1, 15)), random)
        assert read_back(draw_arcs(parents)) == parents.tolist(), seed


def projective_tree(words, random, first=0):
    """Sample a root, then trees of the words before and after it."""
    parents = [0] * words
    root = int(random.integers(words))
    parents[root] = first + root
    for low, high in ((0, root), (root + 1, words)):
        if low < high:
            inner = projective_tree(high - low, random, first + low)
            for word, parent in enumerate(inner, low):
                parents[word] = first + root if parent == first + word else parent
    return parents


def test_arcs_that_do_not_cross_are_drawn_without_a_crossing_and_fit_on_eighty_columns():
    words = [f"word{number:02}" for number in range(40)]
    for seed in range(60):
        parents = projective_tree(40, np.random.default_rng(seed))
        lines = draw_arcs(np.array(parents))
        assert read_back(lines) == parents
        for line in lines:
            # a line that crosses a track would contain a bare track
            assert "│" not in line[: max(map(line.rfind, "<┐┘┤┬┴┼"))].lstrip(" │"), lines
        gold = tree(parents, ["obl:agent"] * 40, words)
        assert max(map(cell_len, draw_tree(gold.parents, gold))) <= 80


def test_wide_letters_keep_the_columns_in_line():
    words = ["猿", "é", "e\u0301", "Donaudampfschifffahrt", "a\u2028b"]
    parse = tree([1, 1, 1, 1, 1], ["x"] * 5, words)
    lines = draw_tree(parse.parents, parse)
    assert len({cell_len(line.split("+")[0]) for line in lines}) == 1
    assert "a b " in lines[4]


def of_class(svg, name):
    return [element for element in svg.iter() if element.get("class") == name]


@of_seeds(20)
def test_the_tree_can_be_read_from_the_picture_and_everything_is_inside(random):
    words = int(random.integers(1, 25))
    gold, parents = (random_tree(words, random) for _ in range(2))
    names = [f"w{'x' * (n % 9)}" for n in range(words)]
    parse = tree(gold, ["nsubj"] * words, names)
    svg = ElementTree.fromstring(draw_svg([TreeDrawing("a <b>", parents, parse)]))
    assert next(svg.iter(SVG + "text")).text == "a <b>"
    width, height = float(svg.get("width")), float(svg.get("height"))
    for element in svg.iter(SVG + "text"):
        assert 0 < float(element.get("x")) < width
        assert 0 < float(element.get("y")) < height
    middles = np.array([float(element.get("x")) for element in of_class(svg, "word")])
    for (left, one), (right, other) in pairwise(zip(middles, names, strict=True)):
        assert right - left > 8 * (len(one) + len(other)) / 2
    read = []
    for path in (one for one in svg.iter(SVG + "path")):
        line = re.match(
            r"M(?P<start>[\d.]+) [\d.]+(V(?P<far>[\d.]+)H(?P<end>[\d.]+))?V", path.get("d")
        )
        far = float(line["far"] or 1)
        assert 0 < far < height
        child, parent = (
            int(abs(middles - float(x)).argmin())
            for x in (line["end"] or line["start"], line["start"])
        )
        assert path.get("class") == ("right" if gold[child] == parent else "wrong")
        read.append((child, parent))
    assert read == list(enumerate(parents.tolist()))


@pytest.mark.parametrize("odd", ["\x00", "\x1b", "\u2028", "\ufffe", "\ud800", "]]>", "&amp;"])
def test_odd_characters_leave_the_picture_readable(odd):
    parse = tree([1, 1], ["dep", "root"], [odd, "x"])
    text = draw_svg([TreeDrawing(odd, parse.parents, parse)])
    assert len(of_class(ElementTree.fromstring(text.encode("utf-8")), "word")) == 2
