"""Probabilities of arcs in a random dependency tree (Koo et al., 2007), accurate where a matrix
inverse is not.

    Z = Σ_trees exp(roots_r + Σ_m≠r scores_m,parent(m))
    P(p is the parent of m) = ∂ log Z / ∂ scores_mp

The arcs may cross, and r is the only root. Koo et al. compute Z as the determinant of a Laplacian.
If two words prefer each other by 40 nats, all digits are lost: 1 - 1 / (1 + e⁻⁴⁰) is 0 in float64.
The elimination of Grassmann, Taksar & Heyman (1985) never subtracts. In a Markov chain, A =
exp(scores) are the rates of steps from child to parent, and R = exp(roots) those of leaving the
chain. The words k = T-1, …, 1 are removed one by one, and steps to k go on to where k goes:

    s_k = Σ_j<k A_kj      A_ij += A_ik A_kj / s_k      R_i += A_ik R_k / s_k      (i, j < k)
    log Z = log R_0 + Σ_k≥1 log s_k

R is not in s_k because there is only one root: leaving is infinitely slow. The same steps in
reverse differentiate log Z. They do subtract, but only expected numbers of arcs, which are at most
T: the rounding error is T² · 10⁻¹⁶ in the worst case; the largest error that we measured is 10⁻¹⁵,
for scores of ±50 and 200 words.

The Hessian of log Z is symmetric, so the gradient of the probabilities P is their change along the
incoming gradient g: Im P(θ + i ε g) / ε, with ε so small that the error, of order ε², vanishes
(Squire & Trapp, 1998).

A and R are divided by the largest rate of each child, then R by its largest rate. Quotients below
e⁻²³⁰ are replaced by e⁻²³⁰, so that nothing overflows and -inf is a valid potential; the gradient
of P with respect to such a potential is 0. Potentials between -57 and 57 are never affected. Beyond
that range P is finite and its rows sum to 1, but it can be the probability under other potentials,
if only a replaced arc leads out of a cycle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_FLOOR = -230.0  # then R_k / s_k, the largest number, is below T² e⁴⁶⁰; float64 ends at e⁷⁰⁸
_INFINITY = 1e300  # unlike inf, this can be subtracted from itself
_EPSILON = 1e-30
_SCHEMA = "(Tensor potentials, Tensor words, Tensor parents) -> Tensor"


def tree_marginals(
    scores: Tensor, roots: Tensor, mask: Tensor, may_be_parent: Tensor | None = None
) -> Tensor:
    """Compute P: (..., T, T), [m, p] for p as the parent of m, [m, m] for m as the root; at least
    float32.

    Rows of words sum to 1; rows and columns of padding are 0. A NaN makes its sentence NaN. There
    are no second derivatives.

    scores: (..., T, T), [m, p] the log-potential that p is the parent of m; the diagonal is
        ignored.
    roots: (..., T), log-potential of each word as the root.
    mask: (..., T), True at words, wherever they are; all leading dimensions are broadcast.
    may_be_parent: (..., T), False at words that can be neither parent nor root. If that excludes
        all words, none is excluded.
    """
    potentials, words, parents = _join(
        scores, roots, mask, may_be_parent
    )  # (..., T, T), (..., T), (..., T)
    size = math.prod(words.shape[:-1]), words.size(-1)
    # one dimension of the leading ones: (N, T, T), (N, T), (N, T)
    flat = potentials.reshape(*size, size[-1]), words.reshape(size), parents.reshape(size)
    marginals = _marginals(*flat) if potentials.numel() else potentials
    return marginals.view(potentials.shape).to(
        scores.device, torch.promote_types(scores.dtype, torch.float32)
    )  # (..., T, T)


def possible_parents(words: Tensor, allowed: Tensor) -> Tensor:
    """Find the words that may be parents, which are all words if none is allowed: (..., T), (...,
    T) -> (..., T)."""
    parents = words & allowed  # (..., T)
    return parents | (words & ~parents.any(-1, keepdim=True))


def _join(
    scores: Tensor, roots: Tensor, mask: Tensor, may_be_parent: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the roots on the diagonal of the scores, in float64, and find the words and those that
    may be parents."""
    parents = mask if may_be_parent is None else possible_parents(mask, may_be_parent)  # (..., T)
    shape = torch.broadcast_shapes(scores.shape[:-1], roots.shape, parents.shape)
    assert scores.shape[-2:] == (*roots.shape[-1:], *mask.shape[-1:]), (
        scores.shape,
        roots.shape,
        mask.shape,
    )
    # Apple's GPUs have no float64
    mask, parents, scores, roots = (
        tensor.cpu() if tensor.device.type == "mps" else tensor
        for tensor in (mask, parents, scores, roots)
    )
    scores = scores.double().expand(*shape, -1)  # (..., T, T)
    potentials = scores.diagonal_scatter(roots.double().expand(shape), dim1=-2, dim2=-1)
    return potentials, mask.expand(shape), parents.expand(shape)


# torch.compile does not look inside an operator; otherwise it would unroll the loops over the words
@torch.library.custom_op("synmt::tree_marginals", mutates_args=(), schema=_SCHEMA)
def _marginals(potentials: Tensor, words: Tensor, parents: Tensor) -> Tensor:
    """Compute P: (N, T, T) in float64, (N, T), (N, T) -> (N, T, T)."""
    chain = _chain(potentials, words, parents)
    marginals = _probabilities(chain.rates).masked_fill(chain.logs.isneginf(), 0.0)  # (N, T, T)
    return _reorder(marginals.clamp(min=0.0), chain.order)


@torch.library.custom_op(
    "synmt::tree_marginals_change", mutates_args=(), schema="(Tensor along, " + _SCHEMA[1:]
)
def _marginals_change(along: Tensor, potentials: Tensor, words: Tensor, parents: Tensor) -> Tensor:
    """Compute the change of P along a direction of the potentials: four of (N, T, T), (N, T) -> (N,
    T, T)."""
    chain = _chain(potentials, words, parents)
    along = _reorder(along, chain.order).masked_fill(chain.logs.isneginf(), 0.0)  # (N, T, T)
    largest = along.abs().amax((1, 2), keepdim=True)  # (N, 1, 1)
    scale = largest.masked_fill(largest == 0, 1.0) / _EPSILON  # (N, 1, 1)
    # exp(θ + i ε g) = exp(θ) (1 + i ε g) in float64
    moved = torch.complex(chain.rates, chain.rates * _roots_first(along / scale))  # (N, T, 1 + T)
    change = _probabilities(moved).imag * scale  # (N, T, T)
    return _reorder(change.masked_fill(chain.logs <= _FLOOR, 0.0), chain.order)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


_marginals.register_fake(lambda potentials, words, parents: potentials.new_empty(potentials.shape))
_marginals_change.register_fake(
    lambda along, potentials, words, parents: potentials.new_empty(potentials.shape)
)
_marginals.register_autograd(
    lambda ctx, gradient: (_marginals_change(gradient, *ctx.saved_tensors), None, None),
    setup_context=_save,
)


@dataclass(frozen=True)
class _Chain:
    """Rates of the steps from child to parent, reordered so that the first word can be a parent.

    order: (N, T), the permutation, which is its own inverse.
    logs: (N, T, T), log A with log R on the diagonal, -inf for impossible arcs.
    rates: (N, T, 1 + T), R and A, at least e⁻²³⁰.
    """

    order: Tensor
    logs: Tensor
    rates: Tensor


def _chain(potentials: Tensor, words: Tensor, parents: Tensor) -> _Chain:
    """Divide and bound the rates: (N, T, T), (N, T), (N, T)."""
    order = _parent_first(parents)  # (N, T)
    words, parents = words.gather(1, order), parents.gather(1, order)  # (N, T), (N, T)
    logs = _reorder(potentials, order).clamp(-_INFINITY, _INFINITY)  # (N, T, T)
    logs = logs.masked_fill(~(words[:, :, None] & parents[:, None]), -math.inf)  # (N, T, T)
    itself = torch.eye(words.size(1), dtype=torch.bool, device=words.device)  # (T, T)
    largest = _finite(logs.masked_fill(itself, -math.inf).amax(-1))  # (N, T)
    logs = logs - largest[..., None]  # (N, T, T)
    largest_root = _finite(logs.diagonal(dim1=1, dim2=2).amax(-1))  # (N,)
    logs.diagonal(dim1=1, dim2=2).sub_(largest_root[:, None])
    rates = logs.clamp(min=_FLOOR).exp().masked_fill(logs.isneginf(), 0.0)  # (N, T, T)
    rates = _roots_first(rates)  # (N, T, 1 + T)
    # padding steps to the first word, and an empty sentence leaves at once: factors of 1 in Z
    rates[:, :, 1].masked_fill_(~words, 1.0)
    rates[:, 0, 0].masked_fill_(~words[:, 0], 1.0)
    return _Chain(order, logs, rates)


def _parent_first(parents: Tensor) -> Tensor:
    """Swap the first word with a possible parent: (N, T) -> (N, T). The last word left needs a rate
    of leaving."""
    first = parents.byte().argmax(-1, keepdim=True)  # (N, 1)
    order = torch.arange(parents.size(1), device=parents.device).repeat(len(parents), 1)  # (N, T)
    order.scatter_(1, first, 0)
    order[:, :1] = first
    return order


def _reorder(matrices: Tensor, order: Tensor) -> Tensor:
    """Reorder rows and columns: (N, T, T), (N, T) -> (N, T, T)."""
    rows = matrices.gather(1, order[:, :, None].expand_as(matrices))  # (N, T, T)
    return rows.gather(2, order[:, None].expand_as(matrices))


def _finite(largest: Tensor) -> Tensor:
    """Replace -inf, the maximum of an empty row, by 0."""
    return largest.masked_fill(largest.isneginf(), 0.0)


def _roots_first(matrices: Tensor) -> Tensor:
    """Copy the diagonal to the front: (N, T, T) -> (N, T, 1 + T). The old diagonal is not used."""
    return torch.cat([matrices.diagonal(dim1=1, dim2=2)[..., None], matrices], -1)


def _probabilities(rates: Tensor) -> Tensor:
    """Compute P as the rates times the gradient of log Z with respect to them: (N, T, 1 + T) -> (N,
    T, T)."""
    eliminated = rates.clone()  # (N, T, 1 + T)
    sums = _eliminate(eliminated)  # (N, T)
    probabilities = rates * _gradient(eliminated, sums)  # (N, T, 1 + T)
    return probabilities[..., 1:].diagonal_scatter(probabilities[..., 0], dim1=1, dim2=2)


def _eliminate(rates: Tensor) -> Tensor:
    """Remove the words from the last to the second, in place: (N, T, 1 + T) -> s, (N, T), with s_0
    = 1.

    Row k becomes R_k / s_k and A_kj / s_k for j < k; column k and R_0 keep the values of their last
    use.
    """
    sums = torch.ones_like(rates[..., 0])  # (N, T)
    for k in range(rates.size(1) - 1, 0, -1):
        sums[:, k] = rates[:, k, 1 : k + 1].sum(-1)
        onward = rates[:, k, : k + 1].div_(sums[:, k, None])  # (N, 1 + k)
        rates[:, :k, : k + 1].addcmul_(rates[:, :k, k + 1, None], onward[:, None])
    return sums


def _gradient(eliminated: Tensor, sums: Tensor) -> Tensor:
    """Differentiate log Z with respect to the rates: (N, T, 1 + T), (N, T) -> (N, T, 1 + T).

    The words return from the second to the last; gradients of rates between words before k do not
    change.
    """
    gradient = torch.zeros_like(eliminated)  # (N, T, 1 + T)
    gradient[:, 0, 0] = eliminated[:, 0, 0].reciprocal()
    for k in range(1, eliminated.size(1)):
        before = gradient[:, :k, : k + 1]  # (N, k, 1 + k)
        inward, onward = (
            eliminated[:, :k, k + 1, None],
            eliminated[:, k, None, : k + 1],
        )  # (N, k, 1), (N, 1, 1 + k)
        gradient_inward = (before * onward).sum(-1, keepdim=True)  # (N, k, 1)
        gradient_onward = (before * inward).sum(-2)  # (N, 1 + k)
        # s_k is a factor of Z and a divisor of every step from k
        gradient_onward[:, 1:] += 1 - (gradient_inward * inward).sum(-2)
        gradient[:, :k, k + 1] = gradient_inward[..., 0]
        gradient[:, k, : k + 1] = gradient_onward / sums[:, k, None]
    return gradient
