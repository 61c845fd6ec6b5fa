"""Hypotheses of a search: their scores, the best continuations, and when sentences leave the batch.

A sentence that is done changes no more, so it can stay: when it leaves, what the decoder remembers
of another one is copied into its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    ids: its pieces, without EOS.
    score: log-probability after the length penalty.
    log_probability: of the pieces and EOS, in nats; a forced prefix counts too.
    """

    ids: list[int]
    score: float
    log_probability: float


_Tensors = TypeVar("_Tensors")


def select(tensors: _Tensors, rows: Tensor) -> _Tensors:
    """Select sentences of a record of tensors."""
    return type(tensors)(*(tensor[rows] for tensor in vars(tensors).values()))


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Compute the divisor of a log-probability (Wu et al., 2016, section 7; without their coverage
    penalty).

        score = log P(y | x) / lp(y)        lp(y) = ((5 + |y|) / 6) ** alpha

    |y| counts the pieces and EOS. An alpha of 0 ranks by log-probability; larger values prefer
    longer translations.
    """
    return ((5 + length) / 6) ** alpha


_BLOCK = 32


def best_sums(values: Tensor, base: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Find the `count` largest sums of values (B, K, V) and base (B, K) in each row of the batch,
    best first.

    Returns the sums and their places in K V: (B, count) each. On a CPU, they are looked for in the
    `count` blocks of pieces with the largest maxima, which takes a fraction of the time of `topk`.
    """
    _, beams, size = values.shape
    if values.device.type != "cpu" or size < 2 * _BLOCK * count:
        sums, places = (values + base[..., None]).flatten(1).topk(count)  # (B, count)
        return sums, places
    blocks = size // _BLOCK
    in_blocks = values[..., : blocks * _BLOCK].unflatten(2, (blocks, _BLOCK))
    maxima = in_blocks.amax(-1) + base[..., None]  # (B, K, V / 32)
    chosen = maxima.flatten(1).topk(count).indices  # (B, count)
    first = chosen // blocks * size + chosen % blocks * _BLOCK  # (B, count)
    inside = (first[..., None] + torch.arange(_BLOCK)).flatten(1)  # (B, 32 count)
    # the last pieces fill no block
    last = torch.arange(blocks * _BLOCK, size)  # (V mod 32,)
    rest = (torch.arange(beams)[:, None] * size + last).flatten()  # (K (V mod 32),)
    candidates = torch.cat((inside, rest.expand(len(values), -1)), 1)  # (B, C)
    before = base.gather(1, candidates // size)  # (B, C)
    sums, best = (values.flatten(1).gather(1, candidates) + before).topk(count)  # (B, count)
    return sums, candidates.gather(1, best)


_PERIOD = 8
"""Steps between two checks on a GPU: each check waits until the device has computed everything so
far."""


def looks(device: torch.device) -> Callable[[Tensor], tuple[Tensor, Tensor | None]]:
    """Return a function for all steps of one search: which sentences are done (B,) -> who leaves
    and who remains.

    Both are numbers of sentences, those that remain are None if no sentence leaves. A sentence
    stays in its place if it can: only places that become free are filled, by the last sentences.
    """
    steps, period = count(1), 1 if device.type == "cpu" else _PERIOD

    def look(done: Tensor) -> tuple[Tensor, Tensor | None]:
        nobody = done.new_empty(0, dtype=torch.long), None
        if next(steps) % period:
            return nobody
        size = _rounded(len(done) - int(done.sum()))
        if size >= len(done):
            return nobody
        order = done.byte().argsort(stable=True)  # (B,), those that are done last
        kept, leaving = order[:size], order[size:]
        remaining = torch.arange(size, device=done.device)  # (B',)
        remaining[leaving[leaving < size]] = kept[kept >= size]
        return leaving, remaining

    return look


def _rounded(sentences: int) -> int:
    """Round up, by at most 8 up to 128: oneDNN plans products for each size, and keeps some 20
    sizes of them."""
    unit = 4 if sentences <= 32 else max(8, 1 << (sentences - 1).bit_length() - 4)
    return -(-sentences // unit) * unit if sentences > 4 else sentences
