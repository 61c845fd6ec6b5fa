r"""Whitespace in a line: spaces, tabs, separators such as U+2028, and all control characters.

Stanza treats `\s` and \x80 to \x9f as spaces. The other control characters are added here: they are not part of a word,
and other tools cannot read a file with them.
"""

from __future__ import annotations

import re

_CHARACTERS = r"\s\x00-\x1f\x7f-\x9f"
WHITESPACE = re.compile(f"[{_CHARACTERS}]")
WORD = re.compile(f"[^{_CHARACTERS}]+")
# characters that end a line or a column in other tools; U+0020 and U+00A0 do not
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def without_whitespace(text: str) -> str:
    """Remove all whitespace."""
    return "".join(WORD.findall(text))


def evenly_spaced(text: str) -> str:
    """Replace every whitespace character by a space; positions do not change."""
    return WHITESPACE.sub(" ", text)


def without_breaks(text: str) -> str:
    """Replace every character that could end a line or a column by a space; positions do not change."""
    return _BREAKING.sub(" ", text)
