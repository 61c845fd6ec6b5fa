"""Figures keep all of their text inside of their edges, with long names and with a few groups or
words."""

from __future__ import annotations

import pytest

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
