"""Stands in for CUDA graphs on a machine without a GPU."""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest
import torch
from small import random_example
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

pytest.importorskip("synmt.fast")

from synmt.arrays import SIDES
from synmt.data.batch import collate, collate_filled
from synmt.fast.training_graphs import RecordedPasses
from synmt.model.device import autocast
from synmt.syntax.reading import Reading
from synmt.training.loss import Objective


class Recording(TorchDispatchMode):
    """Records the operators of a function; calls after the first one replay them with the same
    tensors, without the function itself."""

    made: ClassVar[list[Recording]] = []
    active = False

    def __init__(self, function, device):
        super().__init__()
        self.operators, self.replays = [], -1
        Recording.active = True
        with self:
            self.output = function()
        Recording.active = False
        self.made.append(self)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        assert function.overloadpacket._qualified_op_name not in (
            "aten::_local_scalar_dense",
            "aten::nonzero",
        )
        results = function(*args, **(kwargs or {}))
        self.operators.append((function, args, kwargs or {}, results))
        return results

    def __call__(self):
        self.replays += 1
        # recording has computed the step, which a CUDA graph does not
        for function, args, kwargs, results in self.operators if self.replays else ():
            again = function(*args, **kwargs)
            for old, new in zip(tree_leaves(results), tree_leaves(again), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)
        return self.output


def make_graphed_callables(module, sample, **options):
    """Record the forward and the backward pass of a module, as torch.cuda does."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    forward = Recording(lambda: module(*sample), None)
    outputs, form = tree_flatten(forward.output)
    slopes = [torch.ones_like(output) for output in outputs]
    backward = Recording(
        lambda: torch.autograd.grad(outputs, weights, slopes, allow_unused=True), None
    )
    # the batch that they are called with is another one
    forward.replays = backward.replays = 0

    class Replayed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            torch._foreach_copy_(tree_leaves(sample), given[: -len(weights)])
            forward()
            return tuple(output.detach() for output in outputs)

        @staticmethod
        def backward(ctx, *given):
            torch._foreach_copy_(slopes, given)
            return (*[None] * len(tree_leaves(sample)), *backward())

    return lambda *batch: tree_unflatten(Replayed.apply(*tree_leaves(batch), *weights), form)


def losses_and_gradients(model, batch, precision="float32", run=None):
    """Compute the losses of a batch and their gradients, and copy them to the CPU."""
    model.zero_grad()
    torch.manual_seed(1)
    objective = Objective(model, label_smoothing=0.1)
    objective.run = run or objective.run
    with autocast(batch.target_input.device, precision):
        losses = objective(batch)
    sum(losses.values()).backward()
    gradients = {
        name: weight.grad.cpu().clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }
    return {name: value.detach().cpu() for name, value in losses.items()}, gradients


def assert_recorded_as_computed(model):
    """Check that the passes of filled batches are recorded, and that they compute what the model
    computes from the batches as they are."""
    passes, random = RecordedPasses(model), np.random.default_rng(1)
    readings = [Reading(model.reads(side) + model.learns(side)) for side in SIDES]
    examples = [random_example(words, random, words) for words in (3, 5, 1)]
    # all orders have the same shape
    for ordered in permutations(examples):
        batch, filled = (
            make(ordered, *readings).to(model.output_weight.device)
            for make in (collate, collate_filled)
        )
        assert filled.source.ids.shape[0] == 8
        assert filled.source.ids.size(1) % 4 == filled.target_input.size(1) % 4 == 0
        assert filled.lines == batch.lines
        found = losses_and_gradients(model, filled, run=passes)
        torch.testing.assert_close(found, losses_and_gradients(model, batch), rtol=1e-3, atol=1e-4)
    assert len(passes._recorded) == 1
