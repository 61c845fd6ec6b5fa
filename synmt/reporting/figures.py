"""Figures for papers: colours for colour-blind readers, axes with units, legible in print."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synmt.arrays import Values
from synmt.errors import SynmtError, UsageError
from synmt.files.writing import write_content

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# two colours of Okabe and Ito (2008), which also differ in lightness, for prints in grey; more
# series have markers, too
ONE, OTHER, INK, GRID = "#0072B2", "#E69F00", "#333333", "#DDDDDD"

_COLOURS = (INK, ONE, OTHER, "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31")
_MARKERS = "os^DvPX*"

FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Noto Sans SC",
    "Noto Sans KR",
    "IPAexGothic",
    "WenQuanYi Micro Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Thai",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Symbols2",
    "Noto Emoji",
)
"""Fallback fonts for characters that matplotlib's default font does not have; those that are
installed are used."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "text.parse_math": False,  # a label may contain a dollar sign
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "synmt",  # the same table makes the same file
    "pdf.fonttype": 42,
}


def series_style(index: int) -> Values:
    """Choose colour and marker of one of several series; the first, INK, is for the baseline.

    Of 64 series, no two have the same colour and marker.
    """
    repeat, place = divmod(index, len(_COLOURS))
    marker = _MARKERS[(place + repeat) % len(_MARKERS)]
    return {"color": _COLOURS[place], "marker": marker, "linestyle": "none"}


_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 forbids, even as references."""


def for_xml(text: str) -> str:
    """Replace characters that XML forbids by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)


def check_plot(path: Path | None) -> None:
    """Raise UsageError for a file name that is not of a picture format, and SynmtError without
    matplotlib; None is no picture."""
    if path is None:
        return
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(
            "unsupported picture format",
            where=path,
            allowed=f"Endings: {', '.join('.' + name for name in FORMATS)}",
        )
    if not has_matplotlib():
        raise SynmtError(
            "plots need matplotlib, which is not installed",
            do="Install it with `pip install 'synmt[plot]'`",
        )


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> Figure:
    """Begin a figure of this size, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(draw: Callable[[], Figure], path: Path | None) -> None:
    """Draw a figure in the common style into a file, if there is one.

    An SVG file has all characters: it contains text, and the program that shows it finds the fonts.
    """
    check_plot(path)
    if path is None:
        return
    write_content(path, rendered(draw, path.suffix.lstrip(".").lower()))


def rendered(draw: Callable[[], Figure], kind: str, least: float = 0) -> bytes:
    """Draw a figure in the common style as a picture of a kind, such as `svg`, at least this wide,
    in inches."""
    import matplotlib

    dates, drawn = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}, BytesIO()
    style = {**STYLE, "font.family": _fonts()}
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        if kind == "svg":
            # its letters are text: the program that shows it has the fonts
            warnings.filterwarnings("ignore", message="Glyph")
        figure = draw()
        figure.set_figwidth(max(figure.get_figwidth(), least))
        figure.savefig(drawn, format=kind, dpi=300, metadata=dates.get(kind))
    picture = drawn.getvalue()
    # matplotlib writes labels as they are
    return for_xml(picture.decode("utf-8")).encode("utf-8") if kind == "svg" else picture


def _fonts() -> list[str]:
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return ["DejaVu Sans", *(name for name in FONTS if name in installed)]
