"""Checks by a sample of its lines that a text is in its language."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import exp
from pathlib import Path
from typing import TypeVar

from synmt.files.reading import open_binary

_SAMPLE = 200
"""Lines that are looked at."""
_LETTERS = 50
"""Bytes of letters that are classified at once: of fewer, the language is a guess."""
_FEWEST = 3
"""Parts of this size that a warning needs."""
_MOST, _SOME = 0.9, 0.05
"""Shares of the lines: in the language that is found, at least, and in the one that is expected, at
most."""

_RELATED = """\
da fo is nb nn no sv
af fy nl
de lb
cs sk
be ru uk
bg bs hr mk sl sr
lt ltg lv
et fi
an ca es ext gl oc pt
fr gcf gcr ht oc wa
co it la lij vec
cy br
ga gd
en pcm
el grc
he hbo
ar ary arz
fa ps sdh ku ur
hi gom mr ne sa
as bn
bcl tl
ace id jv ms
wuu yue zh
az crh tk tr ug uz uzs
az ba kk ky tg tk tt ug uz
nso st
sn xh zu
kik rw lg sw
"""
"""Languages, by their codes, whose texts are easily confused."""
_NO_LANGUAGE = "zxx"

_Item = TypeVar("_Item")

_logger = logging.getLogger(__name__)


def known_languages() -> set[str]:
    """Return the codes of the languages that the detector knows; loads it."""
    import py3langid

    return {language for language, _ in py3langid.rank("")}


def ranked_languages(text: str) -> list[tuple[str, float]]:
    """Rank languages by their probability for a text, from 0 to 1."""
    import py3langid

    ranked = py3langid.rank(text.lower() if text.isupper() else text)
    shares = [exp(score - ranked[0][1]) for _, score in ranked]
    return [(code, share / sum(shares)) for (code, _), share in zip(ranked, shares, strict=True)]


def warn_of_file(path: Path, language: str, *, other: str = "") -> None:
    """Warn if most of the first lines of a file are in another language; a short or mixed text is
    not judged.

    other: the language of the other side of the text.
    """
    # a pipe can be read only once
    if path.is_file():
        with open_binary(path) as stream:
            lines = [line.decode(errors="replace") for line in islice(stream, _SAMPLE)]
        _judge(lines, language, where=str(path), other=other)


def watched(
    items: Iterable[_Item], lines_of: Callable[[_Item], Sequence[str]], language: str, *, where: str
) -> Iterator[_Item]:
    """Pass the items of a stream on at once; warn if most of its first lines are in another
    language."""
    sample: list[str] = []
    for item in items:
        yield item
        if len(sample) < _SAMPLE:
            sample += lines_of(item)[: _SAMPLE - len(sample)]
            if len(sample) == _SAMPLE:
                _judge(sample, language, where=where)
    if len(sample) < _SAMPLE:
        _judge(sample, language, where=where)


def _judge(lines: Sequence[str], language: str, *, where: str, other: str = "") -> None:
    parts = list(_parts(lines))
    language, other = _plain_code(language), _plain_code(other)
    # loading the detector takes longer than translating a sentence
    if len(parts) < _FEWEST or language not in known_languages():
        return
    import py3langid

    votes: Counter[str] = Counter()
    for text, size in parts:
        votes[py3langid.classify(text)[0]] += size
    likely = votes.most_common(1)[0][0]
    total, count, expected = votes.total(), _count(votes, likely), _count(votes, language)
    unclear = count < _MOST * total or expected > _SOME * total
    if unclear or likely in {*_relatives(language), _NO_LANGUAGE}:
        return
    question = (
        "are source and target swapped" if likely in _relatives(other) else "is this the right text"
    )
    _logger.warning(
        f"{where}: {count} of {total} sampled lines look like language '{likely}', not "
        f"'{language}'; {question}?"
    )


def _parts(lines: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Join lines until they have enough letters; yields each text with its number of lines."""
    texts: list[str] = []
    letters = 0
    for line in lines:
        if size := len("".join(filter(str.isalpha, line)).encode()):
            # a text in capitals looks like another language
            texts.append(line.lower() if line.isupper() else line)
            letters += size
        if letters >= _LETTERS:
            yield " ".join(texts), len(texts)
            texts, letters = [], 0


def _count(votes: Counter[str], language: str) -> int:
    return sum(votes[relative] for relative in _relatives(language))


def _relatives(language: str) -> set[str]:
    groups = map(str.split, _RELATED.splitlines())
    return {language}.union(*(group for group in groups if language in group))


def _plain_code(language: str) -> str:
    """Leave out script and country: `zh-hans` is zh. Bokmål is what detectors call Norwegian."""
    code = language.lower().replace("_", "-").split("-")[0]
    return "no" if code == "nb" else code
