"""Forced decoding: the log-probability that models give to each piece of a given target.

log P(y | x) = Σ_t log P(y_t | y_<t, x)        t runs over the pieces and EOS

In an ensemble of M models, P(y_t) = 1/M Σ_m P_m(y_t), as in the search, and attention weights are
averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from synmt.arrays import DoubleArray, IntArray
from synmt.data.batch import Batch, collate
from synmt.data.corpus import Example
from synmt.data.vocabulary import BOS, EOS, PAD, IdArray, Vocabulary
from synmt.decode.alignment import (
    attention_to_source,
    best_pairs,
    whitespace_words,
    word_weights,
)
from synmt.decode.inputs import Source
from synmt.decode.loaded_model import LoadedModel
from synmt.decode.translation import Translation, WordAlignment, piece_spans
from synmt.model.attention import Memory
from synmt.model.capture import capture
from synmt.model.seq2seq import Seq2Seq

_LOGITS = 1 << 24
"""Maximum number of logits computed at a time."""


@dataclass(frozen=True, eq=False)
class ForcedDecoding:
    """The result of forced decoding for one pair.

    log_probabilities: (T,) of each target piece and of EOS, in nats.
    cross: (T, S) attention to the source's pieces and its EOS, to which an LSTM gives no weight;
        None if not requested.
    """

    log_probabilities: DoubleArray
    cross: DoubleArray | None


@torch.inference_mode()
def force(model: Seq2Seq, batch: Batch, *, attention: bool = False) -> list[ForcedDecoding]:
    """Decode the targets of a batch, which is on the model's device; `attention` records
    cross-attention."""
    assert not model.training
    with capture(model, ("cross",) if attention else ()) as captured:
        memory, _ = model.remember(batch.source, batch.source_signals)
        syntax = model.syntax("target", batch.target_signals)
        states = model.decode(memory, batch.target_input, syntax)  # (B, T, D)
    rows = _piece_log_probabilities(model, states, batch.target_output)
    if not attention:
        return [ForcedDecoding(row, None) for row in rows]
    widths = batch.source.mask.sum(1).tolist()
    found = zip(rows, attention_to_source(captured.cross), widths, strict=True)
    return [ForcedDecoding(row, cross[: len(row), :width]) for row, cross, width in found]


@torch.inference_mode()
def force_targets(
    model: Seq2Seq, memory: Memory, sentences: Sequence[int], targets: Sequence[IdArray]
) -> list[DoubleArray]:
    """Decode N targets of sources that are encoded already: log P of the pieces and EOS of each,
    (T,).

    sentences: (N,) row of the memory that each target translates; a source is encoded once for all
        of its targets.
    """
    assert not model.training
    device = memory.states.device
    inputs, outputs = (
        pad_sequence([torch.tensor(row) for row in rows], True, PAD).to(device)
        for rows in (
            [[BOS, *target.tolist()] for target in targets],
            [[*target.tolist(), EOS] for target in targets],
        )
    )  # (N, T)
    chosen = _of_sentences(memory, torch.tensor(sentences, device=device))
    states = model.decode(chosen, inputs, model.syntax("target", {}))  # (N, T, D)
    return _piece_log_probabilities(model, states, outputs)


def _piece_log_probabilities(model: Seq2Seq, states: Tensor, targets: Tensor) -> list[DoubleArray]:
    """Compute log P of targets (B, T) from states (B, T, D), in float32: B arrays without
    padding."""
    flat, ids = states.flatten(0, 1), targets.flatten()  # (B T, D), (B T,)
    rows = max(1, _LOGITS // model.output_weight.size(0))
    parts = zip(flat.split(rows), ids.split(rows), strict=True)
    logs = torch.cat(
        [
            model.logits(part).float().log_softmax(-1).gather(1, chosen[:, None])  # (n, 1)
            for part, chosen in parts
        ]
    )
    lengths = (targets != PAD).sum(1).tolist()
    by_target = logs.view_as(targets).cpu().double().numpy()  # (B, T)
    return [row[:length] for row, length in zip(by_target, lengths, strict=True)]


def _of_sentences(memory: Memory, rows: Tensor) -> Memory:
    """Select sentences (N,) of a memory; a sentence may occur several times."""
    ends, annotations = memory.ends, memory.annotations
    return memory.edit(
        states=memory.states[rows],
        mask=memory.mask[rows],
        ends=None if ends is None else (ends[0][:, rows], ends[1][:, rows]),
        annotations=None if annotations is None else annotations[rows],
        weights=None,
    )


@dataclass(frozen=True, eq=False)
class Rescored:
    """What models say about a translation that was just found.

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
        forced = []
        for model, own in zip(models, sources, strict=True):
            batch = collate(_with_targets(own, translations), model.reading).to(model.device)
            forced.append(force(model.model, batch, attention=attention))
        for source, *by_model in zip(sources[0], *forced, strict=True):
            logs = np.logaddexp.reduce([each.log_probabilities for each in by_model], axis=0)
            total = float((logs - np.log(len(models))).sum())
            cross = np.mean([each.cross for each in by_model], axis=0) if attention else None
            rescored[source.index] = Rescored(source.spans, total, cross)
    return rescored


def align(
    translation: Translation, line: str, rescored: Rescored, target: Vocabulary
) -> Translation:
    """Add the word alignment with its line to a translation."""
    assert rescored.cross is not None
    best = translation.candidates[0]
    words = whitespace_words(line), whitespace_words(best.text)
    spans = piece_spans(best.pieces, target)
    pairs = best_pairs(word_weights(rescored.cross, spans, rescored.source, *words))
    return replace(translation, alignment=WordAlignment(pairs, *words))


def _with_targets(sources: Sequence[Source], translations: Sequence[Translation]) -> list[Example]:
    targets = [translations[one.index].candidates[0].pieces for one in sources]
    return [
        replace(one.example, target=np.array(target, dtype=np.int32))
        for one, target in zip(sources, targets, strict=True)
    ]
