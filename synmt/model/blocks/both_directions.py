"""A GRU layer for both directions, whose steps its caller orders."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BothDirections(nn.Module):
    """One layer of a GRU that reads forwards and one that reads backwards, step by step side by
    side.

        r, z = σ(W x_t + U h_{t-1} + b)        n = tanh(W_n x_t + r ⊙ (U_n h_{t-1} + b_n))
        h_t = (1 - z) ⊙ n + z ⊙ h_{t-1}

    It is written out, because torch's GRU reads every path from its beginning.
    """

    multiply = staticmethod(F.linear)

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input = nn.Linear(input_dim, 6 * hidden_dim)
        self.recurrent = nn.Parameter(torch.empty(2, hidden_dim, 3 * hidden_dim))
        self.bias = nn.Parameter(torch.empty(2, 1, hidden_dim))
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(hidden_dim), 1 / math.sqrt(hidden_dim))

    def forward(self, step: Tensor, state: Tensor) -> Tensor:
        """Compute the next states from W x + b and the states: (2, N, 3h), (2, N, h) -> (2, N,
        h)."""
        recurrent = torch.bmm(state, self.recurrent).to(state.dtype)  # (2, N, 3h)
        parts = 2 * state.size(-1), state.size(-1)
        (gates, new), (from_gates, from_new) = step.split(parts, -1), recurrent.split(parts, -1)
        reset, update = (gates + from_gates).sigmoid().chunk(2, -1)  # (2, N, h), (2, N, h)
        new = torch.addcmul(new, reset, from_new + self.bias).tanh()  # (2, N, h)
        return torch.lerp(new, state, update)

    def start(self, paths: int) -> Tensor:
        """Make states of zeros: (2, N, h)."""
        return self.bias.new_zeros(2, paths, self.bias.size(-1))

    def project(self, x: Tensor) -> Tensor:
        """Compute W x + b for both directions: (M, E) -> (M, 6h)."""
        return self.input(x).to(self.bias.dtype)

    def project_each(self, x: Tensor) -> Tensor:
        """Compute W x + b, for each direction from its own inputs: (2, N, E) -> (2, N, 3h)."""
        parts = zip(x, self.input.weight.chunk(2), self.input.bias.chunk(2), strict=True)
        return torch.stack([self.multiply(*part) for part in parts]).to(self.bias.dtype)

    def project_pairs(self, states: Tensor, of_symbols: Tensor) -> Tensor:
        """Compute W x + b of x = [a; b], each row of which is a state of the first and one of the
        second direction.

        Each state is multiplied once: (2, N, h), (2, R) -> (R, 6h).
        """
        # oneDNN multiplies by a slice of columns a hundred times as slowly
        weights = (half.contiguous() for half in self.input.weight.chunk(2, 1))
        halves = [
            self.multiply(*part)
            for part in zip(states, weights, (self.input.bias, None), strict=True)
        ]
        rows = torch.stack((of_symbols[0], of_symbols[1] + states.size(1)), 1)  # (R, 2)
        return F.embedding_bag(rows, torch.cat(halves).to(self.bias.dtype), mode="sum")
