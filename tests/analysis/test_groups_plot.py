"""Figures of groups show what the tables say."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from fitting import cut_off
from notation import tree
from refusing import assert_fails
from scored import labelled, some_systems

from synmt.analysis.groups.grouping import by_length
from synmt.analysis.groups.results import draw_results, tabulate
from synmt.analysis.groups.trees import by_relation
from synmt.reporting.figures import check_plot, save_figure

pytestmark = pytest.mark.journey

LENGTHS = np.array([5] * 4 + [15] * 20)


def marks(axes):
    return {
        drawn.get_label(): np.array(drawn.lines[0].get_ydata()).tolist()
        for drawn in axes.containers
    }


def bars_of(axes):
    """List the ends of all intervals."""
    segments = [segment for bar in axes.collections for segment in bar.get_segments()]
    return [(segment[0][1], segment[1][1]) for segment in segments if len(segment)]


@pytest.mark.parametrize("counts", [[1], [1, 1], [3, 3, 1]])
def test_values_differences_and_shares_are_those_of_the_table(counts):
    table = tabulate(by_length(LENGTHS), some_systems(counts))
    figure = draw_results([table])
    *rows, _ = [
        table.as_json()["rows"][first : first + len(counts)]
        for first in range(0, len(table.rows), len(counts))
    ]
    values, *differences, below = figure.axes
    for place, name in enumerate(row["system"] for row in rows[0]):
        assert marks(values)[name] == [row[place]["value"] for row in rows]
        if place:
            found = [row[place]["difference"] for row in rows]
            assert marks(differences[0])[name] == found
    assert [bar.get_height() for bar in below.patches] == pytest.approx([100 / 6, 500 / 6])
    assert (below.get_ylabel(), below.get_xlabel()) == ("share (%)", "source length (words)")
    # the small group has marks without intervals
    intervals = [tuple(row["interval"]) for row in rows[1][1:]]
    for axes in differences:
        assert bars_of(axes) == [pytest.approx(one) for one in intervals]
    assert not cut_off(figure)


def test_tables_without_groups_and_with_empty_ones_can_be_drawn(tmp_path):
    nothing = by_relation([tree([0], ["root"])] * 24)
    groupings = [by_length(LENGTHS, edges=(20, 30)), nothing]
    tables = [tabulate(one, some_systems([1, 1])) for one in groupings]
    save_figure(lambda: draw_results(tables), tmp_path / "x.svg")
    assert ">s0<" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_letters_that_svg_forbids_are_replaced(tmp_path):
    table = tabulate(labelled("kind", ["w" * 60] * 12 + ["a\x01b"] * 12), some_systems([1]))
    path = tmp_path / "x.svg"
    save_figure(lambda: draw_results([table, table]), path)
    texts = [one.text for one in ElementTree.parse(path).iter() if one.tag.endswith("}text")]
    assert {"w" * 60, "a\ufffdb"} < set(texts)


def test_a_plot_without_matplotlib_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert_fails(r"pip install 'synmt\[plot\]'", check_plot, tmp_path / "plot.png")
