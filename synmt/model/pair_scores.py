"""Scores of attention in which each pair adds its own vectors to its query and to its key (Cai & Lam, 2020).

Where pairs share few vectors, `Pairs` computes one product for each vector. Here a table has too many for that: it
would take more room than a vector for each pair. So the vectors are looked up for some queries at a time, forward and
backward, and nothing of size (B, Tq, Tk, d) is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

ROOM = 1 << 22
"""How many numbers of looked-up vectors there are at a time, if those of one query are not more."""


def pair_scores(q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """Compute (q_i + a_ij) · (k_j + b_ij) - q_i · k_j: (B, H, Tq, d), (B, H, Tk, d) -> (B, H, Tq, Tk).

    table: (N, 2, H, d), the vectors a and b of each row.
    index: (B, Tq, Tk), the row of each pair.
    """
    exact = torch.promote_types(q.dtype, torch.float32)
    return _pair_scores(q.to(exact), k.to(exact), table.to(exact), index)


# torch.compile does not look inside an operator; otherwise it would unroll the loop over the queries
@torch.library.custom_op("synmt::pair_scores", mutates_args=())
def _pair_scores(q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> Tensor:
    scores = q.new_empty(*q.shape[:3], k.size(2))  # (B, H, Tq, Tk)
    keys = k.transpose(1, 2)[:, None]  # (B, 1, Tk, H, d)
    for some, query, (a, b) in _some_queries(q, table, index):
        scores[:, :, some] = (b * (query + a)).addcmul_(a, keys).sum(-1).permute(0, 3, 1, 2)
    return scores


@torch.library.custom_op("synmt::pair_scores_gradients", mutates_args=())
def _gradients(slope: Tensor, q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    to_q, to_k, to_table = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(table)
    keys = k.transpose(1, 2)[:, None]  # (B, 1, Tk, H, d)
    for some, query, (a, b) in _some_queries(q, table, index):
        slopes = slope[:, :, some].permute(0, 2, 3, 1)[..., None]  # (B, n, Tk, H, 1)
        to_q[:, :, some] = (slopes * b).sum(2).transpose(1, 2)
        to_k += (slopes * a).sum(1).transpose(1, 2)
        to_pairs = torch.stack((slopes * (keys + b), slopes * (query + a)), 3)  # (B, n, Tk, 2, H, d)
        rows = index[:, some].flatten()[:, None].expand(-1, table[0].numel())
        to_table.flatten(1).scatter_add_(0, rows, to_pairs.flatten(0, 2).flatten(1))
    return to_q, to_k, to_table


def _some_queries(q: Tensor, table: Tensor, index: Tensor) -> Iterator[tuple[slice, Tensor, tuple[Tensor, ...]]]:
    """Yield some queries at a time: which, themselves (B, n, 1, H, d), and their pairs' a and b, (B, n, Tk, H, d)."""
    step = max(1, ROOM // max(1, index[:, :1].numel() * table[0].numel()))
    for first in range(0, index.size(1), step):
        some = slice(first, first + step)
        yield some, q[:, :, some].transpose(1, 2)[:, :, None], table[index[:, some]].unbind(3)


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


_pair_scores.register_fake(lambda q, k, table, index: q.new_empty(*q.shape[:3], k.size(2)))
_gradients.register_fake(
    lambda slope, q, k, table, index: (torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(table))
)
_pair_scores.register_autograd(lambda ctx, slope: (*_gradients(slope, *ctx.saved_tensors), None), setup_context=_save)
