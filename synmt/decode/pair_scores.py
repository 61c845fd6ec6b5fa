"""The log-probability of a given translation, by its pieces, and the sums over a text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synmt.arrays import DoubleArray, IntArray


@dataclass(frozen=True)
class Token:
    """One piece of a target, or EOS.

    text: the characters that it covers, with the space before a word; empty for EOS, and for every
        byte of a character except the last.
    start, end: their position in the target.
    log_probability: given everything before it, in nats.
    """

    text: str
    start: int
    end: int
    log_probability: float


@dataclass(frozen=True, eq=False)
class PairScore:
    """The log-probability of a target given its source.

    source, target: their words, if the run tokenizes text.
    line: its number, from 1.
    log_probabilities: (T,) of each piece and of EOS; empty for a source without text, which cannot
        be scored.
    spans: (T, 2) characters of the target that each piece covers; EOS covers none, at the end.
    source_dropped, target_dropped: pieces at the end beyond the model's maximum. A target that lost
    some is scored
        without them and without EOS.
    unknown: pieces of the target that the vocabulary does not have; they are scored as <unk>.
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
        """Number of pieces scored, EOS included."""
        return len(self.log_probabilities)

    @property
    def log_probability(self) -> float | None:
        """Log-probability of the target, in nats; None if the source has no text."""
        return float(self.log_probabilities.sum()) if self.pieces else None

    @property
    def perplexity(self) -> float | None:
        """Perplexity by piece; None if the source has no text."""
        return (
            _perplexity(self.log_probability, self.pieces)
            if self.log_probability is not None
            else None
        )

    @property
    def tokens(self) -> list[Token]:
        """The pieces with their characters and log-probabilities."""
        rows = zip(self.spans.tolist(), self.log_probabilities.tolist(), strict=True)
        return [Token(self.target[start:end], start, end, value) for (start, end), value in rows]


class Totals:
    """Sums over a text. Sources without text and targets that were truncated are only counted, in
    `left_out`."""

    def __init__(self) -> None:
        self.pairs = self.left_out = self.unknown = 0
        self.log_probability = 0.0
        self.units = {"piece": 0, "word": 0, "character": 0}

    def add(self, score: PairScore) -> None:
        """Add one pair."""
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
        """Mean log-probability of a sentence, in nats."""
        return self.log_probability / self.pairs if self.pairs else 0.0

    def perplexity(self, unit: str) -> float:
        """Compute the perplexity by piece, word or character; the end of a sentence counts as
        one."""
        return _perplexity(self.log_probability, max(1, self.units[unit]))

    def as_json(self) -> dict[str, Any]:
        """Return plain values; None where there are no pairs, and for an infinite perplexity."""
        perplexities = {
            unit: finite(self.perplexity(unit)) if self.pairs else None for unit in self.units
        }
        return {
            "pairs": self.pairs,
            "left_out": self.left_out,
            "unknown_pieces": self.unknown,
            "mean_log_probability": self.mean if self.pairs else None,
            **{f"{unit}s": count for unit, count in self.units.items()},
            **{f"perplexity_by_{unit}": value for unit, value in perplexities.items()},
        }


def _perplexity(log_probability: float, units: int) -> float:
    mean = -log_probability / units
    return math.exp(mean) if mean < 700 else math.inf


def finite(value: float | None) -> float | None:
    """Replace infinity, which JSON does not have, by None."""
    return value if value is not None and math.isfinite(value) else None
