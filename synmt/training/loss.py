"""Label-smoothed cross-entropy with its gradient, in one pass over blocks of rows that never stores
all logits.

`Objective` is what training minimizes: one module, so that several processes can wrap model and
losses together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from synmt.data.batch import Batch, Tensors
from synmt.model.device import sum_type
from synmt.model.seq2seq import Output, Products, Seq2Seq

BLOCKS = {"cpu": 1 << 20, "cuda": 1 << 27}
"""Maximum number of logits in a block: small enough for a CPU's cache, large enough to keep a GPU
busy."""
TOGETHER = {"cpu": 4, "cuda": 1}
"""Blocks whose gradients are computed together if they are converted to a lower precision."""


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        products: Products,
        gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        kind = states.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        states_, weight_ = states.to(dtype), weight.to(dtype)  # (N, D), (V, D)
        exact = torch.promote_types(dtype, torch.float32)
        pieces = weight.size(0)
        most = max(1, BLOCKS.get(kind, BLOCKS["cuda"]) // pieces)
        # multiples of 64 suit the libraries that multiply
        most -= most % 64 if most > 64 else 0
        total = states.new_zeros((), dtype=sum_type(states.device))
        likelihood = torch.zeros_like(total)
        mean = weight.mean(0, dtype=exact)  # (D,)
        # without a gradient, both are empty
        to_states = torch.empty_like(states_ if gradient else states_[:0])  # (N, D)
        to_weight = torch.zeros_like(weight if gradient else weight[:0], dtype=exact)  # (V, D)
        # memory for all blocks: new one takes three times as long
        converted, slopes = states.new_empty(0, dtype=exact), states.new_empty(0, dtype=dtype)
        for group in _blocks(len(states), most if dtype == exact else most * TOGETHER.get(kind, 1)):
            rows = products.padded(states_[group], dtype)  # (p, D)
            target = targets[group, None]  # (m, 1)
            slopes.resize_(len(rows) if gradient else 0, pieces)  # (p, V)
            for block in _blocks(len(target), most):
                right = target[block]  # (n, 1)
                logits = products.multiply(rows[block], weight_)[: len(right)]  # (n, V)
                if dtype != exact:
                    logits = converted.resize_(logits.shape).copy_(logits)
                memory = slopes[block][: len(right)]  # (n, V)
                logit = logits.gather(-1, right)[:, 0]  # (n,)
                slope, normalizer = _softmax(
                    logits, memory if gradient and dtype == exact else logits
                )
                nll = normalizer - logit  # (n,)
                # the mean logit of a row is its state times the mean weight
                uniform = normalizer - states_[group][block].to(exact) @ mean  # (n,)
                likelihood += nll.sum()
                total += ((1 - smoothing) * nll + smoothing * uniform).sum()
                if gradient:
                    slope.scatter_add_(-1, right, torch.full_like(nll, smoothing - 1)[:, None])
                    if slope is not memory:
                        memory.copy_(slope)
            if gradient:
                slopes[len(target) :] = 0
                to_states[group] = products.multiply(slopes, weight_.T)[: len(target)]
                products.add_outer(to_weight, slopes, rows)
        if gradient:
            # what is left of the slope: -ε / V for every piece
            to_states.sub_(smoothing * mean)
            to_weight.sub_(states_.sum(0, dtype=exact) * (smoothing / pieces))
            ctx.save_for_backward(to_states, to_weight)
        ctx.mark_non_differentiable(likelihood)
        ctx.types = states.dtype, weight.dtype
        return total, likelihood

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        to_states, to_weight = ctx.saved_tensors
        to_states = to_states.to(ctx.types[0]) * slopes[0]
        to_weight = to_weight * slopes[0]
        return to_states.to(ctx.types[0]), to_weight.to(ctx.types[1]), *[None] * 4


def _softmax(logits: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the softmax of logits (n, V), which may be its memory, and its normalizers log Σ exp
    (n,)."""
    largest = logits.amax(-1)  # (n,)
    weights = torch.softmax(logits, -1, out=memory)  # (n, V)
    return weights, largest - weights.amax(-1).log()


def _blocks(count: int, rows: int) -> Iterator[slice]:
    return (slice(first, first + rows) for first in range(0, count, rows))


def smoothed_cross_entropy(
    states: Tensor,
    weight: Tensor,
    targets: Tensor,
    *,
    smoothing: float,
    products: Products = Products(),
) -> tuple[Tensor, Tensor]:
    """Compute the sums of label-smoothed loss and negative log-likelihood, in nats (Szegedy et al.,
    2016, section 7).

        loss = Σ_n (1 - ε) · nll_n + ε / V · Σ_v -log p_n(v)        p_n = softmax(weight · states_n)

    states (N, D), weight (V, D), targets (N,); only the loss is differentiable.
    """
    wants_gradient = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    return _SmoothedCrossEntropy.apply(  # type: ignore[return-value]
        states, weight, targets, smoothing, products, wants_gradient
    )


class Objective(nn.Module):
    """Computes the losses of a model on a batch; the loss also reads the weight of the output
    layer.

    run: computes the model's output.
    """

    def __init__(self, model: Seq2Seq, label_smoothing: float) -> None:
        super().__init__()
        self.model, self.label_smoothing = model, label_smoothing
        self.run: Callable[[Batch], Output] = model.__call__

    def forward(self, batch: Batch) -> Tensors:
        """Compute sums over the batch: `loss`, `nll` in nats, and the model's auxiliary losses."""
        output = self.run(batch)
        states = output.states.flatten(0, 1).index_select(0, batch.target_positions)  # (N, D)
        targets = batch.target_output.flatten().index_select(0, batch.target_positions)  # (N,)
        weight, bias = self.model.output_weight, self.model.output_bias
        if bias is not None:
            # a weight of one more component, which is 1 in every state
            states = F.pad(states, (0, 1), value=1.0)  # (N, D + 1)
            weight = torch.cat((weight, bias[:, None]), 1)  # (V, D + 1)
        loss, nll = smoothed_cross_entropy(
            states,
            weight,
            targets,
            smoothing=self.label_smoothing,
            products=self.model.products,
        )
        return {"loss": loss, "nll": nll, **output.losses}
