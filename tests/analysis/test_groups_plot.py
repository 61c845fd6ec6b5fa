"""Figures of groups show what the tables say."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from scored import some_systems

from synmt.analysis.groups.figure import draw_results
from synmt.analysis.groups.grouping import by_length
from synmt.analysis.groups.results import GroupResult, GroupRow, ResultTable, tabulate
from synmt.errors import SynmtError
from synmt.evaluation.significance import Comparison
from synmt.reporting.figures import check_plot, save_figure
from synmt.reporting.values import Column

pytestmark = pytest.mark.journey

EMPTY = GroupRow("41-50", 0, 0.0, 0, 0.0, {})


def row(name, score, baseline=None, *, count=20, interval=None):
    own = GroupResult(score, [score])
    systems = {"pascal": {"score": own}}
    if baseline is not None:
        compared = Comparison(score - baseline, *interval, 0.04) if interval else None
        base = GroupResult(baseline, [baseline])
        systems = {"plain": {"score": base}, "pascal": {"score": own.above(base, compared)}}
    return GroupRow(name, count, count / 100, count, count / 100, systems)


def table(rows, *, by="source length", unit="words", total=None):
    measures = [Column(title="BLEU", name="score", about="")]
    measures = [Column(title="exact match", name="accuracy")] * (not unit) + measures
    sizes = [Column(title="sentences"), Column(title="share")]
    return ResultTable(by, unit, measures, sizes, rows, total or rows[0], 1000)


COMPARED = [
    row("1-10", 20.0, 21.0, interval=(-2.5, 0.5)),
    row("11-20", 24.0, 22.0, count=60, interval=(1.0, 3.5)),
    row(">20", 30.0, 29.0, count=4),
    EMPTY,
]
TOTAL = row("all", 20.0, 19.0, interval=(0.5, 1.5))


def notes(axes):
    return [text.get_text().replace("−", "-") for text in axes.texts]


def bars_of(axes):
    return [
        [(x, low, high) for (x, low), (_, high) in bar.get_segments()] for bar in axes.collections
    ]


def test_differences_have_their_intervals_and_small_groups_none():
    values, above, below = draw_results([table(COMPARED)]).axes
    assert bars_of(above) == [[(0.07, -2.5, 0.5)], [(1.07, 1.0, 3.5)]]
    [hollow] = [line for line in above.get_lines() if line.get_markerfacecolor() == "white"]
    assert (list(hollow.get_xdata()), list(hollow.get_ydata())) == ([2.07], [1.0])
    assert (notes(values), notes(above)) == ([], ["-1.0", "+2.0", "+1.0"])
    assert [bar.get_height() for bar in below.patches] == [20, 60, 4, 0]
    assert (below.get_ylabel(), below.get_xlabel()) == ("Sentences (%)", "Source length (words)")


def test_a_plot_of_one_system_shows_its_scores():
    rows = [row("a", 20.0), row("b", 30.0), EMPTY]
    above, below = draw_results([table(rows, by="kind of $", unit="")]).axes
    assert notes(above) == ["20.0", "30.0"]
    assert all(len(line.get_xdata()) == 1 for line in above.get_lines())  # labels have no order
    assert below.get_xlabel() == "kind of $"


def test_tables_without_groups_can_be_drawn(tmp_path):
    one, empty = row("all", 20.0), [table([], total=TOTAL)]
    figure = draw_results([table([EMPTY], total=one), table([], total=one)])
    assert [[bar.get_height() for bar in axes.patches] for axes in figure.axes[1::2]] == [[0], []]
    assert [notes(axes) for axes in figure.axes[::2]] == [[], []]
    # an axis without data can still be written
    save_figure(lambda: draw_results(empty), tmp_path / "x.svg")
    assert ">pascal<" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_long_labels_are_shortened_and_letters_that_svg_forbids_are_replaced(tmp_path):
    rows = [row("w" * 60, 20.0), row("a\x01b", 30.0)]
    path = tmp_path / "x.svg"
    save_figure(lambda: draw_results([table(rows, by="kind", unit="")]), path)
    texts = [one.text for one in ElementTree.parse(path).iter() if one.tag.endswith("}text")]
    assert {"w" * 31 + "…", "a\ufffdb"} < set(texts)


def test_several_systems_have_lines_and_bars_of_seeds_and_intervals():
    found = tabulate(by_length(np.array([5] * 4 + [15] * 20)), some_systems([3, 3, 1]))
    scores, differences, _ = draw_results([found]).axes
    lines = [line.get_ydata() for line in scores.get_lines() if len(line.get_ydata()) == 2]
    for name, line in zip(found.names, lines, strict=True):
        values = [row.systems[name]["score"].value for row in found.rows]
        assert line == pytest.approx(values)
    # two groups of each of the two systems that have several seeds
    first, bars = found.rows[0].systems["s0"]["score"], bars_of(scores)
    ends = first.value - first.deviation, first.value + first.deviation
    assert (len(bars), bars[0]) == (4, [pytest.approx((-0.14, *ends))])
    # the small group has marks without intervals
    assert len(differences.collections) == 2


def test_a_plot_without_matplotlib_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SynmtError, match=r"pip install 'synmt\[plot\]'"):
        check_plot(tmp_path / "plot.png")
