"""The parts of a recurrent decoder: cells, attention to the source, and the gate of syntactic
annotations.

Cells (Hochreiter & Schmidhuber, 1997; Gers et al., 2000), attention and input feeding (Luong et
al., 2015), gate (Tran & Bisk, 2018):

    [i; f; o; g] = W [x_t; h_t-1] + b
    c_t = σ(f) ⊙ c_t-1 + σ(i) ⊙ tanh(g)        h_t = σ(o) ⊙ tanh(c_t)
    α = softmax(h_t · W_a s_i)                 c = Σ_i α_i s_i        d = Σ_i α_i m_i
    z = σ(W_z h_t + b_z)                       h̃_t = tanh(W_o [c; h_t; z ⊙ d])
    x_t+1 = [E y_t; h̃_t]

s are the states of the source. m, d and z exist if a variant annotates the source with m.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from synmt.model.attention import Memory
from synmt.model.variant import Annotation

Ends = list[tuple[Tensor, Tensor]]
"""Output h and cell c of each layer, (N, D) both."""


def lstm_cell(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """Make one step of a cell: gates i, f, o, g concatenated (N, 4D), c (N, D) -> h, c, (N, D)
    both."""
    # c is float32, because it accumulates small changes over the whole sentence
    gates = gates.to(cell.dtype)
    width = cell.size(-1)
    i, f, o = gates[:, : 3 * width].sigmoid().chunk(3, -1)  # (N, D) each
    cell = f * cell + i * gates[:, 3 * width :].tanh()  # (N, D)
    return o * cell.tanh(), cell


class Gate(nn.Module):
    """Decides how much of the annotations a target piece needs (Tran & Bisk, 2018).

    It is a module so that analyses can record its output. The decoder calls the projection by
    itself, to compute its gradient once for all steps.
    """

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.project = nn.Linear(model_dim, model_dim)

    def forward(self, projected: Tensor) -> Tensor:
        """Compute the gate from the projected state: (N, D) -> (N, D), each from 0 to 1."""
        return projected.sigmoid()


class Weights(nn.Module):
    """Turns scores into weights of attention to the source; a module so that analyses can record
    them."""

    def forward(self, scores: Tensor) -> Tensor:
        """(B, K, T) -> (B, K, T)."""
        return scores.softmax(-1)


@dataclass(frozen=True)
class Attended:
    """Keys and values of B source sentences, projected once and shared by their hypotheses.

    keys: (B, T, D).
    values: (B, T, D').
    bias: (B, 1, T), 0 at real pieces and -inf at others.
    """

    keys: Tensor
    values: Tensor
    bias: Tensor

    def read(self, queries: Tensor, weigh: Weights) -> Tensor:
        """Attend from states (B K, D): (B K, D')."""
        by_sentence = queries.view(len(self.keys), -1, queries.size(-1)).to(
            self.keys.dtype
        )  # (B, K, D)
        weights = weigh(
            torch.baddbmm(self.bias, by_sentence, self.keys.transpose(1, 2))
        )  # (B, K, T)
        return (weights @ self.values).flatten(0, 1)  # (B K, D')

    def select(self, sentences: Tensor) -> Attended:
        """Keep some sentences (B',)."""
        return Attended(*(getattr(self, name)[sentences] for name in ("keys", "values", "bias")))


@dataclass(frozen=True)
class Recurrence:
    """State of the decoder between steps.

    layers: output and cell of each layer, first to last.
    fed: (N, E), the attentional state of the previous step.
    """

    layers: Ends
    fed: Tensor

    def select(self, rows: Tensor) -> Recurrence:
        """Reorder the rows: (N',)."""
        return Recurrence([(h[rows], c[rows]) for h, c in self.layers], self.fed[rows])


Step = Callable[[Tensor, Recurrence], Recurrence]
"""Gates of the newest pieces (N, 4D), previous state -> next state, whose `fed` predicts the next
piece."""


class Decoder(nn.Module):
    """An LSTM with input feeding."""

    def __init__(
        self,
        layers: int,
        embedding_dim: int,
        model_dim: int,
        dropout: float,
        annotation: Annotation,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        # the part of the first layer's gates that depends on the pieces, computed for all steps at
        # once
        self.piece_gates = nn.Linear(embedding_dim, 4 * model_dim)
        self.first_gates = nn.Linear(embedding_dim + model_dim, 4 * model_dim, bias=False)
        self.upper_gates = nn.ModuleList(
            nn.Linear(2 * model_dim, 4 * model_dim) for _ in range(layers - 1)
        )
        self.keys = nn.Linear(model_dim, model_dim, bias=False)
        self.annotation_keys = (
            nn.Linear(model_dim, model_dim, bias=False) if annotation == "separate" else None
        )
        self.gate = Gate(model_dim) if annotation != "none" else None
        self.weights = nn.ModuleList(Weights() for _ in range(2 if annotation == "separate" else 1))
        self.output = nn.Linear((3 if self.gate else 2) * model_dim, embedding_dim, bias=False)

    def attended(self, memory: Memory) -> list[Attended]:
        """Project the states, and the annotations together with them or separately."""
        bias = torch.zeros_like(memory.mask, dtype=memory.states.dtype)  # (B, T)
        bias = bias.masked_fill(~memory.mask, -math.inf)[:, None]  # (B, 1, T)
        states, annotations = memory.states, memory.annotations
        assert (self.gate is None) == (annotations is None), (
            "the source was encoded without its variants"
        )
        if annotations is None:
            return [Attended(self.keys(states), states, bias)]
        if self.annotation_keys is None:
            return [Attended(self.keys(states), torch.cat((states, annotations), -1), bias)]
        own = Attended(self.annotation_keys(annotations), annotations, bias)
        return [Attended(self.keys(states), states, bias), own]

    def repeated(self, projection: nn.Linear) -> Callable[[Tensor], Tensor]:
        """Return a projection for many steps of one pass."""
        return projection

    def stepper(self, attended: list[Attended]) -> Step:
        """Return the function that makes one step; use one function for all steps of a pass."""
        first, output = self.repeated(self.first_gates), self.repeated(self.output)
        others = [self.repeated(cast(nn.Linear, layer)) for layer in self.upper_gates]
        gated = self.repeated(self.gate.project) if self.gate else None
        weights = cast(list[Weights], self.weights)

        def step(embedded: Tensor, was: Recurrence) -> Recurrence:
            h, c = was.layers[0]
            layers = [lstm_cell(embedded + first(torch.cat((was.fed, h), -1)), c)]
            for layer, (h, c) in zip(others, was.layers[1:], strict=True):
                x = self.dropout(layers[-1][0])  # (N, D)
                layers.append(lstm_cell(layer(torch.cat((x, h), -1)), c))
            h = layers[-1][0]
            read = torch.cat(
                [one.read(h, weigh) for one, weigh in zip(attended, weights, strict=True)], -1
            )  # (N, D or 2D)
            if self.gate is not None and gated is not None:
                context, annotation = read.chunk(2, -1)  # (N, D), (N, D)
                read = torch.cat((context, h, self.gate(gated(h)) * annotation), -1)  # (N, 3D)
            else:
                read = torch.cat((read, h), -1)  # (N, 2D)
            fed = self.dropout(output(read).tanh())  # (N, E)
            return Recurrence(layers, fed)

        return step
