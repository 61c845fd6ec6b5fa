"""Figures keep all of their text inside of their edges, with long names and with a few groups or
words."""

from __future__ import annotations

import numpy as np
import pytest
from fitting import cut_off, overlapping

from synmt.analysis.groups.figure import draw_results
from synmt.analysis.groups.results import GroupResult, GroupRow, ResultTable
from synmt.analysis.words.accuracy import WordCounts, WordGroups, tabulate_words
from synmt.evaluation.significance import Comparison
from synmt.reporting.figures import STYLE
from synmt.reporting.values import Column

pytestmark = pytest.mark.journey

LONG = "a-system-with-a-name-of-many-words-such-as-graph-relations-and-lengths"
BETWEEN = Comparison(1.0, 0.5, 1.5, 0.01)


@pytest.fixture(autouse=True)
def style():
    import matplotlib

    with matplotlib.rc_context(STYLE):
        yield


def groups_of(names):
    base, *others = names
    systems = {base: {"score": GroupResult(21.0, [20.0, 22.0])}}
    for name in others:
        systems[name] = {"score": GroupResult(22.0, [20.0, 24.0], comparison=BETWEEN)}
    rows = [GroupRow(name, 20, 0.5, 20, 0.5, systems) for name in ("1-10", "11-20")]
    measures = [Column(title="BLEU", name="score", about="lower is better")]
    sizes = [Column(title="sentences"), Column(title="share")]
    return ResultTable("source length", "words", measures, sizes, rows, rows[0], 1000)


def words_of(names):
    groups = WordGroups("frequency of the target word", "times", ["1"], np.zeros(20, int), [])
    ones = np.ones((20, 2))
    return tabulate_words(groups, {name: [WordCounts(ones, ones, ones)] for name in names})


@pytest.mark.parametrize(
    "names", [[LONG], [LONG, "plain"], ["plain", LONG], [LONG, "b", "c"], ["a", LONG, "c", "d"]]
)
@pytest.mark.parametrize("table", [groups_of, words_of])
def test_results_of_systems_with_long_names_and_few_groups_fit(table, names):
    figure = draw_results([table(names)])
    assert not cut_off(figure)
    assert not overlapping(figure)
