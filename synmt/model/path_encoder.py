"""A recurrent network that reads short paths of symbols and gives a vector for each."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import xavier
from synmt.model.fused import dropout as drop


class PathEncoder(nn.Module):
    """Read paths with a bidirectional GRU, and project its final states.

    symbols: how many there are; 0 ends a path.
    symbol_dim, hidden_dim, output_dim: width of the symbols, of the states of one direction, and of the result.
    layers: how many; each reads the states of both directions below it.
    dropout: on the input of each layer.
    """

    def __init__(
        self, symbols: int, symbol_dim: int, hidden_dim: int, output_dim: int, *, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.symbols = nn.Parameter(nn.init.xavier_uniform_(torch.empty(symbols, symbol_dim)))
        widths = [symbol_dim, *[2 * hidden_dim] * (layers - 1)]
        self.layers = nn.ModuleList(BothDirections(width, hidden_dim) for width in widths)
        self.output = xavier(nn.Linear(2 * hidden_dim, output_dim))

    def forward(self, paths: Tensor) -> Tensor:
        """Compute a vector for each path: (N, L) -> (N, D)."""
        real = paths > 0  # (N, L)
        x = F.embedding(paths, self.symbols)  # (N, L, E)
        for layer in self.layers:
            x = layer(drop(x, self.dropout if self.training else 0.0), real)  # (N, L, 2h)
        ahead, behind = x.chunk(2, -1)  # (N, L, h), (N, L, h)
        return self.output(torch.cat((ahead[:, -1], behind[:, 0]), -1))


class BothDirections(nn.Module):
    """One layer of a GRU that reads forwards and one that reads backwards, step by step side by side.

        r, z = σ(W x_t + U h_{t-1} + b)        n = tanh(W_n x_t + r ⊙ (U_n h_{t-1} + b_n))
        h_t = (1 - z) ⊙ n + z ⊙ h_{t-1}

    It is written out, because torch's packed sequences wait for the device, and its GRU is not compiled.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input = nn.Linear(input_dim, 6 * hidden_dim)
        self.recurrent = nn.Parameter(torch.empty(2, hidden_dim, 3 * hidden_dim))
        self.bias = nn.Parameter(torch.empty(2, 1, hidden_dim))
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(hidden_dim), 1 / math.sqrt(hidden_dim))

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """Compute the states at each place, which stay as they are after the end: (N, L, E), (N, L) -> (N, L, 2h)."""
        forwards, backwards = self.input(x).to(self.bias.dtype).chunk(2, -1)  # (N, L, 3h), (N, L, 3h)
        inputs = torch.stack((forwards, backwards.flip(1)))  # (2, N, L, 3h)
        real = torch.stack((real, real.flip(1)))[..., None]  # (2, N, L, 1)
        state = self.bias.new_zeros(2, len(x), self.bias.size(-1))  # (2, N, h)
        states: list[Tensor] = []
        for step, live in zip(inputs.unbind(2), real.unbind(2), strict=True):
            state = torch.where(live, self._next(step, state), state)  # (2, N, h)
            states.append(state)
        ahead, behind = torch.stack(states, 2).unbind(0)  # (N, L, h), (N, L, h)
        return torch.cat((ahead, behind.flip(1)), -1)

    def _next(self, step: Tensor, state: Tensor) -> Tensor:
        recurrent = torch.bmm(state, self.recurrent).to(state.dtype)  # (2, N, 3h)
        size = state.size(-1)
        reset, update = (step + recurrent)[..., : 2 * size].sigmoid().chunk(2, -1)  # (2, N, h), (2, N, h)
        new = torch.tanh(step[..., 2 * size :] + reset * (recurrent[..., 2 * size :] + self.bias))  # (2, N, h)
        return new + update * (state - new)
