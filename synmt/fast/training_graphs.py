"""Steps of training on a GPU, recorded as CUDA graphs: one call launches all kernels of the model's
forward pass, and one those of its backward pass.

Without them, a small model leaves a GPU idle, which waits for the next of some hundred small
kernels. A graph computes with the same memory and the same shapes whenever it is replayed, so
batches are filled up to few shapes (`collate_filled`), and each shape has its graphs. The loss of
the output layer, whose number of pieces differs from batch to batch, and the optimizer run as they
are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from synmt.arrays import SIDES
from synmt.data.batch import Batch, Sequences, Tensors
from synmt.errors import SynmtError
from synmt.model.seq2seq import Output, Seq2Seq

_MOST = 100
"""Shapes that are recorded: each needs memory for all gradients."""
_NEAR = 0.01
"""By how much a recorded pass may differ, as a part of the norm: sums on a GPU have no fixed
order."""
_DO = "Leave out training.cuda_graphs; a run goes on from its last checkpoint"


class RecordedPasses:
    """The passes of a model in training, recorded for each shape of a batch.

    The first batch of a shape is computed as it is, and so is the second one, for which the passes
    are recorded. The third one is computed in both ways, which must agree, and all others by the
    graphs. The random numbers of a step are the same in both ways.

    Raises SynmtError if a pass cannot be recorded, or computes something else than the model.
    """

    def __init__(self, model: Seq2Seq) -> None:
        self._model = model
        self._seen = Counter()
        self._recorded = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: Batch) -> Output:
        """Compute the states of the target and the auxiliary losses."""
        if not torch.is_grad_enabled():
            return self._model(batch)
        inputs = (
            batch.source.ids,
            batch.source.mask,
            batch.target_input,
            batch.target_output,
            batch.source_signals,
            batch.target_signals,
        )
        key = (
            *(tensor.shape for tensor in tree_leaves(inputs)),
            *(variant.loss_counts for side in SIDES for variant in self._model.variants[side]),
        )
        self._seen[key] += 1
        if self._seen[key] == 2 and len(self._recorded) < _MOST:
            self._recorded[key] = self._record(inputs)
        elif recorded := self._recorded.get(key):
            if self._seen[key] == 3:
                self._check(recorded, inputs)
            states, losses = recorded(*inputs)
            # the next batch of this shape computes in the same memory
            return Output(states, {name: loss.clone() for name, loss in losses.items()})
        return self._model(batch)

    def _record(self, inputs: tuple[Any, ...]) -> Any:
        # autocast would not convert weights again that it has converted outside of a graph
        torch.set_autocast_cache_enabled(False)
        try:
            return torch.cuda.make_graphed_callables(
                _OnTensors(self._model),
                tree_map(torch.clone, inputs),
                allow_unused_input=True,
                pool=self._pool,
            )
        except RuntimeError as error:
            raise SynmtError(
                f"steps of this model cannot be recorded as CUDA graphs: {error}", do=_DO
            ) from error
        finally:
            torch.set_autocast_cache_enabled(True)
            torch.manual_seed(torch.initial_seed())

    def _check(self, recorded: Any, inputs: tuple[Any, ...]) -> None:
        weights = [weight for weight in self._model.parameters() if weight.requires_grad]
        found = []
        for run in (_OnTensors(self._model), recorded):
            torch.manual_seed(torch.initial_seed())
            states, losses = run(*inputs)
            total = states.float().square().sum() + sum(losses.values())
            slopes = torch.autograd.grad(total, weights, allow_unused=True, materialize_grads=True)
            # as one vector: some gradients are nothing but rounding
            found.append(torch.cat([part.detach().float().flatten() for part in (states, *slopes)]))
        torch.manual_seed(torch.initial_seed())
        if not (found[1] - found[0]).norm() <= _NEAR * found[0].norm():
            raise SynmtError(
                "steps recorded as CUDA graphs do not compute what the model computes", do=_DO
            )


class _OnTensors(nn.Module):
    """A model that is given a batch as tensors."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> tuple[Tensor, Tensors]:
        """Compute the states of the target and the auxiliary losses."""
        ids, mask, target_input, target_output, *signals = inputs
        # what is on the processor, or differs between batches of a shape, is not recorded
        none = ids.new_empty(0)
        batch = Batch(Sequences(ids, mask, none), target_input, target_output, none, *signals)
        output = self.model(batch)
        return output.states, output.losses
