"""Tree-to-sequence: phrases as further places of the memory (Eriguchi, Hashimoto & Tsuruoka, 2016).

    i, f_l, f_r, o = σ(U [h_l; h_r] + b)        u = tanh(U_u [h_l; h_r] + b_u)
    c = i ⊙ u + f_l ⊙ c_l + f_r ⊙ c_r           h = o ⊙ tanh(c)

A node of the binary tree joins the nodes l and r. The decoder attends to the states of the pieces
and to the h of all nodes with one softmax. An LSTM's decoder starts from one more cell with
separate weights: its left part is the final state of the encoder's layer, its right part the root
of the tree. All forget biases begin at 1.

Here the leaves are pieces, with h = c = their state, and the pieces of a word are joined from left
to right before the words are. States come from synmt's encoder: a bidirectional LSTM, where the
paper has a unidirectional one, or a Transformer, whose decoder reads the longer memory as it is.
The LSTM's attention is the one of synmt (s · W h; the paper: s · h). Nodes of one height are
computed together. Left out: the paper's output layer (BlackOut), and the scores of its search for
the length of a translation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from synmt.model.attention import Memory, exact, xavier
from synmt.model.variant import Place, Syntax, Variant
from synmt.syntax.constituent_signals import MERGES


class TreeLstm(Variant):
    """Let the decoder attend to the phrases of the source, too."""

    reads = (MERGES,)
    sides = ("source",)
    lengthens_memory = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.cell = TreeCell(place.model_dim)
        self.start = TreeCell(place.model_dim) if place.recurrent else None
        self.initialise()

    def initialise(self) -> None:
        """Set the biases of all forget gates to 1."""
        width = self.place.model_dim
        for cell in (self.cell, self.start):
            if cell is not None:
                nn.init.ones_(cell.gates.bias[width : 3 * width])

    def annotate(self, memory: Memory, syntax: Syntax) -> Memory:
        """Put the phrases after the pieces, and start the decoder from the root."""
        merges, pieces = syntax.signals["merges"], memory.states.size(1)  # (B, L, N, 3)
        leaves = exact(torch.cat((memory.states, memory.states), -1))  # (B, T, 2D)
        phrases = join_nodes(self.cell, leaves, merges)  # (B, P, 2D)
        counts = (merges[..., 2] >= 0).sum((1, 2))  # (B,)
        real = torch.arange(phrases.size(1), device=counts.device) < counts[:, None]  # (B, P)
        states = torch.cat(
            (memory.states, phrases.chunk(2, -1)[0].to(memory.states.dtype)), 1
        )  # (B, T + P, D)
        memory = memory.edit(states=states, mask=torch.cat((memory.mask, real), 1), pieces=pieces)
        if self.start is None or memory.ends is None or not phrases.size(1):
            return memory
        roots = phrases[
            torch.arange(len(counts), device=counts.device), (counts - 1).clamp(min=0)
        ]  # (B, 2D)
        last = torch.cat(memory.ends, -1).to(leaves.dtype)  # (L, B, 2D)
        joined = torch.where(
            counts[:, None] > 0, self.start(last, roots.expand_as(last)), last
        )  # (L, B, 2D)
        h, c = joined.chunk(2, -1)  # (L, B, D), (L, B, D)
        return memory.edit(ends=(h.to(memory.ends[0].dtype), c.to(memory.ends[1].dtype)))


class TreeCell(nn.Module):
    """Joins two nodes into one; a node is [h; c]."""

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.gates = xavier(nn.Linear(2 * model_dim, 5 * model_dim), parts=5)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """(…, 2D), (…, 2D) -> (…, 2D)."""
        (h_left, c_left), (h_right, c_right) = left.chunk(2, -1), right.chunk(2, -1)  # (…, D) each
        gates = self.gates(torch.cat((h_left, h_right), -1)).to(left.dtype)  # (…, 5D)
        width = h_left.size(-1)
        i, f_left, f_right, o = gates[..., : 4 * width].sigmoid().chunk(4, -1)  # (…, D) each
        c = i * gates[..., 4 * width :].tanh() + f_left * c_left + f_right * c_right  # (…, D)
        return torch.cat((o * c.tanh(), c), -1)


def join_nodes(cell: TreeCell, leaves: Tensor, merges: Tensor) -> Tensor:
    """Compute the nodes of binary trees, height by height: leaves (B, T, 2D), merges (B, L, N, 3)
    -> (B, P, 2D).

    P is at least the number of nodes of every tree; places without a node are 0.
    """
    batch, pieces, width = leaves.shape
    room = min(pieces, merges.size(1) * merges.size(2))
    # the last place takes what padding joins, and is never read
    nodes = torch.cat((leaves, leaves.new_zeros(batch, room + 1, width)), 1)  # (B, T + P + 1, 2D)
    rows = torch.arange(batch, device=leaves.device)[:, None]  # (B, 1)
    for level in merges.unbind(1):  # (B, N, 3)
        left, right = (_place(part, pieces) for part in level[..., :2].unbind(-1))  # (B, N), (B, N)
        new = torch.where(level[..., 2] < 0, room, level[..., 2]) + pieces  # (B, N)
        nodes = nodes.index_put((rows, new), cell(nodes[rows, left], nodes[rows, right]))
    return nodes[:, pieces:-1]


def _place(part: Tensor, pieces: int) -> Tensor:
    """Find the place of a piece, or of a node written -2 - n: any shape -> same; padding reads the
    first piece."""
    return torch.where(part < -1, pieces - 2 - part, part.clamp(min=0))
