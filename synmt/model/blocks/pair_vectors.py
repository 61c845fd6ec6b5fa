"""Learned vectors of pairs, which a variant adds to keys and values, or to queries and keys.

Where pairs share few vectors, `Pairs` computes one product for each vector (Shaw et al., 2018).
Where each pair adds its own vectors to its query and to its key (Cai & Lam, 2020), a table has too
many for that: it would take more room than a vector for each pair. So the vectors are looked up for
some queries at a time, and their gradients are sums of rows with weights: nothing of size (B, Tq,
Tk, d) is made, forward or backward.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import PositiveInt
from torch import Tensor, nn

from synmt.model.attention import Pairs, Terms
from synmt.model.variant import Place, Syntax, Variant


def add_vectors(terms: Terms, keys: Tensor, values: Tensor | None, kinds: Tensor) -> Terms:
    """Set the bias and, if there are values, the relative values by the kinds of pairs, (Tq, Tk) or
    (B, Tq, Tk)."""
    bias = Pairs(keys, kinds).scores(terms.q)  # (B, H, Tq, Tk)
    return terms.edit(bias=bias, relative=None if values is None else Pairs(values, kinds))


class PairVectors(nn.Module):
    """Add a vector for the kind of each pair to its key and its value (Shaw et al., 2018, equations
    3 and 4).

        S_ij = q_i · (k_j + a^K[kind_ij]) / √d        O_i = Σ_j softmax(S_i)_j (v_j + a^V[kind_ij])

    The heads share both tables, as in the released code of Shaw et al.
    """

    def __init__(self, kinds: int, size: int, *, values: bool) -> None:
        super().__init__()
        self.key = nn.Parameter(torch.empty(kinds, size))
        self.value = nn.Parameter(torch.empty(kinds, size)) if values else None
        for table in self.parameters():
            nn.init.xavier_uniform_(table)

    def edit(self, terms: Terms, kinds: Tensor) -> Terms:
        """Set the bias and the relative values by the kinds (B, Tq, Tk)."""
        return add_vectors(terms, self.keys(), self.value, kinds)

    def keys(self) -> Tensor:
        """Return the vectors for the keys: (kinds, d)."""
        return self.key


class NormedPairVectors(PairVectors):
    """The same with layer norm over the vectors for the keys."""

    def __init__(self, kinds: int, size: int, *, values: bool) -> None:
        super().__init__(kinds, size, values=values)
        # a bias would add the same number to all scores of a query, which changes no weight
        self.norm = nn.LayerNorm(size, bias=False)

    def keys(self) -> Tensor:
        """Return the normed vectors for the keys: (kinds, d)."""
        return self.norm(self.key)


class ClippedPairs(Variant):
    """A variant with a vector for each number from -reach to reach that a pair of words can
    have."""

    sides = ("source",)
    default_layers = "all"

    def __init__(self, place: Place, *, reach: PositiveInt = 16, values: bool = True) -> None:
        super().__init__(place)
        self.reach = reach
        # the last vector is that of pieces without a word
        self.vectors = PairVectors(2 * reach + 2, place.head_dim, values=values)

    def edit(self, terms: Terms, syntax: Syntax) -> Terms:
        """Set the bias (B, H, T, T) and, with `values`, the relative values."""
        return self.vectors.edit(terms, self.rows(syntax))

    def rows(self, syntax: Syntax) -> Tensor:
        """Find the row of the tables for each pair: (B, T, T), 0 to 2 · reach, or 2 · reach + 1
        without words."""
        raise NotImplementedError


ROOM = 1 << 19
"""How many numbers of looked-up vectors there are at a time, if those of one query are not more:
two megabytes, which stay in the cache of a core; on other devices 16 times as many."""


def pair_scores(q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """Compute (q_i + a_ij) · (k_j + b_ij) - q_i · k_j: (B, H, Tq, d), (B, H, Tk, d) -> (B, H, Tq,
    Tk).

    table: (N, 2, H, d), the vectors a and b of each row.
    index: (B, Tq, Tk), the row of each pair.
    """
    exact = torch.promote_types(q.dtype, torch.float32)
    return _pair_scores(q.to(exact), k.to(exact), table.to(exact), index)


# torch.compile does not look inside an operator; otherwise it would unroll the loop over the
# queries
@torch.library.custom_op("synmt::pair_scores", mutates_args=())
def _pair_scores(q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> Tensor:
    queries, keys = (
        q.transpose(1, 2)[:, :, None],
        k.transpose(1, 2)[:, None],
    )  # (B, Tq, 1, H, d), (B, 1, Tk, H, d)
    scores = q.new_empty(*index.shape, q.size(1))  # (B, Tq, Tk, H)
    room = table.new_empty(0)
    for sentences, positions in _parts(index, table[0].numel()):
        rows = index[sentences, positions]  # (B', Tq', Tk)
        # into the same memory each time: new memory takes longer than what is done with it
        torch.index_select(
            table.flatten(1), 0, rows.flatten(), out=room.resize_(rows.numel(), table[0].numel())
        )
        a, b = room.view(*rows.shape, *table.shape[1:]).unbind(3)  # (B', Tq', Tk, H, d) each
        b.mul_(queries[sentences, positions]).addcmul_(a, keys[sentences])
        torch.sum(b, -1, out=scores[sentences, positions])
    return scores.add_((table[:, 0] * table[:, 1]).sum(-1)[index]).permute(0, 3, 1, 2)


@torch.library.custom_op("synmt::pair_scores_gradients", mutates_args=())
def _gradients(
    slope: Tensor, q: Tensor, k: Tensor, table: Tensor, index: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    heads = torch.arange(q.size(1), device=q.device)[:, None]  # (H, 1)
    of_a, of_b = (2 * index + part for part in range(2))  # (B, Tq, Tk) rows of (2N, H, d)
    to_q = _sums(
        table, of_b[:, :, None] * len(heads) + heads, slope.transpose(1, 2)
    )  # (B, Tq, H, d)
    to_k = _sums(
        table, of_a.mT[:, :, None] * len(heads) + heads, slope.permute(0, 3, 1, 2)
    )  # (B, Tk, H, d)
    return to_q.transpose(1, 2), to_k.transpose(1, 2), _to_table(slope, q, k, table, index)


def _sums(vectors: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Sum vectors with weights: (…, d), (B, T, H, K), (B, T, H, K) -> (B, T, H, d)."""
    vectors, lists = vectors.reshape(-1, vectors.size(-1)), rows.flatten(0, 2)
    weights = weights.reshape(lists.shape)
    return F.embedding_bag(lists, vectors, per_sample_weights=weights, mode="sum").view(
        *rows.shape[:3], -1
    )


def _to_table(slope: Tensor, q: Tensor, k: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """Sum over the pairs of each row: (N, 2, H, d); a is multiplied by k + b, and b by q + a."""
    (_, heads, length, size), keys = q.shape, k.size(2)
    rows, pairs = index.flatten().sort()  # (P,), (P,)
    first = torch.searchsorted(
        rows, torch.arange(len(table), device=rows.device)
    )  # (N,) where its pairs begin
    slopes = slope.transpose(0, 1).reshape(heads, -1)[:, pairs]  # (H, P)
    of_heads = torch.arange(heads, device=rows.device)[:, None]  # (H, 1)

    def sums(vectors: Tensor, place: Tensor) -> Tensor:
        lists = of_heads * (len(vectors) // heads) + place  # (H, P)
        starts = of_heads * len(pairs) + first  # (H, N)
        total = F.embedding_bag(
            lists.flatten(),
            vectors,
            starts.flatten(),
            per_sample_weights=slopes.flatten(),
            mode="sum",
        )
        return total.view(heads, len(table), -1).transpose(0, 1)  # (N, H, …)

    of_key = pairs // (length * keys) * keys + pairs % keys  # (P,)
    by_k, by_q = (
        sums(vectors.transpose(0, 1).reshape(-1, size), place)
        for vectors, place in ((k, of_key), (q, pairs // keys))
    )
    total = sums(slope.new_ones(heads, 1), torch.zeros_like(pairs))  # (N, H, 1)
    return torch.stack((by_k + total * table[:, 1], by_q + total * table[:, 0]), 1)


def _parts(index: Tensor, width: int) -> Iterator[tuple[slice, slice]]:
    """Yield some sentences and some of their queries at a time; several sentences only with all of
    their queries."""
    batch, length, keys = index.shape
    room = ROOM * (1 if index.device.type == "cpu" else 16)
    most = max(1, room // max(1, keys * width))
    sentences = max(1, most // max(1, length))
    for first in range(0, batch, sentences):
        for query in range(0, length, most):
            yield slice(first, first + sentences), slice(query, query + most)


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


_pair_scores.register_fake(
    lambda q, k, table, index: q.new_empty(*index.shape, q.size(1)).permute(0, 3, 1, 2)
)
_gradients.register_fake(
    lambda slope, q, k, table, index: (
        torch.empty_like(q.transpose(1, 2).contiguous()).transpose(1, 2),
        torch.empty_like(k.transpose(1, 2).contiguous()).transpose(1, 2),
        torch.empty_like(table),
    )
)
_pair_scores.register_autograd(
    lambda ctx, slope: (*_gradients(slope, *ctx.saved_tensors), None), setup_context=_save
)
