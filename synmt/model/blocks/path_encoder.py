"""A recurrent network that reads short paths of symbols and gives a vector for each.

The paths of a batch begin and end alike. A state of the first layer depends only on what has been
read, so it is computed once for all paths that begin, or end, with that, and so is its part of the
input of the second layer: a batch of 6,000 paths of 26,000 symbols has 6,000 such states in each
direction. With dropout, each path draws its own, as in the released code, so it shares nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.arrays import IntPairs
from synmt.model.attention import xavier
from synmt.model.blocks.both_directions import BothDirections


class PathEncoder(nn.Module):
    """Read paths with a bidirectional GRU, and project its final states.

    symbols: how many there are.
    symbol_dim, hidden_dim, output_dim: width of the symbols, of the states of one direction, and of
    the result.
    layers: how many; each reads the states of both directions below it.
    dropout: on the input of each layer.
    """

    def __init__(
        self,
        symbols: int,
        symbol_dim: int,
        hidden_dim: int,
        output_dim: int,
        *,
        layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.symbols = nn.Parameter(nn.init.xavier_uniform_(torch.empty(symbols, symbol_dim)))
        widths = [symbol_dim, *[2 * hidden_dim] * (layers - 1)]
        self.layers = nn.ModuleList(BothDirections(width, hidden_dim) for width in widths)
        self.output = xavier(nn.Linear(2 * hidden_dim, output_dim))

    # each batch has levels of other sizes: torch.compile would write out all steps, and again for
    # nearly every batch
    @torch.compiler.disable
    def forward(self, levels: Sequence[Tensor]) -> Tensor:  # type: ignore[override]
        """Compute a vector for each path: (N_0, 4), (N_1, 4), … as `path_levels` gives them -> (N,
        D)."""
        first, *upper = (layer for layer in self.layers if isinstance(layer, BothDirections))
        ends, shorter = torch.cat(tuple(levels)).T.unflatten(0, (2, 2)).unbind(0)  # (2, N), (2, N)
        sizes = [len(level) for level in levels]
        of_symbols = _states_of_symbols(shorter, sizes)  # (2, R)
        opposite = _opposite(sizes, shorter.device)  # (R,)
        if self.training and self.dropout.p:
            projected = first.project(
                self.dropout(F.embedding(ends[0][of_symbols[0]], self.symbols))
            )  # (R, 6h)
            states, final = _run(first, projected, opposite, sizes)
        else:
            inputs = first.project_each(F.embedding(ends, self.symbols))  # (2, N, 3h)
            states = final = torch.cat(list(_grow(first, inputs, shorter, sizes)), 1)  # (2, N, h)
        for layer in upper:
            if states is final:
                projected = layer.project_pairs(states, of_symbols)
            else:
                x = torch.cat((states[0], F.embedding(opposite, states[1])), -1)  # (R, 2h)
                projected = layer.project(self.dropout(x))
            states, final = _run(layer, projected, opposite, sizes)
        return self.output(torch.cat(final.unbind(0), -1))


def _grow(
    layer: BothDirections, inputs: Tensor, shorter: Tensor, sizes: Sequence[int]
) -> Iterator[Tensor]:
    """Yield the states of each level, each from that of the path that is one symbol shorter: (2,
    N_n, h)."""
    state, first = layer.start(sizes[0]), 0
    directions = torch.arange(2, device=shorter.device)[:, None]  # (2, 1)
    yield state
    for below, step, rows in zip(
        sizes, inputs.split(sizes, 1)[1:], shorter.split(sizes, 1)[1:], strict=False
    ):
        # the states of the second direction follow those of the first
        state = layer(step, F.embedding(rows - first + below * directions, state.flatten(0, 1)))
        yield state
        first += below


def _run(
    layer: BothDirections, projected: Tensor, opposite: Tensor, sizes: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Compute the states after each step, of all paths that are as long, and the last state of each
    path.

    projected: (R, 6h), W x + b of each symbol that the first direction reads, step by step.
    Returns (2, R, h), step by step, and (2, N, h); the path without symbols has a state of zeros.
    """
    ahead, behind = projected.unflatten(1, (2, -1)).unbind(1)  # (R, 3h), (R, 3h)
    inputs = torch.stack((ahead, F.embedding(opposite, behind)))  # (2, R, 3h)
    reaching = [sum(sizes[step:]) for step in range(1, len(sizes))]
    state, states, final = layer.start(reaching[0]), [], [layer.start(sizes[0])]
    for step, ending in zip(inputs.split(reaching, 1), sizes[1:], strict=True):
        state = layer(step, state)  # (2, N_t + …, h)
        states.append(state)
        ended, state = state.split((ending, state.size(1) - ending), 1)
        final.append(ended)
    return torch.cat(states, 1), torch.cat(final, 1)


def _states_of_symbols(shorter: Tensor, sizes: Sequence[int]) -> Tensor:
    """Find the states of both directions that end with each symbol of each path: (2, R), step by
    step."""
    after = [
        torch.arange(shorter.size(1), device=shorter.device).expand_as(shorter)
    ]  # 0, 1, … symbols less: (2, N)
    for _ in sizes[2:]:
        after.append(shorter.gather(1, after[-1]))
    levels = [rows.split(list(sizes), 1) for rows in after]
    pairs = [
        (levels[length - step][length][0], levels[step - 1][length][1])
        for step, length in _steps(sizes)
    ]
    return torch.stack([torch.cat(rows) for rows in zip(*pairs, strict=True)])


def _opposite(sizes: Sequence[int], device: torch.device) -> Tensor:
    """Find the step of the other direction that reads the same symbol: (R,), by the steps of the
    first direction."""
    first, row = {}, 0
    for step, length in _steps(sizes):
        first[step, length] = row
        row += sizes[length]
    ranges = [(first[length - step + 1, length], sizes[length]) for step, length in _steps(sizes)]
    return torch.cat([torch.arange(row, row + size, device=device) for row, size in ranges])


def _steps(sizes: Sequence[int]) -> IntPairs:
    """List the steps, each with all lengths of the paths that reach it."""
    return [(step, length) for step in range(1, len(sizes)) for length in range(step, len(sizes))]
