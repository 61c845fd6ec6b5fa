"""Degenerate output: empty, looping, truncated or copied translations, as seen in the text alone.

    empty   no visible character, though the source has text
    loop    a phrase of words 4 times in a row, or up to 20 characters 8 times in a row (for scripts without spaces),
            unless the source has a loop itself
    limit   as many pieces as the search allows, so probably truncated
    copy    the source itself, except for case and whitespace, if it has 4 words or more: shorter ones are often names

The first that applies is reported. None of them proves that a translation is bad, and a bad one may have none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from synmt.syntax.whitespace import without_whitespace

Reason = Literal["empty", "loop", "limit", "copy"]

REASONS: dict[Reason, str] = {
    "empty": "empty",
    "loop": "with a loop",
    "limit": "cut off at the length limit",
    "copy": "copies of the source",
}
"""Descriptions of the reasons, to follow a number of translations."""

_REPEATED_PHRASES = 4
_COPIED_WORDS = 4
_REPEATED_CHARACTERS = re.compile(r"(\S{1,20}?)\1{7}")


def degenerate(source: str, translation: str, *, at_limit: bool = False) -> Reason | None:
    """Tell why the translation of a source with text is degenerate; None if it is not.

    at_limit: the translation has as many pieces as the search allows.
    """
    if not without_whitespace(translation):
        return "empty"
    if has_loop(translation) and not has_loop(source):
        return "loop"
    if at_limit:
        return "limit"
    words, translated = source.casefold().split(), translation.casefold().split()
    return "copy" if words == translated and len(words) >= _COPIED_WORDS else None


def has_loop(text: str) -> bool:
    """Tell whether a phrase or a string of characters is repeated again and again."""
    return _repeats_phrase(text.split()) or _REPEATED_CHARACTERS.search(text) is not None


def _repeats_phrase(words: Sequence[str]) -> bool:
    """Tell whether a phrase occurs 4 times in a row: three phrases of words then equal those one phrase earlier."""
    for size in range(1, len(words) // _REPEATED_PHRASES + 1):
        same = 0
        for word, earlier in zip(words[size:], words, strict=False):
            same = same + 1 if word == earlier else 0
            if same == size * (_REPEATED_PHRASES - 1):
                return True
    return False
