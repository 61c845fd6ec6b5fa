r"""What counts as whitespace in a line: spaces, tabs, separators such as U+2028, and every control character.

Stanza takes `\s` and \x80 to \x9f for a space. The other control characters are added here: they are no
part of a word, and a file with them is hard to read for other tools.
"""

from __future__ import annotations

import re

_CHARACTERS = r"\s\x00-\x1f\x7f-\x9f"
WHITESPACE = re.compile(f"[{_CHARACTERS}]")
WORD = re.compile(f"[^{_CHARACTERS}]+")
# what other tools take for the end of a line or of a column; U+0020 and U+00A0 are harmless
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def without_whitespace(text: str) -> str:
    """Leave out all whitespace."""
    return "".join(WORD.findall(text))


def evenly_spaced(text: str) -> str:
    """Put a space for every blank: each character keeps its position."""
    return WHITESPACE.sub(" ", text)


def without_breaks(text: str) -> str:
    """Put a space for every character that could end a line or a column: the others keep their positions."""
    return _BREAKING.sub(" ", text)
