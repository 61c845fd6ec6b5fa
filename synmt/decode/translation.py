"""What becomes of a line: its translations, and what a person should know of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from synmt.arrays import IntArray
from synmt.data.vocabulary import Vocabulary
from synmt.decode.alignment import Pair
from synmt.decode.degenerate import Reason
from synmt.decode.hypotheses import Hypothesis


@dataclass(frozen=True)
class Candidate:
    """One translation of a line.

    score: the log-probability under the length penalty.
    log_probability: of its pieces and EOS, in nats.
    pieces: what it was joined from, without EOS.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[int, ...] = ()


@dataclass(frozen=True)
class Aligned:
    """Which source word each word of the best translation comes from; words stand between blanks.

    pairs: source word and target word, both from 0.
    source_words, target_words: (W, 2) characters of the words.
    """

    pairs: list[Pair]
    source_words: IntArray
    target_words: IntArray


@dataclass(frozen=True)
class Translation:
    """What became of one line.

    line: its number, from 1.
    candidates: the n best, best first; none for a line without text.
    dropped: pieces at the end of the source that were too many for the model and are not translated.
    unknown: what in the source the vocabulary has no piece for, and the model does not see.
    degenerate: why the best translation is none, as far as that can be told without a reference.
    aligned: where it was asked for, and the line has text.
    """

    line: int
    candidates: tuple[Candidate, ...] = ()
    dropped: int = 0
    unknown: tuple[str, ...] = ()
    degenerate: Reason | None = None
    aligned: Aligned | None = None

    @property
    def text(self) -> str:
        """The best translation; empty for a line without text."""
        return self.candidates[0].text if self.candidates else ""


NO_TRANSLATION = Candidate("", 0.0, 0.0)
"""That of a line without text."""


def make_candidate(hypothesis: Hypothesis, vocabulary: Vocabulary) -> Candidate:
    """Join the pieces of a hypothesis."""
    text = _joined(hypothesis.ids, vocabulary)
    return Candidate(text, hypothesis.score, hypothesis.log_probability, tuple(hypothesis.ids))


def piece_spans(pieces: tuple[int, ...], vocabulary: Vocabulary) -> IntArray:
    """Find the characters of the joined text that each piece has added: (T, 2); of bytes the last has the character."""
    text = _joined(pieces, vocabulary)
    # an unfinished character is spelt with others than the finished one
    shared = (_shared(text, _joined(pieces[:end], vocabulary)) for end in range(1, len(pieces)))
    ends = [*accumulate(shared, max), len(text)][: len(pieces)]
    return np.array(list(zip([0, *ends], ends, strict=False)), dtype=np.int64).reshape(-1, 2)


def _joined(pieces: tuple[int, ...] | list[int], vocabulary: Vocabulary) -> str:
    # bytes can spell a line end, and a line of output must stay one
    return vocabulary.decode(pieces).replace("\n", " ")


def _shared(one: str, other: str) -> int:
    """Count the characters that two texts begin with alike."""
    different = (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(different, min(len(one), len(other)))
