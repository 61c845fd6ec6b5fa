"""Lines tokenized as BLEU does, and the places of these words in the lines that parsers and models read."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np

from synmt.analysis.words.matching import TokenizedText
from synmt.arrays import IntArray
from synmt.evaluation.metrics import MetricOptions
from synmt.evaluation.sacrebleu import tokenize_words


def tokenize_text(lines: Sequence[str], options: MetricOptions) -> TokenizedText:
    """Cut lines into words; they keep their case (see `in_case`)."""
    return TokenizedText(tokenize_words(lines, options.tokenize))


def in_case(text: TokenizedText, options: MetricOptions) -> TokenizedText:
    """Put words into lower case if the options ignore case, to compare them."""
    return TokenizedText([[word.lower() for word in words] for words in text.lines]) if options.lowercase else text


def place_words(words: Sequence[str], line: str) -> IntArray:
    """Find the words in a line: (W, 2) characters.

    Spaces and case do not count. Where the line has other characters than the words, such as `&quot;` for a quotation
    mark, a word that begins there has the place at which they differ.
    """
    letters = [place for place, letter in enumerate(line) if not letter.isspace()]
    if not letters or not words:
        return np.zeros((len(words), 2), dtype=np.int64)
    text, joined = (_lower("".join(some)) for some in ((line[place] for place in letters), words))
    same = range(len(letters)) if text == joined else _matched(joined, text)
    places = np.array(letters)[np.array(same)]  # (number of letters in the words,)
    lengths = np.array([len(word) for word in words], dtype=np.int64)  # (W,)
    ends = np.cumsum(lengths)  # (W,)
    starts = ends - lengths  # (W,)
    return np.stack((places[starts], places[ends - 1] + 1), axis=1)


def _lower(text: str) -> str:
    """Put letters into lower case, apart from those that become several."""
    return "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)


def _matched(joined: str, text: str) -> list[int]:
    """Find a letter of `text` for each letter of `joined`."""
    found: list[int] = []
    for kind, start, end, first, _ in SequenceMatcher(None, joined, text, autojunk=False).get_opcodes():
        if kind != "insert":
            steps = range(end - start)
            found += [min(first + (step if kind == "equal" else 0), len(text) - 1) for step in steps]
    return found
