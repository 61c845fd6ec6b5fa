"""Figures keep all of their text inside of their edges, with long names and with a few groups or words."""

from __future__ import annotations

import numpy as np
import pytest
from fitting import cut_off, overlapping

from synmt.analysis.attention.figures import draw_agreement, draw_maps
from synmt.analysis.attention.heads import AttentionMap, Head
from synmt.analysis.groups.group_score import Gain, GroupScore
from synmt.analysis.groups.grouping import Grouping
from synmt.analysis.groups.plot import draw_groups
from synmt.analysis.groups.scores import GroupRow, GroupTable
from synmt.analysis.robustness.conditions import Condition, Outcome
from synmt.analysis.robustness.report import draw_robustness
from synmt.analysis.words.counts import WordCounts, WordGroups
from synmt.analysis.words.plot import draw_words
from synmt.analysis.words.table import tabulate_words
from synmt.evaluation.metrics import make_metric
from synmt.evaluation.significance import Comparison
from synmt.reporting.figures import STYLE

pytestmark = pytest.mark.journey

LONG = "a-system-with-a-name-of-many-words-such-as-graph-relations-and-lengths"
BETWEEN = Comparison(1.0, 0.5, 1.5, 0.01)


@pytest.fixture(autouse=True)
def style():
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def heat_map(pieces, heads, content="weights", kind="cross"):
    labels = [f"▁{'word' * 3}{number}" for number in range(pieces)]
    panels = {head: np.linspace(0, 1, pieces**2).reshape(pieces, pieces) for head in heads}
    return AttentionMap(content, kind, 12, labels, labels, panels)


@pytest.mark.parametrize("pieces", [2, 4, 9, 30])
@pytest.mark.parametrize("system", ["pascal", LONG])
def test_the_heading_of_one_heat_map_has_lines_that_fit(pieces, system):
    figure = draw_maps(heat_map(pieces, [Head(1, 1, "structural_positions", about="nsubj")], "factor"), system=system)
    assert not cut_off(figure)
    heading, *_ = figure.texts
    said = f"{system},head1.1(structural_positions),nsubj:factorofattentiontothesource"
    assert "".join(heading.get_text().split()) == f"{said}sentence12,therun'sowntranslation"
    assert heading.get_window_extent().y0 > figure.axes[0].get_window_extent().y1


def test_titles_of_the_panels_of_a_short_sentence_do_not_overlap():
    heads = [Head(1, number, "structural_positions") for number in range(1, 5)]
    figure = draw_maps(heat_map(3, heads), system="structural-positions")
    assert not cut_off(figure)
    assert not overlapping(figure)


def test_a_colour_bar_is_no_higher_than_the_panels():
    figure = draw_maps(heat_map(5, [Head(1, 1)]), system="pascal")
    figure.draw_without_rendering()
    panel, bar = figure.axes
    assert bar.get_position().y0 >= panel.get_position().y0 - 1e-6


@pytest.mark.parametrize("system", ["pascal", LONG])
def test_the_agreement_of_a_single_layer_has_room_for_its_texts(system):
    assert not cut_off(draw_agreement([Head(1, 1), Head(1, 2)], [0.5, 0.5], system=system))


def groups_of(names, metric):
    seeds = [20.0, 22.0]
    scores = (GroupScore(21.0, 0.2, seeds), *[GroupScore(22.0, 0.2, seeds, Gain(1.0, 0.1, BETWEEN))] * (len(names) - 1))
    rows = [GroupRow(name, 20, 0.5, 0.5, scores) for name in ("1-10", "11-20")]
    lengths = Grouping("source length", "words", ["1-10", "11-20"], np.zeros((2, 0), bool), np.zeros(0, int))
    return GroupTable(lengths, make_metric(metric), rows, rows[0])


@pytest.mark.parametrize("names", [[LONG], [LONG, "plain"], ["plain", LONG], [LONG, "b", "c"], ["a", LONG, "c", "d"]])
@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_groups_of_systems_with_long_names_fit(names, metric):
    figure = draw_groups([groups_of(names, metric)], names)
    assert not cut_off(figure)
    assert not overlapping(figure)


@pytest.mark.parametrize("names", [["plain"], ["plain", "pascal"], ["plain", LONG, f"{LONG}-2", "d", "e"], [LONG, "b"]])
def test_words_of_systems_with_long_names_and_few_groups_fit(names):
    table = words_of(len(names))
    figure = draw_words([table], names)
    assert not cut_off(figure)
    assert not overlapping(figure)
    drawn = {text.get_text().replace("\n", "") for text in figure.subfigs[0].legends[0].get_texts()}
    assert drawn == set(names)


def words_of(systems):
    groups = WordGroups("frequency of the target word", "times", ["1"], np.zeros(20, int))
    ones = np.ones((20, 2))
    return tabulate_words(groups, [[WordCounts(ones, ones, ones)]] * systems)


def test_robustness_of_a_system_with_a_long_name_fits():
    own = Outcome(Condition("own", "own", []), 1.0, 30.0, None, 0.0, [])
    other = Outcome(Condition("flat", "flat", []), 0.0, 28.0, BETWEEN, 0.5, [])
    assert not cut_off(draw_robustness([own, other], make_metric("bleu"), system=f"{LONG}-{LONG}"))
