"""The LSTM (Luong et al., 2015): a bidirectional encoder, a decoder with attention and input
feeding, and the gate of syntactic annotations.

Cells (Hochreiter & Schmidhuber, 1997; Gers et al., 2000), attention and input feeding (Luong et
al., 2015), gate (Tran & Bisk, 2018):

    [i; f; o; g] = W [x_t; h_t-1] + b
    c_t = σ(f) ⊙ c_t-1 + σ(i) ⊙ tanh(g)            h_t = σ(o) ⊙ tanh(c_t)

    α = softmax(h_t · W_a s_i)                     c = Σ_i α_i s_i        d = Σ_i α_i m_i
    h̃_t = tanh(W_o [c; h_t; z ⊙ d])                z = σ(W_z h_t + b_z)   x_t+1 = [E y_t; h̃_t]

s are the states of the source. m, d and z exist if a variant annotates the source with m.

Each direction of the encoder has half the width, so that its states are as wide as the decoder's.
Each layer of the decoder starts with the final state of an encoder layer. EOS is not encoded.
Dropout is applied between layers and to the attentional state. All weights are initialized from
U(-r, r).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from synmt.data.batch import Sequences
from synmt.data.vocabulary import EOS, PAD
from synmt.model.attention import Memory, exact
from synmt.model.seq2seq import Embedding, Seq2Seq, piece_table, rows_of
from synmt.model.variant import Annotation, Syntax, Variant
from synmt.recipe.schema import ModelRecipe


@dataclass
class LstmState:
    """State of decoding between steps, for B sentences with K hypotheses each.

    attended: keys and values of the B sentences, shared by the hypotheses.
    recurrence: state of the layers, with B · K rows.
    beams: K.
    """

    attended: list[Attended]
    recurrence: Recurrence
    beams: int = 1

    def select(self, sentences: Tensor | None, beams: Tensor) -> None:
        """Keep these sentences (B',), or all if None, and continue from these hypotheses of each,
        (B', K')."""
        if sentences is not None:
            self.attended = [attended.select(sentences) for attended in self.attended]
        self.recurrence = self.recurrence.select(rows_of(sentences, beams, self.beams))
        self.beams = beams.size(1)


class Lstm(Seq2Seq):
    """Encoder and decoder over pieces."""

    def __init__(
        self,
        recipe: ModelRecipe,
        source_pieces: int,
        target_pieces: int,
        source_variants: Sequence[Sequence[Variant]] = (),
        target_variants: Sequence[Sequence[Variant]] = (),
    ) -> None:
        super().__init__(chain(*source_variants), chain(*target_variants))
        # the layers of an LSTM hold no variants, so they are registered here
        self.placed = nn.ModuleList(chain(self.variants["source"], self.variants["target"]))
        width, model_dim = recipe.embedding_dim or recipe.model_dim, recipe.model_dim
        target_table = piece_table(target_pieces, width)
        shared = recipe.embeddings == "shared"
        source_table = target_table if shared else piece_table(source_pieces, width)
        self.source_embedding = Embedding(source_table, self.variants["source"])
        self.target_embedding = Embedding(target_table, self.variants["target"])
        self.encoder = nn.LSTM(
            width,
            model_dim // 2,
            recipe.encoder_layers,
            batch_first=True,
            bidirectional=True,
            dropout=recipe.dropout if recipe.encoder_layers > 1 else 0.0,
        )
        annotation: Annotation = "none"
        for variant in self.variants["source"]:
            # at most one of them annotates the source
            if variant.annotation != "none":
                annotation = variant.annotation
        self.decoder = Decoder(recipe.decoder_layers, width, model_dim, recipe.dropout, annotation)
        self.output = (
            piece_table(target_pieces, width) if recipe.embeddings == "separate" else target_table
        )
        with torch.no_grad():
            for weight in self.parameters():
                weight.uniform_(-recipe.initial_range, recipe.initial_range)
            for table in {self.source_embedding.table, self.target_embedding.table, self.output}:
                table.weight[PAD].zero_()
            for variant in chain(*self.variants.values()):
                variant.initialise()

    @property
    def output_weight(self) -> Tensor:
        """The weight of the output layer: (V, E)."""
        return self.output.weight

    def encode(self, source: Sequences, syntax: Syntax | None = None) -> Memory:
        """Encode source pieces (B, T), without EOS."""
        ids, mask = source.ids, source.mask
        x = self.source_embedding(ids, syntax)  # (B, T, E)
        real = mask & (ids != EOS)  # (B, T)
        # a source that is only EOS keeps it: an LSTM needs at least one piece
        real = real | mask & ~real.any(1, keepdim=True)  # (B, T)
        # torch would sort on the CPU, and a GPU would wait for it
        order = real.sum(1).argsort(descending=True)  # (B,)
        lengths = (source.lengths - 1).clamp(min=1).sort(descending=True).values  # (B,)
        states, ends = self.encoder(
            pack_padded_sequence(x.index_select(0, order), lengths, batch_first=True)
        )
        states, _ = pad_packed_sequence(
            states, batch_first=True, total_length=ids.size(1)
        )  # (B, T, D)
        back = order.argsort()  # (B,)
        ordered = [end.index_select(1, back) for end in ends]  # (2L, B, D/2) each
        hidden, cells = (torch.cat((end[::2], end[1::2]), -1) for end in ordered)  # (L, B, D) each
        return Memory(states.index_select(0, back), real, ends=(hidden, cells))

    def decode(self, memory: Memory, ids: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Compute the states that predict what follows each piece of (B, T): (B, T, E)."""
        embedded = self.decoder.piece_gates(self.target_embedding(ids, syntax))  # (B, T, 4D)
        step = self.decoder.stepper(self.decoder.attended(memory))
        recurrence, states = self._begin(memory), []
        for newest in embedded.unbind(1):  # (B, 4D)
            recurrence = step(newest, recurrence)
            states.append(recurrence.fed)
        return torch.stack(states, 1)

    def start(self, memory: Memory) -> LstmState:
        """Begin decoding with one beam for each sentence."""
        return LstmState(self.decoder.attended(memory), self._begin(memory))

    def step(self, state: LstmState, pieces: Tensor, syntax: Syntax | None = None) -> Tensor:
        """Feed the newest piece of every hypothesis, (B, K), and compute the states for the next
        one: (B, K, E)."""
        gates = self.decoder.piece_gates(self.target_embedding(pieces, syntax))  # (B, K, 4D)
        step = self.decoder.stepper(state.attended)
        state.recurrence = step(gates.flatten(0, 1), state.recurrence)
        return state.recurrence.fed.view(*pieces.shape, -1)

    def _begin(self, memory: Memory) -> Recurrence:
        """Start each layer with the final state of the encoder layer of the same number, or of the
        last one."""
        assert memory.ends is not None
        last = len(memory.ends[0]) - 1
        layers = [min(layer, last) for layer in range(len(self.decoder.upper_gates) + 1)]
        h, c = memory.ends[0], exact(memory.ends[1])  # (L, B, D), (L, B, D)
        width = self.decoder.output.out_features
        fed = memory.states.new_zeros(len(memory.states), width)  # (B, E)
        return Recurrence([(h[layer], c[layer]) for layer in layers], fed)


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
        by_sentence = queries.view(len(self.keys), -1, queries.size(-1))  # (B, K, D)
        by_sentence = by_sentence.to(self.keys.dtype)
        weights = weigh(torch.baddbmm(self.bias, by_sentence, self.keys.mT))  # (B, K, T)
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
        annotated = Attended(self.annotation_keys(annotations), annotations, bias)
        return [Attended(self.keys(states), states, bias), annotated]

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
                [part.read(h, weigh) for part, weigh in zip(attended, weights, strict=True)], -1
            )  # (N, D or 2D)
            if self.gate is not None and gated is not None:
                context, annotation = read.chunk(2, -1)  # (N, D), (N, D)
                read = torch.cat((context, h, self.gate(gated(h)) * annotation), -1)  # (N, 3D)
            else:
                read = torch.cat((read, h), -1)  # (N, 2D)
            fed = self.dropout(output(read).tanh())  # (N, E)
            return Recurrence(layers, fed)

        return step
