"""Log-probabilities of given translations: pairs of raw text, in the order of the lines.

    log P(y | x) = Σ_t log P(y_t | y_<t, x)        perplexity = exp(-log P(y | x) / T)

T counts the pieces of y and EOS. Perplexities by piece depend on the vocabulary; those by word or
by character, where the end of the sentence counts as one more, can be compared between
vocabularies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from synmt.arrays import DoubleArray, IntArray
from synmt.data.batch import collate
from synmt.data.vocabulary import UNK, IdArray
from synmt.decode.beam import broken_weights
from synmt.decode.forced import force_targets
from synmt.decode.inputs import Source, Trees, batches, windows, zip_trees
from synmt.decode.pair_scores import PairScore
from synmt.decode.remote import RemoteTranslator, in_order_remotely
from synmt.decode.translator import Translator
from synmt.errors import SynmtError
from synmt.syntax.parse import Parse

_PIECES = 50
"""Target pieces in a batch, padding included, per sentence that it may have."""

Alternatives = tuple[str, Sequence[str]]
"""A source, and translations of it."""


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
    other: remote translators, which scores several windows at once.
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

    other: remote translators, which scores several windows at once.
    """
    translator.refuse_ensemble("a score of given translations")
    size = other.window if other else translator.window
    numbered = _numbered(zip_trees(windows(alternatives, size), parses))
    if other is not None:
        results = in_order_remotely(_score_numbered, other, numbered)
    else:
        results = (_score_numbered(translator, window) for window in numbered)
    for scores in results:
        yield from scores


_Window = tuple[int, list[Alternatives], Trees]
"""The line number of the first source, sources with alternatives, and their trees."""


def _numbered(windows: Iterable[tuple[list[Alternatives], Trees]]) -> Iterator[_Window]:
    number = 1
    for window, trees in windows:
        yield number, window, trees
        number += len(window)


def _score_numbered(translator: Any, numbered: _Window) -> list[list[PairScore]]:
    number, raw, given = numbered
    window = _tokenize_window(translator, raw)
    trees = translator.trees([source for source, _ in window], given, number)
    return list(_score_window(translator, window, trees, number))


def _tokenize_window(translator: Translator, window: Sequence[Alternatives]) -> list[Alternatives]:
    """Tokenize raw text."""
    sources = translator.tokenizers["source"].tokenize_lines([source for source, _ in window])
    targets = iter(
        translator.tokenizers["target"].tokenize_lines(
            [target for _, targets in window for target in targets]
        )
    )
    return [
        (source, [next(targets) for _ in given])
        for source, (_, given) in zip(sources, window, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Target:
    """A target in pieces.

    row: of its source, in the memory.
    index: among the targets of its source.
    """

    row: int
    index: int
    ids: IdArray
    spans: IntArray
    dropped: int


@torch.inference_mode()
def _score_window(
    translator: Translator, window: Sequence[Alternatives], trees: Trees, number: int
) -> list[list[PairScore]]:
    scores = [
        [PairScore(number + index, source, target) for target in targets]
        for index, (source, targets) in enumerate(window)
    ]
    model, size = translator.models[0], translator.options.batch_size
    for sources in translator.source_batches([source for source, _ in window], trees):
        batch = collate([source.example for source in sources], model.reading).to(model.device)
        memory, _ = model.model.remember(batch.source, batch.source_signals)
        targets = [
            _segment(translator, row, index, target)
            for row, source in enumerate(sources)
            for index, target in enumerate(window[source.index][1])
        ]
        for part in batches(
            targets, lambda one: len(one.ids), sentences=size, pieces=_PIECES * size
        ):
            logs = force_targets(
                model.model, memory, [one.row for one in part], [one.ids for one in part]
            )
            for target, values in zip(part, logs, strict=True):
                source = sources[target.row]
                alternatives = scores[source.index]
                alternatives[target.index] = _scored(
                    alternatives[target.index], source, target, values
                )
    return scores


def _segment(translator: Translator, row: int, index: int, text: str) -> _Target:
    pieces, longest = translator.target.encode(text), translator.max_pieces
    return _Target(
        row, index, pieces.ids[:longest], pieces.spans[:longest], max(0, len(pieces.ids) - longest)
    )


def _scored(score: PairScore, source: Source, target: _Target, values: DoubleArray) -> PairScore:
    if not np.isfinite(values).all():
        raise broken_weights()
    end = len(score.target)
    spans = np.concatenate((target.spans, [[end, end]]))  # (T, 2)
    # the probability of EOS after half a sentence is meaningless
    scored = len(target.ids) + (target.dropped == 0)
    return replace(
        score,
        log_probabilities=values[:scored],
        spans=spans[:scored],
        source_dropped=source.dropped,
        target_dropped=target.dropped,
        unknown=int((target.ids == UNK).sum()),
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
