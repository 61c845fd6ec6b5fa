"""A second look at translations: the models write them again, which tells how likely they are and what was looked at.

In an ensemble of M models, P(y_t) = 1/M Σ_m P_m(y_t), as in the search, and weights of attention are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from synmt.arrays import DoubleArray, IntArray
from synmt.data.batch import collate
from synmt.decode.alignment import blank_words, default_head_weights, word_alignment
from synmt.decode.forced import Forced, force
from synmt.decode.source import Source
from synmt.decode.translation import Aligned, Translation, piece_spans

if TYPE_CHECKING:
    from synmt.decode.loaded_model import Trees
    from synmt.decode.translator import Translator


@dataclass(frozen=True, eq=False)
class Rescored:
    """What the models say of a translation that they were made to write.

    source: (T, 2) which characters of the line each source piece stands for.
    log_probability: of its pieces and EOS, in nats.
    cross: (T', T + 1) weights of attention to the source, rows and columns as those of `Forced`; None without.
    """

    source: IntArray
    log_probability: float
    cross: DoubleArray | None


def rescore(
    translator: Translator,
    lines: Sequence[str],
    trees: Sequence[Trees],
    translations: Sequence[Translation],
    *,
    attention: bool = False,
) -> dict[int, Rescored]:
    """Make the models write the best translation of each line that has one, under given trees: by place of the line.

    trees: of the lines, for each of the translator's readers.
    """
    found = {}
    for parts in translator.parts(lines, trees):
        forced = [
            force(
                reader.model,
                collate(_pairs(part, translations), reader.reading).to(translator.device),
                attention=attention,
            )
            for reader, part in zip(translator.readers, parts, strict=True)
        ]
        for one, *several in zip(parts[0], *forced, strict=True):
            cross = np.mean([_weights(each) for each in several], axis=0) if attention else None
            found[one.index] = Rescored(one.spans, _log_probability(several), cross)
    return found


def align(translation: Translation, line: str, written: Rescored, translator: Translator) -> Translation:
    """Add which words of the line those of the translation come from."""
    assert written.cross is not None
    best = translation.candidates[0]
    words = blank_words(line), blank_words(best.text)
    spans = piece_spans(best.pieces, translator.target)
    pairs = word_alignment(written.cross, spans, written.source, *words)
    return replace(translation, aligned=Aligned(pairs, *words))


def _pairs(part: Sequence[Source], translations: Sequence[Translation]) -> list:
    return [
        replace(one.example, target=np.array(translations[one.index].candidates[0].pieces, dtype=np.int32))
        for one in part
    ]


def _log_probability(several: Sequence[Forced]) -> float:
    logs = [forced.log_probabilities for forced in several]
    return float((np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))).sum())


def _weights(forced: Forced) -> DoubleArray:
    return default_head_weights(forced.cross, max(layer for layer, _ in forced.cross))
