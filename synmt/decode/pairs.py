"""Log-probabilities of given translations: pairs of raw text, in the order of the lines.

    log P(y | x) = Σ_t log P(y_t | y_<t, x)        perplexity = exp(-log P(y | x) / T)

T counts the pieces of y and EOS. Perplexities by piece depend on the vocabulary; those by word or
by character, where the end of the sentence counts as one more, can be compared between
vocabularies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from synmt.arrays import SIDES, DoubleArray, IntArray
from synmt.data.batch import collate
from synmt.data.vocabulary import UNK, Pieces
from synmt.decode.beam import broken_weights
from synmt.decode.forced import force_targets
from synmt.decode.inputs import Source, Trees, batches, windows, zip_trees
from synmt.decode.remote import RemoteTranslator, in_order_remotely
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.syntax.parse import Parse

_PIECES = 50
"""Target pieces in a batch, padding included, per sentence that it may have."""

Alternatives = tuple[str, Sequence[str]]
"""A source, and translations of it."""


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
        some is scored without them and without EOS.
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
        total = self.log_probability
        return None if total is None else _perplexity(total, self.pieces)

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


def score_pairs(
    translator: Translator,
    sources: Iterable[str],
    targets: Iterable[str],
    parses: Iterable[Parse] | None = None,
    *,
    other: RemoteTranslator | None = None,
) -> Iterator[PairScore]:
    """Score each target as a translation of the source on the same line.

    sources, targets: raw text.
    parses: a tree for each source, of its words if the run tokenizes text; without them, sources
        are parsed if the model reads trees.
    other: remote translators, which score several windows at once.
    """
    alternatives = ((source, (target,)) for source, target in _zip_lines(sources, targets))
    for [score] in score_alternatives(translator, alternatives, parses, other=other):
        yield score


def score_alternatives(
    translator: Translator,
    alternatives: Iterable[Alternatives],
    parses: Iterable[Parse] | None = None,
    *,
    other: RemoteTranslator | None = None,
) -> Iterator[list[PairScore]]:
    """Score several targets of each source, which is parsed and encoded once for all of them.

    Raises UsageError for an ensemble.

    other: remote translators, which score several windows at once.
    """
    translator.refuse_ensemble("a score of given translations")
    size = (other or translator).window
    pairs = enumerate(zip_trees(windows(alternatives, size), parses))
    items = ((1 + size * index, window) for index, window in pairs)
    if other:
        results = in_order_remotely(_score_window, other, items)
    else:
        results = (_score_window(translator, item) for item in items)
    for scores in results:
        yield from scores


@dataclass(frozen=True, eq=False)
class _Target:
    """A target in pieces.

    source, row: its source, and where this is in the memory.
    index: among the targets of its source.
    """

    source: Source
    row: int
    index: int
    pieces: Pieces


@torch.inference_mode()
def _score_window(
    translator: Translator, item: tuple[int, tuple[list[Alternatives], Trees]]
) -> list[list[PairScore]]:
    number, (raw, given) = item
    tokenize, tokenize_targets = (translator.tokenizers[side].tokenize_lines for side in SIDES)
    lines = tokenize([source for source, _ in raw])
    targets = iter(tokenize_targets([target for _, targets in raw for target in targets]))
    scores = [
        [PairScore(line, source, next(targets)) for _ in alternatives]
        for line, (source, (_, alternatives)) in enumerate(zip(lines, raw, strict=True), number)
    ]
    [loaded], size = translator.models, translator.options.batch_size
    for sources in translator.source_batches(lines, translator.trees(lines, given, number)):
        batch = collate([source.example for source in sources], loaded.reading).to(loaded.device)
        memory, _ = loaded.model.remember(batch.source, batch.source_signals)
        segmented = [
            _Target(source, row, index, translator.target.encode(score.target))
            for row, source in enumerate(sources)
            for index, score in enumerate(scores[source.index])
        ]
        longest, most = translator.max_pieces, _PIECES * size
        for part in batches(segmented, partial(_length, longest), sentences=size, pieces=most):
            ids = [one.pieces.ids[:longest] for one in part]
            logs = force_targets(loaded.model, memory, [one.row for one in part], ids)
            for target, values in zip(part, logs, strict=True):
                alternatives = scores[target.source.index]
                score = alternatives[target.index]
                alternatives[target.index] = _scored(score, target, longest, values)
    return scores


def _length(longest: int, target: _Target) -> int:
    return min(longest, len(target.pieces.ids))


def _scored(score: PairScore, target: _Target, longest: int, values: DoubleArray) -> PairScore:
    if not np.isfinite(values).all():
        raise broken_weights()
    pieces, end = target.pieces, len(score.target)
    dropped = max(0, len(pieces.ids) - longest)
    spans = np.concatenate((pieces.spans[:longest], [[end, end]]))  # (T, 2)
    # the probability of EOS after half a sentence is meaningless
    scored = len(spans) - (dropped > 0)
    return replace(
        score,
        log_probabilities=values[:scored],
        spans=spans[:scored],
        source_dropped=target.source.dropped,
        target_dropped=dropped,
        unknown=int((pieces.ids[:longest] == UNK).sum()),
    )


def _zip_lines(sources: Iterable[str], targets: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            longer = "sources than targets" if target is None else "targets than sources"
            raise SynmtError(
                f"there are more {longer}: one has no line {number}",
                do="Line n of both must belong together",
            )
        yield source, target
