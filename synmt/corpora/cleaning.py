"""The steps in which papers cleaned their text before anything else was done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from html import unescape
from itertools import islice

from synmt.errors import SynmtError

Pair = tuple[str, str]
"""Two languages, or a sentence in each of them."""

Step = tuple[str | int | float, ...]
"""The name of a function of this file, and its numbers."""

_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|\w+);")
_DATE = re.compile(r"(?<=.)［[０-９．]+］$")


def cleaned(pairs: Iterable[Pair], languages: Pair, steps: Sequence[Step]) -> Iterator[Pair]:
    """Apply steps, each by the name of its function and its numbers, to pairs of sentences in two
    languages."""
    for name, *numbers in steps:
        pairs = _STEPS[str(name)](pairs, languages, *numbers)
    return iter(pairs)


def unescaped(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace entities such as `&amp;` by their characters."""
    return (
        _each(lambda side: _ENTITY.sub(lambda match: unescape(match[0]), side), pair)
        for pair in pairs
    )


def straight_apostrophes(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Replace typographic apostrophes by straight ones, as fairseq's prepare-iwslt14.sh does in the
    test text."""
    return (_each(lambda side: side.replace("’", "'"), pair) for pair in pairs)


def without_dates(pairs: Iterable[Pair], languages: Pair) -> Iterator[Pair]:
    """Remove the dates at the end of Japanese sentences of ASPEC, such as ［９．１２］, as the organizers
    of WAT do."""
    place = languages.index("ja")
    for pair in pairs:
        japanese = _DATE.sub("", pair[place])
        yield (japanese, pair[1]) if place == 0 else (pair[0], japanese)


def first_pairs(pairs: Iterable[Pair], languages: Pair, count: int) -> Iterator[Pair]:
    """Keep the first pairs."""
    return islice(pairs, count)


def moses_lengths(
    pairs: Iterable[Pair], languages: Pair, most: int, ratio: float
) -> Iterator[Pair]:
    """Keep pairs by their length in words, as Moses' clean-corpus-n.perl does, and leave the text
    uncut.

    most: how many words, by Moses' tokenizer, a side has at most; the fewest is 1.
    ratio: how many times as many words one side has at most.
    """
    tokenizers = [moses_tokenizer(language) for language in languages]
    for pair in pairs:
        one, other = (len(tokenize(side)) for tokenize, side in zip(tokenizers, pair, strict=True))
        if min(one, other) >= 1 and max(one, other) <= min(most, ratio * min(one, other)):
            yield pair


_STEPS: Mapping[str, Callable[..., Iterator[Pair]]] = {
    step.__name__: step
    for step in (unescaped, straight_apostrophes, without_dates, first_pairs, moses_lengths)
}


def check_steps(steps: Sequence[Step]) -> None:
    """Raise SynmtError if a package that a step needs is not installed."""
    if any(name == moses_lengths.__name__ for name, *_ in steps):
        moses_tokenizer("en")


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
