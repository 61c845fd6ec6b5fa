"""Figures for papers: colours that colour-blind readers tell apart, axes with units, legible in print."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.errors import SynmtError, UsageError
from synmt.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# two colours of Okabe and Ito (2008); they also differ in lightness, for a grey print
ONE, OTHER, INK, GRID = "#0072B2", "#E69F00", "#333333", "#DDDDDD"

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "text.parse_math": False,  # a label may hold a dollar sign
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "synmt",  # the same table gives the same file
    "pdf.fonttype": 42,
}


def check_plot(path: Path) -> None:
    """Refuse a file that could not be drawn, before anything is computed."""
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(
            "this ending names no picture format",
            where=str(path),
            allowed=f"Endings: {', '.join('.' + name for name in FORMATS)}",
        )
    check_matplotlib()


def check_matplotlib() -> None:
    """Refuse to draw without matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SynmtError(
            "plots need matplotlib, which is not installed",
            do="Install it with `pip install 'synmt[plot]'`",
        ) from None


def save_figure(draw: Callable[[], Figure], path: Path, *, grid: str = "y") -> None:
    """Draw a figure in the common style and write it as the file's ending says; `grid` is the axis with lines."""
    check_plot(path)
    kind = path.suffix.lstrip(".").lower()
    drawn = _render(draw, kind, grid)
    with write_atomically(path, binary=True) as stream:
        stream.write(drawn)


def svg_of(draw: Callable[[], Figure], *, grid: str = "y") -> str:
    """Draw a figure in the common style as SVG."""
    check_matplotlib()
    return _render(draw, "svg", grid).decode("utf-8")


def _render(draw: Callable[[], Figure], kind: str, grid: str) -> bytes:
    import matplotlib

    metadata = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else None
    drawn = BytesIO()
    with matplotlib.rc_context({**STYLE, "axes.grid.axis": grid}):
        draw().savefig(drawn, format=kind, dpi=300, metadata=metadata)
    return drawn.getvalue()
