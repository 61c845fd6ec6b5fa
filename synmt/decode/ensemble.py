"""An ensemble: several models translate together, piece by piece.

    P(y_t | y_<t, x) = 1/M Σ_m P_m(y_t | y_<t, x)

Probabilities are averaged, not log-probabilities: a piece that one model is sure of stays possible, where an average
of log-probabilities would let each model rule it out. A single model is an ensemble of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt.data.batch import Sequences
from synmt.model.fast_decoder import FastDecoder
from synmt.model.linear import linear
from synmt.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Member:
    """A model and what it reads of B sentences; the members of an ensemble share the target vocabulary.

    signals: what the model reads of the trees.
    decoder: computes the steps instead of the model, with the same weights.
    """

    model: Seq2Seq
    source: Sequences
    signals: dict[str, Tensor]
    decoder: FastDecoder | None = None


class Ensemble:
    """The models with their decoder states, for B sentences with K hypotheses each.

    All hypotheses of a sentence start as one, so the first step runs once for all of them.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        assert members
        assert not any(member.model.training for member in members)
        sizes = {member.model.output_weight.size(0) for member in members}
        assert len(sizes) == 1, sizes
        self._members = tuple(members)
        memories = [member.model.remember(member.source, member.signals)[0] for member in members]
        self._states = [
            (member.decoder or member.model).start(memory) for member, memory in zip(members, memories, strict=True)
        ]
        self._started = False

    def step(self, pieces: Tensor) -> Tensor:
        """Read the newest pieces (B, K) and compute log P of the next in float32: (B, K, V); callers may change it."""
        inputs = pieces if self._started else pieces[:, :1]  # (B, K) or (B, 1)
        logs = self._log_probabilities(0, inputs)  # (B, K, V)
        for number in range(1, len(self._members)):
            logs = torch.logaddexp(logs, self._log_probabilities(number, inputs))  # (B, K, V)
        if len(self._members) > 1:
            logs -= math.log(len(self._members))
        return logs if inputs.size(1) == pieces.size(1) else logs.repeat(1, pieces.size(1), 1)

    def _log_probabilities(self, number: int, pieces: Tensor) -> Tensor:
        model, decoder, state = self._members[number].model, self._members[number].decoder, self._states[number]
        if decoder is not None:
            logits = decoder.step(state, pieces)  # (B, K, V)
        else:
            states = model.step(state, pieces, model.syntax("target", {}))  # (B, K, D)
            logits = linear(states, model.output_weight).float()  # (B, K, V)
        # on a CPU, log_softmax takes a fifth of the time of logsumexp; without new memory, two thirds
        return torch.log_softmax(logits, -1, out=logits)

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep some sentences (B',), or all if None, and continue the hypotheses `beams` of each, (B', K')."""
        beams = beams if self._started else torch.zeros_like(beams)
        self._started = True
        for state in self._states:
            state.select(sentences, beams)
