"""Words joined into text: of languages with spaces as Moses' detokenizer.perl does, of Chinese and
Japanese tightly."""

from __future__ import annotations

import re
from itertools import pairwise

from synmt.arrays import Texts

_PARTS = {("can", "not"), ("gon", "na"), ("got", "ta")}
"""Pairs of words into which spaCy splits an English word."""

_BEFORE_OPENING, _AFTER_CLOSING = "‘¿¡", "’”،؛؟"
"""Marks that the script does not know: no space comes after the first ones, and none before the
others."""
_GUILLEMETS_INSIDE = ("de", "da", "fr")
"""Languages in which » may open a quotation, or that write a space inside."""
_JOINER = "\u200d"
_EMOJI_PART = re.compile("[\u200d\ufe0f\U0001f3fb-\U0001f3ff]")

_CJK = re.compile("[\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]")
_LETTER = re.compile(r"[^\W\d_]")


def join_spaced(
    words: Texts, language: str, *, unescape: bool = False, hyphens: bool = False
) -> str:
    """Join words of a language with spaces.

    unescape: `&amp;` and the like were written by the tokenizer.
    hyphens: the tokenizer splits `well-known` into three words.
    """
    from sacremoses import MosesDetokenizer

    joined = _with_apostrophes(list(words))
    joined = _with_contractions(joined) if language == "en" else joined
    joined = _with_hyphens(joined) if hyphens else joined
    text = MosesDetokenizer(language).detokenize(joined, unescape=unescape)
    left, right = ("", "") if language in _GUILLEMETS_INSIDE else ("«", "»")
    return re.sub(f"(?<=[{_BEFORE_OPENING}{left}]) | (?=[{_AFTER_CLOSING}{right}])", "", text)


def join_tight(words: Texts) -> str:
    """Join words of a language without spaces; Latin words and numbers keep one between them."""
    text = "".join(words[:1])
    for before, word in pairwise(words):
        text += f" {word}" if _is_spaced(before[-1], word[0]) else word
    return text


def _with_apostrophes(words: list[str]) -> list[str]:
    """Join `don ’ t` unless the mark closes a quotation, and the parts of an emoji."""
    joined: list[str] = []
    attach, quoted = False, False
    for index, word in enumerate(words):
        is_inside = (
            0 < index < len(words) - 1
            and _LETTER.match(words[index - 1][-1])
            and _LETTER.match(words[index + 1])
        )
        is_apostrophe = word == "’" and is_inside and not quoted
        quoted = word == "‘" or (quoted and word != "’")
        if joined and (attach or is_apostrophe or _EMOJI_PART.match(word)):
            joined[-1] += word
        else:
            joined.append(word)
        attach = bool(is_apostrophe) or word == _JOINER
    return joined


def _with_contractions(words: list[str]) -> list[str]:
    """Join the parts of English words that only some tokenizers split: `do n't`, `can not`."""
    joined = words[:1]
    for word in words[1:]:
        if word.lower() in ("n't", "n’t") or (joined[-1].lower(), word.lower()) in _PARTS:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _with_hyphens(words: list[str]) -> list[str]:
    """Join `well - known`: a hyphen between letters is rarely a dash."""
    joined = words[:1]
    for index, word in enumerate(words[1:], start=1):
        after_hyphen = words[index - 1] == "-" and joined[-1] != "-" and _LETTER.match(word)
        before_hyphen = (
            word == "-"
            and _LETTER.match(joined[-1][-1])
            and _LETTER.match("".join(words[index + 1 :][:1]))
        )
        if after_hyphen or before_hyphen:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _is_spaced(before: str, after: str) -> bool:
    """Return whether a space belongs between two characters."""
    if _CJK.match(before) or _CJK.match(after):
        return False
    if before in ",.;:!?)]":
        return bool(_LETTER.match(after))
    return before.isalnum() and (after.isalnum() or after in "([")
