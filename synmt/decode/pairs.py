"""How likely given translations are: pairs of raw text to log-probabilities, in the order of the lines.

    log P(y | x) = Σ_t log P(y_t | y_<t, x)        perplexity = exp(-log P(y | x) / T)

T counts the pieces of y and EOS. Perplexities by piece depend on the vocabulary; those by word or by character, where
the end of the sentence counts as one more, can be compared between vocabularies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

import numpy as np
import torch

from synmt.arrays import DoubleArray, IntArray
from synmt.data.batch import collate
from synmt.data.vocabulary import UNK, IdArray
from synmt.decode.forced import force_again
from synmt.decode.inputs import batches
from synmt.decode.source import Source
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.syntax.parse import Parse

_PIECES = 50
"""For each sentence that a batch may have, so many target pieces fit into it, padding included."""

Alternatives = tuple[str, Sequence[str]]
"""A source, and translations of it."""


@dataclass(frozen=True)
class Token:
    """One piece of a target, or its end.

    text: the characters that it stands for, a blank before a word included; none for EOS, and none for all but the
        last of the bytes that spell one character.
    start, end: where they stand in the target.
    log_probability: given all before it, in nats.
    """

    text: str
    start: int
    end: int
    log_probability: float


@dataclass(frozen=True, eq=False)
class PairScore:
    """How likely the model finds a target.

    line: its number, from 1.
    log_probabilities: (T,) of each piece and of EOS; empty for a source without text, which says nothing.
    spans: (T, 2) the characters of the target that each of them stands for; EOS stands at its end, for none.
    source_dropped, target_dropped: pieces at the end that were too many for the model. A target that lost some is
        scored without them and without EOS.
    unknown: pieces of the target that the vocabulary has no name for; they have the probability of the unknown piece.
    """

    line: int
    source: str
    target: str
    log_probabilities: DoubleArray = field(default_factory=lambda: np.zeros(0))
    spans: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    source_dropped: int = 0
    target_dropped: int = 0
    unknown: int = 0

    @property
    def pieces(self) -> int:
        """How many pieces were scored, EOS included."""
        return len(self.log_probabilities)

    @property
    def log_probability(self) -> float | None:
        """Of the target, in nats; None where the source has no text."""
        return float(self.log_probabilities.sum()) if self.pieces else None

    @property
    def perplexity(self) -> float | None:
        """By piece; None where the source has no text."""
        return _perplexity(self.log_probability, self.pieces) if self.log_probability is not None else None

    @property
    def tokens(self) -> list[Token]:
        """Give each piece with its characters and its log-probability."""
        rows = zip(self.spans.tolist(), self.log_probabilities.tolist(), strict=True)
        return [Token(self.target[start:end], start, end, value) for (start, end), value in rows]


def score_pairs(
    translator: Translator, sources: Iterable[str], targets: Iterable[str], parses: Iterable[Parse] | None = None
) -> Iterator[PairScore]:
    """Score each target as a translation of the source on the same line.

    parses: a tree for each source; without them the recorded parser is applied, if the model reads trees.
    """
    given = ((source, (target,)) for source, target in _side_by_side(sources, targets))
    for [score] in score_alternatives(translator, given, parses):
        yield score


def score_alternatives(
    translator: Translator, given: Iterable[Alternatives], parses: Iterable[Parse] | None = None
) -> Iterator[list[PairScore]]:
    """Score several targets of each source, which is parsed and read once for all of them."""
    given, trees, number = iter(given), iter(parses) if parses is not None else None, 1
    while window := list(islice(given, translator.window)):
        lines = [source for source, _ in window]
        chosen = list(islice(trees, len(lines))) if trees is not None else None
        if chosen is not None and len(chosen) < len(lines):
            raise SynmtError(f"there are only {number - 1 + len(chosen)} trees", where=f"line {number + len(chosen)}")
        yield from _score_window(translator, window, translator.trees(lines, chosen, number), number)
        number += len(lines)
    # a reader of trees that has some left says so now
    if trees is not None and next(trees, None) is not None:
        raise SynmtError(f"there are more trees than lines, {number - 1}")


class Totals:
    """What a text adds up to. Sources without text and targets that were cut off are counted apart and left out."""

    def __init__(self) -> None:
        self.pairs = self.left_out = self.unknown = 0
        self.log_probability = 0.0
        self.units = {"piece": 0, "word": 0, "character": 0}

    def add(self, score: PairScore) -> None:
        """Count one pair."""
        if score.log_probability is None or score.target_dropped:
            self.left_out += 1
            return
        self.pairs += 1
        self.unknown += score.unknown
        self.log_probability += score.log_probability
        self.units["piece"] += score.pieces
        self.units["word"] += len(score.target.split()) + 1
        self.units["character"] += len(score.target) + 1

    @property
    def mean(self) -> float:
        """The log-probability of a sentence, on average, in nats."""
        return self.log_probability / self.pairs if self.pairs else 0.0

    def perplexity(self, unit: str) -> float:
        """By piece, word or character; the end of a sentence counts as one."""
        return _perplexity(self.log_probability, max(1, self.units[unit]))

    def as_json(self) -> dict[str, Any]:
        """Write all of it as plain values; None where there are no pairs, or for a perplexity beyond all numbers."""
        perplexities = {unit: finite(self.perplexity(unit)) if self.pairs else None for unit in self.units}
        return {
            "pairs": self.pairs,
            "left_out": self.left_out,
            "unknown_pieces": self.unknown,
            "mean_log_probability": self.mean if self.pairs else None,
            **{f"{unit}s": count for unit, count in self.units.items()},
            **{f"perplexity_by_{unit}": value for unit, value in perplexities.items()},
        }


@dataclass(frozen=True, eq=False)
class _Written:
    """A target that has been cut into pieces.

    row: of its source, in the memory.
    place: among the targets of its source.
    """

    row: int
    place: int
    ids: IdArray
    spans: IntArray
    dropped: int


@torch.inference_mode()
def _score_window(
    translator: Translator, window: Sequence[Alternatives], trees: Sequence[Parse | None], number: int
) -> list[list[PairScore]]:
    found = [
        [PairScore(number + index, source, target) for target in targets]
        for index, (source, targets) in enumerate(window)
    ]
    size = translator.decoding.batch_size
    for sources in translator.source_batches([source for source, _ in window], trees):
        batch = collate([one.example for one in sources], translator.reading).to(translator.device)
        memory, _ = translator.model.remember(batch.source, batch.source_signals)
        written = [
            _cut(translator, row, place, target)
            for row, one in enumerate(sources)
            for place, target in enumerate(window[one.index][1])
        ]
        for part in batches(written, lambda one: len(one.ids), sentences=size, pieces=_PIECES * size):
            logs = force_again(translator.model, memory, [one.row for one in part], [one.ids for one in part])
            for one, values in zip(part, logs, strict=True):
                targets = found[sources[one.row].index]
                targets[one.place] = _scored(targets[one.place], sources[one.row], one, values)
    return found


def _cut(translator: Translator, row: int, place: int, target: str) -> _Written:
    pieces, longest = translator.target.encode(target), translator.max_pieces
    return _Written(row, place, pieces.ids[:longest], pieces.spans[:longest], max(0, len(pieces.ids) - longest))


def _scored(empty: PairScore, source: Source, written: _Written, values: DoubleArray) -> PairScore:
    if not np.isfinite(values).all():
        raise SynmtError("the model gives no finite probabilities: its weights are broken")
    end = len(empty.target)
    spans = np.concatenate((written.spans, [[end, end]]))  # (T, 2)
    # EOS after half a sentence says nothing about the sentence
    scored = len(written.ids) + (written.dropped == 0)
    return PairScore(
        empty.line,
        empty.source,
        empty.target,
        values[:scored],
        spans[:scored],
        source.dropped,
        written.dropped,
        int((written.ids == UNK).sum()),
    )


def _perplexity(log_probability: float, units: int) -> float:
    mean = -log_probability / units
    return math.exp(mean) if mean < 700 else math.inf


def finite(value: float | None) -> float | None:
    """Give None for what JSON has no number for."""
    return value if value is not None and math.isfinite(value) else None


def _side_by_side(sources: Iterable[str], targets: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            longer = "sources than targets" if target is None else "targets than sources"
            raise SynmtError(f"there are more {longer}: one has no line {number}", do="Line n of both must be a pair")
        yield source, target
