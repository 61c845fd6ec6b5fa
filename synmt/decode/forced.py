"""Forced decoding: the log-probability that a model gives to each piece of a given target.

log P(y | x) = Σ_t log P(y_t | y_<t, x)        t runs over the pieces and EOS
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from synmt.arrays import DoubleArray
from synmt.data.batch import Batch
from synmt.data.vocabulary import BOS, EOS, PAD, IdArray
from synmt.model.attention import Memory
from synmt.model.capture import Activations, capture
from synmt.model.seq2seq import Seq2Seq

_LOGITS = 1 << 24
"""Maximum number of logits computed at a time."""


@dataclass(frozen=True, eq=False)
class ForcedDecoding:
    """The result of forced decoding for one pair.

    log_probabilities: (T,) of each target piece and of EOS, in nats.
    cross: (T, S) attention to the source's pieces and its EOS, by layer and head of the decoder; an
        LSTM has one head, in its last layer, which gives EOS no weight.
    """

    log_probabilities: DoubleArray
    cross: dict[tuple[int, int], DoubleArray]

    @property
    def log_probability(self) -> float:
        """Of all pieces and EOS, in nats."""
        return float(self.log_probabilities.sum())


@torch.inference_mode()
def force(model: Seq2Seq, batch: Batch, *, attention: bool = False) -> list[ForcedDecoding]:
    """Decode the targets of a batch, which is on the model's device; `attention` records
    cross-attention."""
    assert not model.training
    with capture(model, ("cross",) if attention else ()) as captured:
        memory, _ = model.remember(batch.source, batch.source_signals)
        states = model.decode(
            memory, batch.target_input, model.syntax("target", batch.target_signals)
        )  # (B, T, D)
    rows = _rows(piece_log_probabilities(model, states, batch.target_output), batch.target_output)
    cross = cross_by_head(captured)
    return [
        ForcedDecoding(
            row, {head: weights[number, : len(row), :width] for head, weights in cross.items()}
        )
        for number, (row, width) in enumerate(
            zip(rows, batch.source.mask.sum(1).tolist(), strict=True)
        )
    ]


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
    ids = [torch.from_numpy(target).long() for target in targets]
    inputs = pad_sequence([torch.cat((one.new_tensor([BOS]), one)) for one in ids], True, PAD).to(
        device
    )  # (N, T)
    outputs = pad_sequence([torch.cat((one, one.new_tensor([EOS]))) for one in ids], True, PAD).to(
        device
    )  # (N, T)
    rows = torch.tensor(sentences, device=device)  # (N,)
    states = model.decode(
        _of_sentences(memory, rows), inputs, model.syntax("target", {})
    )  # (N, T, D)
    return _rows(piece_log_probabilities(model, states, outputs), outputs)


def piece_log_probabilities(model: Seq2Seq, states: Tensor, targets: Tensor) -> Tensor:
    """Compute log P of targets (B, T) from states (B, T, D), in float32: (B, T)."""
    flat, ids = states.flatten(0, 1), targets.flatten()  # (B T, D), (B T,)
    rows = max(1, _LOGITS // model.output_weight.size(0))
    logs = [
        model.logits(flat[first : first + rows])
        .float()
        .log_softmax(-1)
        .gather(1, ids[first : first + rows, None])  # (n, 1)
        for first in range(0, len(flat), rows)
    ]
    return torch.cat(logs)[:, 0].view_as(targets)


def _rows(logs: Tensor, targets: Tensor) -> list[DoubleArray]:
    """Remove the padding of (B, T): B arrays."""
    lengths = (targets != PAD).sum(1).tolist()
    return [row[:length] for row, length in zip(logs.cpu().double().numpy(), lengths, strict=True)]


def _of_sentences(memory: Memory, rows: Tensor) -> Memory:
    """Select sentences (N,) of a memory; a sentence may occur several times."""
    return memory.edit(
        states=memory.states[rows],
        mask=memory.mask[rows],
        ends=(memory.ends[0][:, rows], memory.ends[1][:, rows])
        if memory.ends is not None
        else None,
        annotations=memory.annotations[rows] if memory.annotations is not None else None,
        weights=None,
    )


def cross_by_head(captured: Activations) -> dict[tuple[int, int], DoubleArray]:
    """Split the attention to the source by layer and head: (B, T, S) each."""
    arrays = {
        layer: weights.cpu().double().numpy() for layer, weights in captured.cross.items()
    }  # (B, H, T, S) each
    return {
        (layer, head + 1): array[:, head]
        for layer, array in arrays.items()
        for head in range(array.shape[1])
    }
