"""Rescoring: force the models to decode a translation that was just found, for its probability and
attention.

In an ensemble of M models, P(y_t) = 1/M Σ_m P_m(y_t), as in the search, and attention weights are
averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synmt.arrays import DoubleArray, IntArray
from synmt.data.batch import collate
from synmt.data.corpus import Example
from synmt.data.vocabulary import Vocabulary
from synmt.decode.alignment import default_head_weights, whitespace_words, word_alignment
from synmt.decode.forced import ForcedDecoding, force
from synmt.decode.inputs import Source
from synmt.decode.loaded_model import LoadedModel
from synmt.decode.translation import Translation, WordAlignment, piece_spans


@dataclass(frozen=True, eq=False)
class Rescored:
    """What the models say about a translation.

    source: (T, 2) characters of the line that each source piece covers.
    log_probability: of its pieces and EOS, in nats.
    cross: (T', T + 1) attention to the source, with the rows and columns of `ForcedDecoding`; None
        if not requested.
    """

    source: IntArray
    log_probability: float
    cross: DoubleArray | None


def rescore(
    models: Sequence[LoadedModel],
    batches: Iterable[Sequence[list[Source]]],
    translations: Sequence[Translation],
    *,
    attention: bool = False,
) -> dict[int, Rescored]:
    """Rescore the best translation of each line: by the index of the line.

    batches: for each batch the sources of each model, as `Translator.batches` yields them.
    """
    rescored = {}
    for sources in batches:
        forced = [
            force(
                model.model,
                collate(_with_targets(own, translations), model.reading).to(model.device),
                attention=attention,
            )
            for model, own in zip(models, sources, strict=True)
        ]
        for source, *by_model in zip(sources[0], *forced, strict=True):
            cross = np.mean([_cross(each) for each in by_model], axis=0) if attention else None
            rescored[source.index] = Rescored(source.spans, _log_probability(by_model), cross)
    return rescored


def align(
    translation: Translation, line: str, rescored: Rescored, target: Vocabulary
) -> Translation:
    """Add the word alignment with its line to a translation."""
    assert rescored.cross is not None
    best = translation.candidates[0]
    words = whitespace_words(line), whitespace_words(best.text)
    pairs = word_alignment(
        rescored.cross, piece_spans(best.pieces, target), rescored.source, *words
    )
    return replace(translation, alignment=WordAlignment(pairs, *words))


def _with_targets(sources: Sequence[Source], translations: Sequence[Translation]) -> list[Example]:
    return [
        replace(
            one.example,
            target=np.array(translations[one.index].candidates[0].pieces, dtype=np.int32),
        )
        for one in sources
    ]


def _log_probability(by_model: Sequence[ForcedDecoding]) -> float:
    logs = [forced.log_probabilities for forced in by_model]
    return float((np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))).sum())


def _cross(forced: ForcedDecoding) -> DoubleArray:
    return default_head_weights(forced.cross, max(layer for layer, _ in forced.cross))
