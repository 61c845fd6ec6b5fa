"""Random numbers that depend on what they are for, and on nothing else.

A number is a hash of its names, so it is the same in every batch, in every order and on every device. The hash chains
the output function of SplitMix64 (Steele, Lea & Flood, 2014), modulo 2^64:

    z = h + 0x9E3779B97F4A7C15
    z = (z ⊕ (z >> 30)) · 0xBF58476D1CE4E5B9
    z = (z ⊕ (z >> 27)) · 0x94D049BB133111EB
    h' = z ⊕ (z >> 31)
"""

from __future__ import annotations

import torch
from torch import Tensor

# torch has signed integers only, whose products wrap around as the unsigned ones do
_GAMMA, _FIRST, _SECOND = (
    constant - (1 << 64) for constant in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_BITS = 52


def uniform(seed: int, *names: Tensor | int) -> Tensor:
    """Give the number between 0 and 1, both excluded, that belongs to a seed and to integers: in float64."""
    device = next(name.device for name in names if isinstance(name, Tensor))
    state = hashed(torch.tensor(seed, device=device))
    for name in names:
        state = hashed(state ^ name)
    # half a step up, so that 0 is never drawn
    return (_shifted(state, 64 - _BITS).double() + 0.5) * 2.0**-_BITS


def hashed(values: Tensor) -> Tensor:
    """Hash 64-bit integers, one to one."""
    z = values + _GAMMA
    z = (z ^ _shifted(z, 30)) * _FIRST
    z = (z ^ _shifted(z, 27)) * _SECOND
    return z ^ _shifted(z, 31)


def _shifted(values: Tensor, places: int) -> Tensor:
    # a shift to the right repeats the sign, which unsigned numbers do not have
    return (values >> places) & ((1 << (64 - places)) - 1)
