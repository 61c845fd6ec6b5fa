"""Several models that translate together, piece by piece.

    P(y_t | y_<t, x) = 1/M Σ_m P_m(y_t | y_<t, x)

The members vote with their probabilities (linear interpolation): a piece that one of them is sure of stays possible,
where a mean of log-probabilities would let each of them forbid it. One model is an ensemble of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from synmt.data.batch import Sequences
from synmt.model.linear import linear
from synmt.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Member:
    """A model and what it reads of B sentences; members of an ensemble share the target's vocabulary.

    signals: what the model reads of the trees.
    """

    model: Seq2Seq
    source: Sequences
    signals: dict[str, Tensor]


class Ensemble:
    """The members, each in the middle of decoding B sentences with K hypotheses each.

    All hypotheses of a sentence begin as one: the first step runs once for them.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        assert members
        assert not any(member.model.training for member in members)
        sizes = {member.model.output_weight.size(0) for member in members}
        assert len(sizes) == 1, sizes
        self._models = [member.model for member in members]
        memories = [member.model.remember(member.source, member.signals)[0] for member in members]
        self._states = [model.start(memory) for model, memory in zip(self._models, memories, strict=True)]
        self._begun = False

    def step(self, pieces: Tensor) -> Tensor:
        """Feed the newest pieces (B, K), and compute log P of the next in float32: (B, K, V), free to be changed."""
        fed = pieces if self._begun else pieces[:, :1]  # (B, K) or (B, 1)
        logs = self._log_probabilities(0, fed)  # (B, K, V)
        for number in range(1, len(self._models)):
            logs = torch.logaddexp(logs, self._log_probabilities(number, fed))  # (B, K, V)
        if len(self._models) > 1:
            logs -= math.log(len(self._models))
        return logs if fed.size(1) == pieces.size(1) else logs.repeat(1, pieces.size(1), 1)

    def _log_probabilities(self, number: int, pieces: Tensor) -> Tensor:
        model = self._models[number]
        states = model.step(self._states[number], pieces, model.syntax("target", {}))  # (B, K, D)
        # on a CPU log_softmax takes a fifth of the time of logsumexp
        return linear(states, model.output_weight).float().log_softmax(-1)  # (B, K, V)

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep some sentences (B',), or all, and go on from the given hypotheses of each, (B', K')."""
        beams = beams if self._begun else torch.zeros_like(beams)
        self._begun = True
        for state in self._states:
            state.select(sentences, beams)
