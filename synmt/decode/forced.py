"""Forced decoding: the log-probability that models give to each piece of a given target.

log P(y | x) = Σ_t log P(y_t | y_<t, x)        t runs over the pieces and EOS

In an ensemble of M models, P(y_t) = 1/M Σ_m P_m(y_t), as in the search, and attention weights are
averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from synmt.arrays import DoubleArray, IntArray
from synmt.data.vocabulary import BOS, EOS, PAD, Vocabulary, word_of
from synmt.decode.alignment import (
    attention_to_source,
    best_pairs,
    whitespace_words,
    word_weights,
)
from synmt.decode.inputs import Source
from synmt.decode.loaded_model import LoadedModel
from synmt.decode.translation import PieceScores, Translation, WordAlignment, piece_spans
from synmt.model.attention import Memory
from synmt.model.capture import capture
from synmt.model.seq2seq import Seq2Seq

_LOGITS = 1 << 24
"""Maximum number of logits computed at a time."""


@dataclass(frozen=True, eq=False)
class ForcedDecoding:
    """The result of forced decoding for one target.

    log_probabilities: (T,) of each target piece and of EOS, in nats.
    cross: (T, S) attention to the source's pieces, its EOS, to which an LSTM gives no weight, and
        all else that the decoder may attend to; (T, 0) if not requested.
    """

    log_probabilities: DoubleArray
    cross: DoubleArray


@torch.inference_mode()
def force(
    model: Seq2Seq, memory: Memory, targets: Sequence[Sequence[int]], *, attention: bool = False
) -> list[ForcedDecoding]:
    """Decode a target for each sentence of a memory; `attention` records cross-attention."""
    assert not model.training
    inputs, outputs = (
        pad_sequence([torch.tensor(row) for row in rows], True, PAD).to(memory.states.device)
        for rows in ([[BOS, *row] for row in targets], [[*row, EOS] for row in targets])
    )  # (N, T)
    with capture(model, ("cross",) if attention else ()) as captured:
        states = model.decode(memory, inputs, model.syntax("target", {}))  # (N, T, D)
    rows = max(1, _LOGITS // model.output_weight.size(0))
    parts = zip(states.flatten(0, 1).split(rows), outputs.flatten().split(rows), strict=True)
    logs = [
        model.logits(part).float().log_softmax(-1).gather(1, chosen[:, None])  # (n, 1)
        for part, chosen in parts
    ]
    by_target = torch.cat(logs).view_as(outputs).cpu().double().numpy()  # (N, T)
    crosses = attention_to_source(captured.cross) if attention else np.zeros((*outputs.shape, 0))
    return [
        ForcedDecoding(row[: len(target) + 1], cross[: len(target) + 1])
        for row, cross, target in zip(by_target, crosses, targets, strict=True)
    ]


def sentences_of(memory: Memory, rows: Tensor) -> Memory:
    """Select sentences (N,) of a memory; a sentence may occur several times."""
    ends, annotations = memory.ends, memory.annotations
    return memory.edit(
        states=memory.states[rows],
        mask=memory.mask[rows],
        ends=ends and (ends[0][:, rows], ends[1][:, rows]),
        annotations=None if annotations is None else annotations[rows],
        weights=None,
    )


def rescore(
    models: Sequence[LoadedModel],
    batches: Iterable[Sequence[list[Source]]],
    translations: Sequence[Translation],
    *,
    attention: bool = False,
) -> Iterator[tuple[Source, ForcedDecoding]]:
    """Decode the best translation of each line, given its source; columns of the attention beyond
    the source's EOS are left out.

    batches: for each batch the sources of each model, as `Translator.read` yields them.
    """
    for batch in batches:
        targets = [translations[source.index].best.pieces for source in batch[0]]
        by_model = (
            force(loaded.model, loaded.encode(sources), targets, attention=attention)
            for loaded, sources in zip(models, batch, strict=True)
        )
        for source, *forced in zip(batch[0], *by_model, strict=True):
            logs = np.logaddexp.reduce([decoding.log_probabilities for decoding in forced], axis=0)
            cross = np.mean([decoding.cross[:, : len(source) + 1] for decoding in forced], axis=0)
            yield source, ForcedDecoding(logs - np.log(len(models)), cross)


def align(
    translation: Translation, line: str, source: Source, cross: DoubleArray, target: Vocabulary
) -> Translation:
    """Add the word alignment with its line to a translation, from the attention to its source."""
    best = translation.best
    words = whitespace_words(line), whitespace_words(best.text)
    spans = piece_spans(best.pieces, target)
    pairs = best_pairs(word_weights(cross, spans, source.spans, *words))
    places = (word_spans.tolist() for word_spans in words)
    return replace(translation, alignment=WordAlignment(pairs, *places))


def scored_pieces(
    pieces: Sequence[int], forced: ForcedDecoding, target: Vocabulary
) -> list[tuple[str, float]]:
    """Pair the pieces of a target, and its end, with their log-probabilities."""
    names = [*target.pieces(pieces), "</s>"]
    return list(zip(names, forced.log_probabilities.tolist(), strict=True))


def sum_by_word(values: DoubleArray, spans: IntArray, words: IntArray) -> DoubleArray:
    """Sum the values of pieces (T,) with spans (T, 2) over each word of (W, 2): (W,)."""
    owners = word_of(spans, words)  # (T,)
    owned = owners >= 0  # (T,)
    return np.bincount(owners[owned], values[owned], minlength=len(words)).astype(np.float64)


def with_parts(translation: Translation, forced: ForcedDecoding, target: Vocabulary) -> Translation:
    """Add the log-probabilities of pieces and words."""
    best = translation.best
    spans, words = piece_spans(best.pieces, target), whitespace_words(best.text)
    of_words = sum_by_word(forced.log_probabilities[:-1], spans, words).tolist()
    of_pieces = scored_pieces(best.pieces, forced, target)
    return replace(translation, parts=PieceScores(of_pieces, of_words))
