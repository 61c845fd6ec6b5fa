"""Figures keep all of their text inside of their edges, with long names and with a few groups or
words."""

from __future__ import annotations

import numpy as np
import pytest
from fitting import cut_off

from synmt.analysis.attention.figures import draw_maps
from synmt.analysis.attention.heads import AttentionMap
from synmt.analysis.heads import Head
from synmt.analysis.robustness.conditions import Condition, Outcome
from synmt.analysis.robustness.report import draw_robustness
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


def heat_map(pieces, heads, content="weights"):
    labels = [f"▁{'word' * 3}{number}" for number in range(pieces)]
    panels = dict.fromkeys(heads, np.eye(pieces))
    return AttentionMap(content, "cross", 12, labels, labels, panels)


@pytest.mark.parametrize("pieces", [2, 4, 9, 30])
@pytest.mark.parametrize("system", ["pascal", LONG])
def test_the_heading_of_one_heat_map_has_lines_that_fit(pieces, system):
    head = Head(1, 1, "structural_positions", about="nsubj")
    figure = draw_maps(heat_map(pieces, [head], "factor"), system=system)
    assert not cut_off(figure)
    [heading, *_], [panel, bar] = figure.texts, figure.axes
    assert heading.get_window_extent().y0 > panel.get_window_extent().y1
    assert bar.get_position().y0 >= panel.get_position().y0 - 1e-6


def test_robustness_of_a_system_with_a_long_name_fits():
    own = Outcome(Condition("own", "own", []), 1.0, 30.0, None, 0.0, [])
    other = Outcome(Condition("flat", "flat", []), 0.0, 28.0, BETWEEN, 0.5, [])
    assert not cut_off(draw_robustness([own, other], make_metric("bleu"), system=f"{LONG}-{LONG}"))
