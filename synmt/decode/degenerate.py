"""Translations that are none, told from the text alone: empty ones, loops, those that never end, copies of the source.

    empty   nothing visible, though the source has text
    loop    a phrase of words 4 times in a row, or up to 20 characters 8 times in a row (for scripts without blanks),
            unless the source has a loop itself
    limit   as many pieces as the search allows, so that it was cut off
    copy    the source itself, but for case and blanks, where it has 4 words or more: shorter ones are often names

The first that applies is the reason. None of them proves that a translation is bad, and a bad one may have none.
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
"""How many translations there are of each kind is said with these words."""

_TIMES = 4
_COPIED_WORDS = 4
_CHARACTERS = re.compile(r"(\S{1,20}?)\1{7}")


def degenerate(source: str, translation: str, *, at_limit: bool = False) -> Reason | None:
    """Say what is wrong with a translation of a source that has text; None where nothing is."""
    if not without_whitespace(translation):
        return "empty"
    if has_loop(translation) and not has_loop(source):
        return "loop"
    if at_limit:
        return "limit"
    words, copied = source.casefold().split(), translation.casefold().split()
    return "copy" if words == copied and len(words) >= _COPIED_WORDS else None


def has_loop(text: str) -> bool:
    """Tell whether words or characters come again and again."""
    return _repeats(text.split()) or _CHARACTERS.search(text) is not None


def _repeats(words: Sequence[str]) -> bool:
    """Tell whether a phrase comes 4 times in a row: so many words are then equal to those one phrase before."""
    for size in range(1, len(words) // _TIMES + 1):
        same = 0
        for word, before in zip(words[size:], words, strict=False):
            same = same + 1 if word == before else 0
            if same == size * (_TIMES - 1):
                return True
    return False
