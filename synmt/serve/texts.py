"""Long texts, cut into the sentences that a model was trained on, and put together again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from synmt.arrays import Pair

_ENDS = re.compile(r"""[.!?…]+["'”’»)\]]*\s+(?=["'“‘«„¿¡(\[]*[^\W\d_a-z])|[。！？]+[」』）]*""")
"""The end of a sentence: marks, and before letters that are not small, whitespace."""
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Nr|Hr|Fr|bzw|ca|Mio|Mrd|usw|Abs|Art|Bd)"
    r"|\b[^\W\d_](?:\.[^\W\d_])*|\b\d+)\.\s+$",
)
_BREAK = re.compile(r"\s*\n\s*")


def sentences(text: str) -> list[Pair]:
    """Cut a text into sentences, each with the whitespace after it; lines end sentences.

    Initials, numbers and common abbreviations before a capital letter do not end one.
    """
    ends = [match.end() for match in _BREAK.finditer(text)]
    for match in _ENDS.finditer(text):
        if not _ABBREVIATION.search(text, max(0, match.end() - 20), match.end()):
            ends.append(match.end())
    parts, start = list[Pair](), 0
    for end in sorted({*ends, len(text)}):
        if end > start:
            part = text[start:end]
            sentence = part.rstrip()
            parts.append((sentence, part[len(sentence) :]))
            start = end
    return parts


def rejoin(parts: Sequence[Pair], translated: Sequence[str]) -> str:
    """Put the translations of sentences where the sentences were; after a letter or mark of ASCII
    comes a space, even where the source has none."""
    text = ""
    for translation, (_, space) in zip(translated, parts, strict=True):
        gap = " " if text[-1:].isascii() and not text[-1:].isspace() and text else ""
        text += gap + translation + space
    return text
