"""AdamW, whose state several processes can divide among themselves, and its learning rate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn

from synmt.recipe.schema import TrainingRecipe
from synmt.training.distributed import Processes

INITIAL_RATE = 1e-7
"""The learning rate at the start of warm-up for `inverse_sqrt` (the PASCAL paper's scripts)."""


class Adam(torch.optim.AdamW):
    """AdamW that does not load torch's compiler.

    torch wraps these methods for programs that compile an optimizer. The wrappers import the
    compiler, which takes a second, and synmt compiles models only.
    """

    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))


def make_optimizer(
    groups: Sequence[dict[str, Any]], settings: TrainingRecipe, processes: Processes
) -> torch.optim.Optimizer:
    """Make the optimizer; with `shard_optimizer`, each of several processes updates some of the
    weights and sends them.

    The state is divided as in the first stage of ZeRO (Rajbhandari et al., 2020). All processes
    call this together.

    groups: `params`, and what else the trainer wants to know of them.
    """
    betas, epsilon, decay = settings.betas, settings.epsilon, settings.weight_decay
    if not settings.shard_optimizer or processes.count == 1:
        return Adam(groups, betas=betas, eps=epsilon, weight_decay=decay, fused=True)
    with warnings.catch_warnings():
        # the package also has optimizers that torch.jit compiles, which torch itself deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        package = import_module("torch.distributed.optim")
    return package.ZeroRedundancyOptimizer(
        groups,
        optimizer_class=torch.optim.AdamW,
        process_group=processes.group,
        betas=betas,
        eps=epsilon,
        weight_decay=decay,
        fused=True,
    )


def local_part(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer of the weights that this process updates."""
    return optimizer.optim if _is_divided(optimizer) else optimizer


def gather_state(optimizer: Any) -> None:
    """Bring the state of all processes to the first one; all of them call this together."""
    if _is_divided(optimizer):
        optimizer.consolidate_state_dict(to=0)


def states_of(optimizer: Any) -> dict[Tensor, dict[str, Tensor]]:
    """Return the state of every weight; of a divided one, after `gather_state`, in the first
    process."""
    if not _is_divided(optimizer):
        return dict(optimizer.state)
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return {weights[index]: state for index, state in optimizer.state_dict()["state"].items()}


def first_state(parameter: nn.Parameter, device: str) -> dict[str, Tensor]:
    """Make the state of a weight before its first update; a frozen one has none."""
    if not parameter.requires_grad:
        return {}
    moments = {
        name: torch.zeros_like(parameter, device=device) for name in ("exp_avg", "exp_avg_sq")
    }
    return {"step": torch.zeros((), device=device), **moments}


def _is_divided(optimizer: Any) -> bool:
    return hasattr(optimizer, "consolidate_state_dict")


def learning_rate(step: int, recipe: TrainingRecipe, model_dim: int, *, decays: int = 0) -> float:
    """Compute the learning rate of a step, counted from 1.

    inverse_sqrt: linear from 1e-7 to the peak, then peak · √(warmup / step)
    noam:         factor · D^-½ · min(step^-½, step · warmup^-1½)
    (Vaswani et al., 2017, equation 3)
    constant:     linear from 0 to the rate, then the rate
    plateau:      constant, times decay^decays                         (Tran & Bisk, 2018: decay ½)

    decays: number of validations so far without improvement.
    """
    rate, warmup = recipe.learning_rate, recipe.warmup
    if recipe.schedule == "plateau":
        rate *= recipe.decay**decays
    if recipe.schedule == "noam":
        return rate * model_dim**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)
    if step < warmup:
        start = INITIAL_RATE if recipe.schedule == "inverse_sqrt" else 0.0
        return start + (rate - start) * step / warmup
    if recipe.schedule in ("constant", "plateau"):
        return rate
    return rate * (max(warmup, 1) / step) ** 0.5
