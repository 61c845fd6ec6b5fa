"""The steps in which papers cleaned their text before anything else was done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from html import unescape
from itertools import islice

from synmt.errors import SynmtError

Pair = tuple[str, str]
"""Two languages, or a sentence in each of them."""

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
    """Remove the dates at the end of Japanese sentences of ASPEC, such as ［９．１２］, as the organizers of WAT do."""
    place = languages.index("ja")
    for pair in pairs:
        japanese = _DATE.sub("", pair[place])
        yield (japanese, pair[1]) if place == 0 else (pair[0], japanese)


def first_pairs(count: int) -> Cleaning:
    """Make the step that keeps the first pairs."""
    return lambda pairs, languages: islice(pairs, count)


@dataclass(frozen=True)
class MosesLengths:
    """The step of Moses' clean-corpus-n.perl: keeps pairs by their length in words, and leaves the text uncut.

    most: how many words a side has at most; the fewest is 1.
    ratio: how many times as many words one side has at most.
    """

    most: int
    ratio: float

    def __call__(self, pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
        """Keep the pairs whose words, by Moses' tokenizer, are few enough."""
        tokenizers = [moses_tokenizer(language) for language in languages]
        for pair in pairs:
            one, other = (len(tokenize(side)) for tokenize, side in zip(tokenizers, pair, strict=True))
            if min(one, other) >= 1 and max(one, other) <= min(self.most, self.ratio * min(one, other)):
                yield pair


def moses_tokenizer(language: str) -> Callable[[str], Sized]:
    """Return Moses' tokenizer of a language; raises SynmtError if sacremoses is not installed."""
    try:
        from sacremoses import MosesTokenizer
    except ImportError:
        raise SynmtError(
            "the words of this corpus are counted by sacremoses, which is not installed",
            do="`pip install 'synmt[tokenizers]'`",
        ) from None
    return MosesTokenizer(lang=language).tokenize


def _each(change: Callable[[str], str], pair: Pair) -> Pair:
    return change(pair[0]), change(pair[1])
