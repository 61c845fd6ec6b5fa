"""Forced decoding: a model reads a source, is made to write given pieces, and says how likely each of them was.

log P(y | x) = Σ_t log P(y_t | y_<t, x)        t runs over the pieces and EOS
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from synmt.batch import Batch
from synmt.bootstrap import DoubleArray
from synmt.model.linear import linear
from synmt.model.seq2seq import Seq2Seq
from synmt.model.watching import Watched, watched
from synmt.syntax.pieces import PAD

_LOGITS = 1 << 24
"""So many logits are held at a time."""


@dataclass(frozen=True, eq=False)
class Forced:
    """What forced decoding tells of one pair.

    log_probabilities: (T,) of each target piece and of EOS, in nats.
    cross: (T, S) the weights of attention to the source's pieces and its EOS, by the decoder's layer and head; an LSTM
        has one head, in its last layer, and gives EOS nothing.
    """

    log_probabilities: DoubleArray
    cross: dict[tuple[int, int], DoubleArray]

    @property
    def log_probability(self) -> float:
        """Of all pieces and EOS, in nats."""
        return float(self.log_probabilities.sum())


@torch.inference_mode()
def force(model: Seq2Seq, batch: Batch, *, attention: bool = False) -> list[Forced]:
    """Make a model write the targets of a batch, which stands on the model's device; with `attention`, watch it."""
    assert not model.training
    with watched(model, ("cross",) if attention else ()) as seen:
        memory, _ = model.remember(batch.source, batch.source_signals)
        states = model.decode(memory, batch.target_input, model.syntax("target", batch.target_signals))  # (B, T, D)
    logs = piece_log_probabilities(states, model.output_weight, batch.target_output)  # (B, T)
    lengths = (batch.target_output != PAD).sum(1).tolist()
    rows = logs.double().cpu().numpy()  # (B, T)
    cross = _by_head(seen)
    return [
        Forced(row[:length], {head: weights[number, :length, :width] for head, weights in cross.items()})
        for number, (row, length, width) in enumerate(
            zip(rows, lengths, batch.source.mask.sum(1).tolist(), strict=True)
        )
    ]


def piece_log_probabilities(states: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """Compute log P of targets (B, T) from states (B, T, D) and the output matrix (V, D), in float32: (B, T)."""
    flat, ids = states.flatten(0, 1), targets.flatten()  # (B T, D), (B T,)
    rows = max(1, _LOGITS // weight.size(0))
    found = [
        linear(flat[first : first + rows], weight)
        .float()
        .log_softmax(-1)
        .gather(1, ids[first : first + rows, None])  # (n, 1)
        for first in range(0, len(flat), rows)
    ]
    return torch.cat(found)[:, 0].view_as(targets)


def _by_head(seen: Watched) -> dict[tuple[int, int], DoubleArray]:
    """Split weights of attention to the source by layer and head: (B, T, S) each."""
    arrays = {layer: weights.double().cpu().numpy() for layer, weights in seen.cross.items()}  # (B, H, T, S) each
    return {(layer, head + 1): array[:, head] for layer, array in arrays.items() for head in range(array.shape[1])}
