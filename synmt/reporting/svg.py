"""Vector graphics for pages: the frame of a picture, and text in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from synmt.syntax.parse import without_breaks

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 forbids, even as references."""

# no CSS variables: most programs other than browsers do not support them
_STYLE = """
text {
  font-family: system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif; font-size: 15px; fill: #222222
}
.ground { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #eeeeee }
  .ground { fill: #16181c }
}
"""


def svg_document(elements: Iterable[str], width: float, height: float, *, style: str) -> str:
    """Frame elements as one SVG picture, in pixels, on a background.

    style: CSS of the picture, besides font, background and colour of text, which are dark on a dark
        screen.
    """
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    background = '<rect class="ground" width="100%" height="100%"/>'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<style>{_STYLE}{style}</style>",
        background,
    ]
    return "\n".join([*lines, *elements, "</svg>", ""])


def svg_text(x: float, y: float, text: str, style: str = "") -> str:
    """Write text at a position in pixels, with a CSS class where it has one."""
    kind = f' class="{style}"' if style else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}">{escape_xml(text)}</text>'


def escape_xml(text: str) -> str:
    """Escape text for XML; line breaks become spaces, and characters that XML forbids become
    U+FFFD."""
    return escape(for_xml(without_breaks(text)), quote=False)


def for_xml(text: str) -> str:
    """Replace characters that XML forbids by U+FFFD."""
    return _NOT_IN_XML.sub("\ufffd", text)
