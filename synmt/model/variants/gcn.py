"""A graph convolutional network over the encoder's states (Bastings, Titov, Aziz, Marcheggiani &
Sima'an, 2017).

    h_i = relu( g°_i (W° s_i + b°) + Σ_{j = p(i)} g↑_ij (W↑ s_j + b↑[r_i]) + Σ_{j: p(j) = i} g↓_ij
        (W↓ s_j + b↓[r_j]) )
    g°_i = σ(w° · s_i + β°)        g↑_ij = σ(w↑ · s_j + β↑[r_i])
    g↓_ij = σ(w↓ · s_j + β↓[r_j])

s are the states of the encoder, p(i) is the parent and r_i the relation of i. The next layer reads
h_i, or h_i + s_i with `residual`; the decoder reads the output of the last one. An LSTM's decoder
still starts with the encoder's final state; in the released code it starts with the mean of the new
states.

The paper has words. Here a message between two words goes to every piece of the one, and is the
mean over the pieces of the other. The root has no parent and gets no message from above: in the
released code its parent is a symbol before the sentence, which also collects a message from every
padding position, so that a sentence depends on its batch. EOS and pieces without a word keep their
loop only.
"""

from __future__ import annotations

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.arrays import FloatArray, IntArray
from synmt.model.attention import Memory
from synmt.model.variant import Depth, Place, Rate, Syntax, Variant
from synmt.syntax.parse import Parse
from synmt.syntax.relations import KNOWN
from synmt.syntax.signals import Signal, relation_signal


def graph(parse: Parse, word_of: IntArray) -> FloatArray:
    """Find what every piece receives from every other one: (2, T, T), from the parent and from the
    dependents.

    An entry is 1 divided by the number of pieces of the word that sends; rows receive.
    """
    words = len(parse)
    # the last row and column are for specials, whose index is -1
    upward = np.zeros((words + 1, words + 1), dtype=np.float32)  # (W + 1, W + 1)
    dependents = np.flatnonzero(parse.parents != np.arange(words))
    upward[dependents, parse.parents[dependents]] = 1
    pieces = np.bincount(word_of[word_of >= 0], minlength=words + 1).clip(min=1)  # (W + 1,)
    both = np.stack((upward, upward.T)) / pieces  # (2, W + 1, W + 1)
    return both.take(word_of, axis=1).take(word_of, axis=2).astype(np.float32)


GRAPH = Signal("graph", "parents", graph, pad=0.0)


class Gcn(Variant):
    """Let the states of neighbours in the tree send messages to each other before the decoder reads
    them.

    depth: number of layers of the graph network: after two, a state has seen words two edges away
        (paper: 1 and 2).
    residual: whether the input of each layer is added to its output (released code: with two
        layers).
    edge_dropout: probability that a message is dropped in training, for each layer, direction and
        pair of pieces (released code: 0.2).
    dropout: dropout on the output of the last layer (released code: 0.2).
    """

    reads = (GRAPH, relation_signal())
    sides = ("source",)

    def __init__(
        self,
        place: Place,
        *,
        depth: Depth = 2,
        residual: bool = True,
        edge_dropout: Rate = 0.2,
        dropout: Rate = 0.2,
    ) -> None:
        super().__init__(place)
        self.residual = residual
        self.edge_dropout, self.dropout = nn.Dropout(edge_dropout), nn.Dropout(dropout)
        self.layers = nn.ModuleList(GraphLayer(place.model_dim) for _ in range(depth))

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Replace the states: (B, T, D) -> same."""
        arcs, relations = (
            syntax.signals["graph"],
            syntax.signals["relation"],
        )  # (B, 2, T, T), (B, T)
        states = memory.states  # (B, T, D)
        for layer in self.layers:
            output = layer(states, self.edge_dropout(arcs), relations)  # (B, T, D)
            states = states + output if self.residual else output  # (B, T, D)
        return memory.edit(states=self.dropout(states))


class GraphLayer(nn.Module):
    """One layer; all weights begin with N(0, 0.01²) and β° with 1, as in the released code (in an
    LSTM as its own)."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.loop, self.loop_gate = nn.Linear(model_dim, model_dim), nn.Linear(model_dim, 1)
        # W↑ and W↓, w↑ and w↓, and for every relation b↑ and b↓, β↑ and β↓
        self.arcs, self.arc_gates = (
            nn.Linear(model_dim, 2 * size, bias=False) for size in (model_dim, 1)
        )
        self.biases, self.gate_biases = (
            nn.Embedding(len(KNOWN) + 2, 2 * size) for size in (model_dim, 1)
        )
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.01)
        nn.init.ones_(self.loop_gate.bias)

    def forward(self, states: Tensor, arcs: Tensor, relations: Tensor) -> Tensor:
        """Compute h from s: (B, T, D), (B, 2, T, T), (B, T) -> (B, T, D)."""
        up, down = self.arcs(states).chunk(2, -1)  # (B, T, D) each
        up_bias, down_bias = self.biases(relations).to(up.dtype).chunk(2, -1)  # (B, T, D) each
        up_gate, down_gate = self.arc_gates(states).chunk(2, -1)  # (B, T, 1) each
        up_gate_bias, down_gate_bias = self.gate_biases(relations).chunk(2, -1)  # (B, T, 1) each
        # the relation between i and j is that of the dependent: of i, which receives, or of j,
        # which sends
        upward = arcs[:, 0] * (up_gate.mT + up_gate_bias).sigmoid()  # (B, T, T)
        downward = arcs[:, 1] * (down_gate + down_gate_bias).sigmoid().mT  # (B, T, T)
        upward, downward = upward.to(up.dtype), downward.to(up.dtype)  # (B, T, T), (B, T, T)
        from_itself = self.loop_gate(states).sigmoid() * self.loop(states)  # (B, T, D)
        return F.relu(
            from_itself
            + upward @ up
            + upward.sum(-1, keepdim=True) * up_bias
            + downward @ (down + down_bias)
        )
