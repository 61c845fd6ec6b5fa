"""The steps in which papers cleaned their text before anything else was done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from itertools import islice

from synmt.errors import SynmtError

Pair = tuple[str, str]
Cleaning = Callable[[Iterable[Pair], Pair], Iterator[Pair]]
"""From pairs of sentences and the two languages to the pairs that stay."""

_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|\w+);")
_DATE = re.compile(r"(?<=.)［[０-９．]+］$")


def unescaped(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace entities such as `&amp;` by their characters."""
    return (_each(lambda side: _ENTITY.sub(lambda match: unescape(match[0]), side), pair) for pair in pairs)


def straight_apostrophes(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace typographic apostrophes by straight ones, as fairseq's prepare-iwslt14.sh does in the test text."""
    return (_each(lambda side: side.replace("’", "'"), pair) for pair in pairs)


def without_dates(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Remove the dates at the end of Japanese sentences of ASPEC, such as ［９．１２］, as the organisers of WAT do."""
    for pair in pairs:
        first, second = (
            _DATE.sub("", side) if language == "ja" else side for side, language in zip(pair, languages, strict=True)
        )
        yield first, second


def first(count: int) -> Cleaning:
    """Make the step that keeps the first pairs."""
    return lambda pairs, languages: islice(pairs, count)


def moses_lengths(most: int, ratio: float) -> Cleaning:
    """Make the step of Moses' clean-corpus-n.perl: 1 to `most` words on each side, and at most `ratio` times as many.

    The words are those of Moses' tokenizer; the text itself stays uncut.
    """

    def clean(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
        counts = [_word_counter(language) for language in languages]
        for pair in pairs:
            one, other = (count(side) for count, side in zip(counts, pair, strict=True))
            if min(one, other) >= 1 and max(one, other) <= min(most, ratio * min(one, other)):
                yield pair

    return clean


def _word_counter(language: str) -> Callable[[str], int]:
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise SynmtError(
            "the words of this corpus are counted by sacremoses, which is not installed",
            do="`pip install 'synmt[tokenizers]'`",
        ) from None
    tokenizer = MosesTokenizer(lang=language)
    return lambda text: len(tokenizer.tokenize(text))


def _each(change: Callable[[str], str], pair: Pair) -> Pair:
    return change(pair[0]), change(pair[1])
