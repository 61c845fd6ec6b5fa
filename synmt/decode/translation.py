"""What comes out for a line: its translations, and whether the best one is degenerate.

Degenerate output is seen in the text alone; the first reason that applies is reported:

    empty   no visible character, though the source has text
    loop    a phrase of words 4 times in a row, or up to 20 characters 8 times in a row (for scripts
            without spaces), unless the source has a loop itself
    limit   as many pieces as the search allows, so probably truncated
    copy    the source itself, except for case and whitespace, if it has 4 words or more: shorter
            ones are often names

None of them proves that a translation is bad, and a bad one may have none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from os.path import commonprefix
from typing import Literal

from synmt.arrays import IntArray, int_pairs
from synmt.data.vocabulary import Vocabulary
from synmt.decode.alignment import Pair
from synmt.decode.inputs import Request, Source
from synmt.decode.next_piece import Hypothesis
from synmt.syntax.parse import without_whitespace
from synmt.tokenization.word_tokenizer import WordTokenizer

Reason = Literal["empty", "loop", "limit", "copy"]

_REPEATED_PHRASES = 4
_COPIED_WORDS = 4
_REPEATED_CHARACTERS = re.compile(r"(\S{1,20}?)\1{7}")


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    text: the words joined, as a person would write them; before that, the words.
    score: log-probability after the length penalty.
    log_probability: of the pieces and EOS, in nats.
    pieces: the pieces of the text, without EOS.
    tokens: the words that the model wrote, with a space between two; empty if they are the text.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[int, ...] = ()
    tokens: str = ""


@dataclass(frozen=True)
class WordAlignment:
    """The source word that each word of the best translation comes from; words are separated by
    whitespace.

    In a run that tokenizes its text, these are the words of the source and of `Candidate.tokens`.

    pairs: (source word, target word), both counted from 0.
    source_words, target_words: the characters [start, end) of each word.
    """

    pairs: list[Pair]
    source_words: list[list[int]]
    target_words: list[list[int]]


@dataclass(frozen=True)
class PieceScores:
    """Log-probabilities of the parts of the best translation, in nats.

    pieces: each piece, and at last the end, with its log-probability.
    words: the sum of each word, as in `WordAlignment`; together with the end, all make that of the
        translation.
    """

    pieces: list[tuple[str, float]]
    words: list[float]


@dataclass(frozen=True)
class Translation:
    """The result for one line.

    line: its number, from 1.
    candidates: the n best translations, best first; empty for a line without text.
    dropped: pieces at the end of the source that are not translated, beyond the model's maximum
        (filters.max_pieces).
    unknown: number of pieces of the source that the model reads as <unk>.
    degenerate: what is wrong with the best translation, as far as can be seen without a reference.
    alignment, parts: None if not requested, or for a line without text.
    other: the translation with the other tree of its request, if there is one.
    rescored: log-probability of the best translation with the other tree; 0 for a line without
        text.
    """

    line: int
    candidates: tuple[Candidate, ...] = ()
    dropped: int = 0
    unknown: int = 0
    degenerate: Reason | None = None
    alignment: WordAlignment | None = None
    parts: PieceScores | None = None
    other: Translation | None = None
    rescored: float = 0.0

    @property
    def best(self) -> Candidate:
        """Return the best translation; for a line without text, an empty one with the score 0."""
        return self.candidates[0] if self.candidates else _EMPTY

    @property
    def text(self) -> str:
        """Return the text of the best translation."""
        return self.best.text

    @property
    def difference(self) -> float:
        """Compute how the other tree changes the log-probability of the best translation, in nats;
        usually below 0."""
        return self.rescored - self.best.log_probability


_EMPTY = Candidate("", 0.0, 0.0)


def joined(translation: Translation, tokenizer: WordTokenizer) -> Translation:
    """Join the words of every candidate into text; alignments stay those of the words."""
    if not tokenizer.tokenizes:
        return translation
    candidates = [
        replace(candidate, text=tokenizer.join(candidate.text), tokens=candidate.text)
        for candidate in translation.candidates
    ]
    other = translation.other and joined(translation.other, tokenizer)
    return replace(translation, candidates=tuple(candidates), other=other)


def make_translation(
    request: Request,
    source: Source,
    hypotheses: Sequence[Hypothesis],
    vocabulary: Vocabulary,
    limit: int,
) -> Translation:
    """Make the translation of a line from its hypotheses; limit: maximum number of pieces, EOS
    included."""
    candidates = tuple(make_candidate(hypothesis, vocabulary) for hypothesis in hypotheses)
    at_limit = len(candidates[0].pieces) + 1 >= limit
    reason = degenerate(request.text, candidates[0].text, at_limit=at_limit)
    return Translation(request.line, candidates, source.dropped, source.unknown, reason)


def make_candidate(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Candidate:
    """Join the pieces of a hypothesis into text."""
    text = _joined(hypothesis.ids, vocabulary)
    return Candidate(text, hypothesis.score, hypothesis.log_probability, tuple(hypothesis.ids))


def piece_spans(pieces: tuple[int, ...], vocabulary: Vocabulary) -> IntArray:
    """Find the characters of the joined text that each piece adds: (T, 2); the last byte of a
    character adds it."""
    text = _joined(pieces, vocabulary)
    # the bytes of an incomplete character are joined into other characters than the complete one
    parts = (_joined(pieces[:end], vocabulary) for end in range(1, len(pieces)))
    shared = (len(commonprefix([text, part])) for part in parts)  # noqa: RUF071
    ends = [*accumulate(shared, max), len(text)][: len(pieces)]
    return int_pairs(list(zip([0, *ends], ends, strict=False)))


def _joined(pieces: Sequence[int], vocabulary: Vocabulary) -> str:
    # byte pieces can spell the end of a line, but the output must stay one line, also for programs
    # that take \r for one
    return vocabulary.decode(pieces).replace("\n", " ").replace("\r", " ")


def degenerate(source: str, translation: str, *, at_limit: bool) -> Reason | None:
    """Find out why the translation of a source with text is degenerate; None if it is not.

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
    """Return whether a phrase or a string of characters is repeated again and again."""
    return _repeats_phrase(text.split()) or _REPEATED_CHARACTERS.search(text) is not None


def _repeats_phrase(words: Sequence[str]) -> bool:
    """Return whether a phrase occurs 4 times in a row: three phrases of words then equal those one
    phrase earlier."""
    for size in range(1, len(words) // _REPEATED_PHRASES + 1):
        same = 0
        for word, earlier in zip(words[size:], words, strict=False):
            same = same + 1 if word == earlier else 0
            if same == size * (_REPEATED_PHRASES - 1):
                return True
    return False
