"""Log-probabilities of given translations: pairs of raw text, in the order of the lines.

    log P(y | x) = Σ_t log P(y_t | y_<t, x)        perplexity = exp(-log P(y | x) / T)

T counts the pieces of y and EOS. Perplexities by piece depend on the vocabulary; those by word or
by character, where the end of the sentence counts as one more, can be compared between
vocabularies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count

import numpy as np
import torch

from synmt.arrays import SIDES, DoubleArray, IntArray
from synmt.data.vocabulary import UNK
from synmt.decode.beam import broken_weights
from synmt.decode.forced import force, sentences_of
from synmt.decode.inputs import Trees, batches, windows, zip_windows
from synmt.decode.remote import SharedTranslator
from synmt.decode.translator import Translator
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
        self.units = Counter(piece=0, word=0, character=0)

    def add(self, score: PairScore) -> None:
        """Add one pair."""
        if score.log_probability is None or score.target_dropped:
            self.left_out += 1
            return
        self.pairs += 1
        self.unknown += score.unknown
        self.log_probability += score.log_probability
        words, characters = len(score.target.split()), len(score.target)
        self.units.update(piece=score.pieces, word=words + 1, character=characters + 1)

    @property
    def mean(self) -> float | None:
        """Mean log-probability of a sentence, in nats; None if there is no pair."""
        return self.log_probability / self.pairs if self.pairs else None

    def perplexity(self, unit: str) -> float | None:
        """Compute the perplexity by piece, word or character; the end of a sentence counts as
        one."""
        return _perplexity(self.log_probability, self.units[unit]) if self.pairs else None


def _perplexity(log_probability: float, units: int) -> float:
    # JSON has null in place of infinity
    mean = -log_probability / units
    return math.exp(mean) if mean < 700 else math.inf


def score_pairs(
    translator: Translator | SharedTranslator,
    sources: Iterable[str],
    targets: Iterable[str],
    parses: Iterable[Parse] | None = None,
) -> Iterator[PairScore]:
    """Score each target as a translation of the source on the same line.

    sources, targets: raw text.
    parses: a tree for each source, of its words if the run tokenizes text; without them, sources
        are parsed if the model reads trees.
    """
    pairs = zip_windows(windows(sources, translator.window), targets, "targets")
    alternatives = (
        (source, (target or "",))
        for window, others in pairs
        for source, target in zip(window, others, strict=True)
    )
    return chain.from_iterable(score_alternatives(translator, alternatives, parses))


def score_alternatives(
    translator: Translator | SharedTranslator,
    alternatives: Iterable[Alternatives],
    parses: Iterable[Parse] | None = None,
) -> Iterator[list[PairScore]]:
    """Score several targets of each source, which is parsed and encoded once for all of them.

    Raises UsageError for an ensemble.
    """
    if isinstance(translator, Translator):
        translator = SharedTranslator(translator, translator.window)
    translator.translator.refuse_ensemble("a score of given translations")
    with_trees = zip_windows(windows(alternatives, translator.window), parses)
    items = zip(count(1, translator.window), with_trees, strict=False)
    return chain.from_iterable(translator.work(_score_window, items))


@torch.inference_mode()
def _score_window(
    translator: Translator, item: tuple[int, tuple[list[Alternatives], Trees]]
) -> list[list[PairScore]]:
    number, (raw, trees) = item
    tokenize, tokenize_targets = (translator.tokenizers[side].tokenize_lines for side in SIDES)
    lines = tokenize([source for source, _ in raw])
    targets = iter(tokenize_targets([target for _, targets in raw for target in targets]))
    scores = [
        [PairScore(line, source, next(targets)) for _ in alternatives]
        for line, (source, (_, alternatives)) in enumerate(zip(lines, raw, strict=True), number)
    ]
    [loaded], size = translator.models, translator.options.batch_size
    longest = translator.max_pieces
    for sources in translator.source_batches(lines, translator.trees(lines, trees, number)):
        memory = loaded.encode(sources)
        segmented = [
            (row, index, translator.target.encode(score.target))
            for row, source in enumerate(sources)
            for index, score in enumerate(scores[source.index])
        ]
        for part in batches(
            segmented,
            lambda example: min(longest, len(example[2].ids)),
            sentences=size,
            pieces=_PIECES * size,
        ):
            rows = torch.tensor([row for row, _, _ in part], device=memory.states.device)
            ids = [pieces.ids[:longest].tolist() for _, _, pieces in part]
            forced = force(loaded.model, sentences_of(memory, rows), ids)
            for (row, index, pieces), decoding in zip(part, forced, strict=True):
                source, values = sources[row], decoding.log_probabilities
                if not np.isfinite(values).all():
                    raise broken_weights()
                score, dropped = scores[source.index][index], max(0, len(pieces.ids) - longest)
                end = len(score.target)
                spans = np.concatenate((pieces.spans[:longest], [[end, end]]))  # (T, 2)
                # the probability of EOS after half a sentence is meaningless
                scored = len(spans) - (dropped > 0)
                scores[source.index][index] = replace(
                    score,
                    log_probabilities=values[:scored],
                    spans=spans[:scored],
                    source_dropped=source.dropped,
                    target_dropped=dropped,
                    unknown=int((pieces.ids[:longest] == UNK).sum()),
                )
    return scores
