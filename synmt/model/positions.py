"""Positions inside self-attention, in place of sinusoids that are added to the embeddings.

    rotary (Su et al., 2021)      S_tj = (R_t q_t) · (R_j k_j) / √d = q_t · (R_(j-t) k_j) / √d
    ALiBi (Press et al., 2022)    S_tj = q_t · k_j / √d - m_h |t - j|
                                  m_h = 2^(-8 h / H), h = 1, …, H

R_t turns the plane of the components i and i + d/2 by the angle t · 10000^(-2i/d). Su et al. pair
the components 2i and 2i + 1: the same model with its components in another order. Press et al. have
decoders only, where j ≤ t; in an encoder the penalty is the same in both directions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Rotary(nn.Module):
    """Turn vectors of width d by their positions."""

    angles: Tensor

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.register_buffer("angles", rotations(512, head_dim), persistent=False)

    def forward(self, x: Tensor, first: int) -> Tensor:
        """Turn x, whose positions begin at `first`: (…, T, d) -> same."""
        return rotate(x, self.at(first, first + x.size(-2)))

    def at(self, first: int, last: int) -> Tensor:
        """Return cosines and sines of the positions first, …, last - 1: (2, T, d/2)."""
        # another thread may replace the table by a shorter one meanwhile
        angles = self.angles
        if last > angles.size(1):
            self.angles = angles = rotations(2 * last, self.head_dim).to(angles)
        return angles[:, first:last]


def rotations(length: int, head_dim: int) -> Tensor:
    """Compute the cosines and sines of every angle: (2, T, d/2)."""
    rates = 10_000 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)  # (d/2,)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # (T, d/2)
    return torch.stack((angles.cos(), angles.sin())).float()


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn each plane by its angle: (…, T, d), cosines and sines (2, T, d/2) -> (…, T, d)."""
    cosine, sine = angles  # (T, d/2) both
    left, right = x.chunk(2, -1)  # (…, T, d/2) both
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1).to(x.dtype)


def alibi_slopes(heads: int) -> Tensor:
    """Compute m, the penalty of one step in each head: (H,)."""
    return 2.0 ** (-8.0 / heads * torch.arange(1, heads + 1))


def alibi(queries: int, keys: int, slopes: Tensor) -> Tensor:
    """Compute -m |t - j|, where the queries are the last of the keys: slopes (H,) -> (H, Tq,
    Tk)."""
    places = torch.arange(keys, device=slopes.device)  # (Tk,)
    steps = (places - places[keys - queries :, None]).abs()  # (Tq, Tk)
    return -slopes[:, None, None] * steps
