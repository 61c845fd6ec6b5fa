"""Texts of a figure that its edge cuts off."""

from __future__ import annotations

import re
from collections.abc import Iterator

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def cut_off(figure: Figure) -> list[str]:
    """List the texts that are not inside of the figure."""
    edges = figure.bbox.padded(1)
    return [
        text
        for text, box in _texts(figure)
        if not all(edges.contains(*corner) for corner in box.corners())
    ]


def _texts(figure: FigureBase) -> Iterator[tuple[str, Bbox]]:
    FigureCanvasAgg(figure.figure).draw()  # type: ignore[arg-type]
    for one in figure.findobj(Text):
        # matplotlib keeps ticks beyond the ends of an axis, whose numbers it does not draw
        if one.get_visible() and re.search("[^-−+.,0-9 ]", one.get_text()):
            yield one.get_text(), one.get_window_extent()
