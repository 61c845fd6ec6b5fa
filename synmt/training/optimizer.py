"""AdamW, whose state several processes can divide among themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from synmt.recipe.schema import TrainingRecipe
from synmt.training.distributed import Processes


def make_optimizer(
    parameters: Iterable[nn.Parameter], settings: TrainingRecipe, processes: Processes
) -> torch.optim.Optimizer:
    """Make the optimizer; with `shard_optimizer`, each of several processes updates some of the weights and sends them.

    The state is divided as in the first stage of ZeRO (Rajbhandari et al., 2020). All processes call this together.
    """
    how: dict[str, Any] = {
        "betas": settings.betas,
        "eps": settings.epsilon,
        "weight_decay": settings.weight_decay,
        "fused": True,
    }
    if not settings.shard_optimizer or processes.count == 1:
        return torch.optim.AdamW(parameters, **how)
    with warnings.catch_warnings():
        # the package also has optimizers that torch.jit compiles, which torch itself deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        package = import_module("torch.distributed.optim")
    group = {"process_group": processes.group}
    return package.ZeroRedundancyOptimizer(parameters, optimizer_class=torch.optim.AdamW, **group, **how)


def local_part(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer of the weights that this process updates."""
    return optimizer.optim if _is_divided(optimizer) else optimizer


def gather_state(optimizer: Any) -> None:
    """Bring the state of all processes to the first one; all of them call this together."""
    if _is_divided(optimizer):
        optimizer.consolidate_state_dict(to=0)


def states_of(optimizer: Any) -> dict[Tensor, dict[str, Tensor]]:
    """Return the state of every weight; of a divided one, after `gather_state`, in the first process."""
    if not _is_divided(optimizer):
        return dict(optimizer.state)
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return {weights[index]: state for index, state in optimizer.state_dict()["state"].items()}


def _is_divided(optimizer: Any) -> bool:
    return hasattr(optimizer, "consolidate_state_dict")
