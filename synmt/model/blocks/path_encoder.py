"""A recurrent network that reads short paths of symbols and gives a vector for each.

The paths of a batch begin and end alike. A state of the first layer depends only on what has been read, so it is
computed once for all paths that begin, or end, with that, and so is its part of the input of the second layer: a batch
of 6,000 paths of 26,000 symbols has 6,000 such states in each direction. With dropout, each path draws its own, as in
the released code, so it shares nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.model.attention import xavier
from synmt.model.fused import dropout as drop
from synmt.model.linear import linear


class PathEncoder(nn.Module):
    """Read paths with a bidirectional GRU, and project its final states.

    symbols: how many there are.
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

    # each batch has levels of other sizes: torch.compile would write out all steps, and again for nearly every batch
    @torch.compiler.disable
    def forward(self, levels: Sequence[Tensor]) -> Tensor:  # type: ignore[override]
        """Compute a vector for each path: (N_0, 4), (N_1, 4), … as `path_levels` gives them -> (N, D)."""
        first, *upper = (layer for layer in self.layers if isinstance(layer, BothDirections))
        ends, shorter = torch.cat(tuple(levels)).T.unflatten(0, (2, 2)).unbind(0)  # (2, N), (2, N)
        sizes = [len(level) for level in levels]
        places, of_steps = _places(shorter, sizes), _places_of_steps(levels)
        if self.training and self.dropout:
            symbols = torch.cat([ends[0][_own(places, step)[0]] for step in range(1, len(sizes))])  # (R,)
            projected, places = first.project(self._drop(F.embedding(symbols, self.symbols))), of_steps
            states, final = _run(first, projected, _single_inputs, places, sizes)
        else:
            inputs = first.project_ends(F.embedding(ends, self.symbols))  # (2, N, 3h)
            states = final = torch.cat(list(_grow(first, inputs, shorter, sizes)), 1)  # (2, N, h)
        for layer in upper:
            states, final = _run(layer, layer.project_pairs(self._drop(states)), _paired_inputs, places, sizes)
            places = of_steps
        return self.output(torch.cat(final.unbind(0), -1))

    def _drop(self, x: Tensor) -> Tensor:
        return drop(x, self.dropout if self.training else 0.0)


class BothDirections(nn.Module):
    """One layer of a GRU that reads forwards and one that reads backwards, step by step side by side.

        r, z = σ(W x_t + U h_{t-1} + b)        n = tanh(W_n x_t + r ⊙ (U_n h_{t-1} + b_n))
        h_t = (1 - z) ⊙ n + z ⊙ h_{t-1}

    It is written out, because torch's GRU reads every path from its beginning.
    """

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input = nn.Linear(input_dim, 6 * hidden_dim)
        self.recurrent = nn.Parameter(torch.empty(2, hidden_dim, 3 * hidden_dim))
        self.bias = nn.Parameter(torch.empty(2, 1, hidden_dim))
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(hidden_dim), 1 / math.sqrt(hidden_dim))

    def forward(self, step: Tensor, state: Tensor) -> Tensor:
        """Compute the next states from W x + b and the states: (2, N, 3h), (2, N, h) -> (2, N, h)."""
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
        """Compute W x + b: (M, E) -> (2M, 3h); row 2m + d has that of x_m for the direction d."""
        return linear(x, self.input.weight, self.input.bias).to(self.bias.dtype).view(-1, 3 * self.bias.size(-1))

    def project_ends(self, x: Tensor) -> Tensor:
        """Compute W x + b where each direction has inputs of its own: (2, N, E) -> (2, N, 3h)."""
        parts = zip(x, self.input.weight.chunk(2), self.input.bias.chunk(2), strict=True)
        return torch.stack([linear(*part) for part in parts]).to(self.bias.dtype)

    def project_pairs(self, states: Tensor) -> Tensor:
        """Compute W x + b of each half of x = [ahead; behind]: (2, M, h) -> (4M, 3h).

        The row of the state m of the half k, for the direction d, is 2 (k M + m) + d; the second half has no b.
        """
        # oneDNN multiplies by a slice of columns a hundred times as slowly
        weights = (half.contiguous() for half in self.input.weight.chunk(2, 1))
        halves = [linear(*part) for part in zip(states, weights, (self.input.bias, None), strict=True)]
        return torch.cat(halves).view(-1, 3 * self.bias.size(-1)).to(self.bias.dtype)


def _grow(layer: BothDirections, inputs: Tensor, shorter: Tensor, sizes: Sequence[int]) -> Iterator[Tensor]:
    """Yield the states of each level, each from that of the path that is one symbol shorter: (2, N_n, h)."""
    state = layer.start(sizes[0])
    yield state
    first = 0
    for below, step, rows in zip(sizes, inputs.split(sizes, 1)[1:], shorter.split(sizes, 1)[1:], strict=False):
        # the states of the second direction follow those of the first
        state = layer(step, F.embedding(rows - first + below * _directions(rows), state.flatten(0, 1)))
        yield state
        first += below


def _places(shorter: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Find the states of the paths of levels 1, 2, … after 1, …, n symbols from either end: (2, N_n, n)."""
    after = [torch.arange(shorter.size(1), device=shorter.device).expand_as(shorter)]  # 0, 1, … symbols less: (2, N)
    for _ in sizes[2:]:
        after.append(shorter.gather(1, after[-1]))
    levels = torch.stack(after, 2).split(sizes, 1)[1:]
    return [level[..., :length].flip(2) for length, level in enumerate(levels, 1)]


def _places_of_steps(levels: Sequence[Tensor]) -> list[Tensor]:
    """Find the same among the states that `_run` gives."""
    sizes = [len(level) for level in levels]
    starts, places = [0, *accumulate(sum(sizes[step:]) for step in range(1, len(sizes)))], []
    for length, size in enumerate(sizes[1:], 1):
        first = [starts[count] + sum(sizes[count + 1 : length]) for count in range(length)]
        rows = [torch.arange(row, row + size, device=levels[0].device) for row in first]
        places.append(torch.stack(rows, 1).expand(2, size, length))
    return places


def _run(
    layer: BothDirections,
    projected: Tensor,
    inputs: Callable[[Sequence[Tensor], int, int], Tensor],
    places: Sequence[Tensor],
    sizes: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Compute the states after each step, of all paths that are as long, and the last state of each path.

    inputs: finds the rows of `projected` whose sum is the input of a path at a step.
    Returns (2, R, h), step by step, and (2, N, h); the path without symbols has a state of zeros.
    """
    rows = [inputs(places, step, len(projected)) for step in range(1, len(sizes))]  # (2, N_t + …, 1 or 2) each
    x = F.embedding_bag(torch.cat([step.flatten(0, 1) for step in rows]), projected, mode="sum")
    state, states, final = layer.start(sum(sizes[1:])), [], [layer.start(sizes[0])]
    for step, ending in zip(x.split([2 * step.size(1) for step in rows]), sizes[1:], strict=True):
        state = layer(step.unflatten(0, (2, -1)), state)  # (2, N_t + …, h)
        states.append(state)
        ended, state = state.split((ending, state.size(1) - ending), 1)
        final.append(ended)
    return torch.cat(states, 1), torch.cat(final, 1)


def _single_inputs(places: Sequence[Tensor], step: int, rows: int) -> Tensor:
    """Find the symbol that a direction reads at a step, as `project` numbers them: (2, N, 1)."""
    return torch.stack((2 * _own(places, step)[0], 2 * _other(places, step)[1] + 1))[..., None]


def _paired_inputs(places: Sequence[Tensor], step: int, rows: int) -> Tensor:
    """Find both parts of what a direction reads at a step, as `project_pairs` numbers them: (2, N, 2).

    They are its own state after that many symbols, and the state of the other direction that ends with the same symbol.
    """
    own, other = _own(places, step), _other(places, step)
    way = _directions(own)
    return torch.stack((way * (rows // 2) + 2 * own + way, (1 - way) * (rows // 2) + 2 * other + way), -1)


def _own(places: Sequence[Tensor], step: int) -> Tensor:
    """Find the state of each path after some symbols from each end: (2, N), for the paths that are as long."""
    return torch.cat([level[:, :, step - 1] for level in places[step - 1 :]], 1)


def _other(places: Sequence[Tensor], step: int) -> Tensor:
    """Find the state of the other direction that ends with the symbol that `_own` ends with: (2, N)."""
    return torch.cat([level[:, :, -step].flip(0) for level in places[step - 1 :]], 1)


def _directions(like: Tensor) -> Tensor:
    return torch.arange(2, device=like.device)[:, None]  # (2, 1)
