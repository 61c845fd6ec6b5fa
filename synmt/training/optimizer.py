"""AdamW, whose state several processes can divide among themselves, or Muon with AdamW; moving
averages of the weights; the learning rate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn

from synmt.arrays import Values
from synmt.data.batch import Tensors
from synmt.errors import UsageError
from synmt.recipe.schema import TrainingRecipe
from synmt.training.distributed import Processes

INITIAL_RATE = 1e-7
"""The learning rate at the start of warm-up for `inverse_sqrt` (the PASCAL paper's scripts)."""


class Adam(torch.optim.AdamW):
    """AdamW that does not load torch's compiler.

    torch wraps these methods for programs that compile an optimizer. The wrappers import the
    compiler, which takes a second, and synmt compiles models only.

    ema: the decay of moving averages of the weights, see `move_averages`; 0 for none.
    """

    ema = 0.0

    add_param_group = unwrap(torch.optim.AdamW.add_param_group)
    zero_grad = unwrap(torch.optim.AdamW.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.AdamW.step))


class MuonWithAdam(Adam):
    """Muon (Jordan et al., 2024) for some matrices, AdamW for all other weights, with one list of
    groups and one state.

    B ← μ B + g, and a step along the matrix nearest to g + μ B whose singular values are all 1
    """

    def __init__(
        self, groups: Sequence[Values], matrices: Collection[Tensor], **options: Any
    ) -> None:
        self.matrices = set(matrices)
        super().__init__(_part(groups, lambda weight: weight not in self.matrices), **options)
        self._of_adam = self.param_groups
        self._muon = torch.optim.Muon(
            _part(groups, self.matrices.__contains__),
            weight_decay=options["weight_decay"],
            adjust_lr_fn="match_rms_adamw",
        )
        self._muon.state = self.state
        self.param_groups = [*self._of_adam, *self._muon.param_groups]

    def step(self) -> None:
        """Update all weights, or none if a gradient is not finite."""
        groups, self.param_groups = self.param_groups, self._of_adam
        super().step()
        self.param_groups = groups
        # set by the trainer, or by the gradient scaler of fp16
        if not getattr(self, "found_inf", 0.0):
            self._muon.step()


def _part(groups: Sequence[Values], belongs: Callable[[Tensor], bool]) -> list[Values]:
    return [{**group, "params": list(filter(belongs, group["params"]))} for group in groups]


def make_optimizer(
    groups: Sequence[Values],
    settings: TrainingRecipe,
    processes: Processes,
    matrices: Collection[Tensor] = (),
) -> torch.optim.Optimizer:
    """Make the optimizer; with `shard_optimizer`, each of several processes updates some of the
    weights and sends them.

    The state is divided as in the first stage of ZeRO (Rajbhandari et al., 2020). All processes
    call this together.

    groups: `params`, and what else the trainer wants to know of them.
    matrices: those that Muon updates.
    """
    options: Values = {
        "betas": settings.betas,
        "eps": settings.epsilon,
        "weight_decay": settings.weight_decay,
        "fused": True,
    }
    if not settings.shard_optimizer or processes.count == 1:
        is_muon = settings.optimizer == "muon"
        if is_muon and not hasattr(torch.optim, "Muon"):
            raise UsageError("`training.optimizer: muon` needs PyTorch 2.9 or newer")
        made = MuonWithAdam(groups, matrices, **options) if is_muon else Adam(groups, **options)
        made.ema = settings.ema
        return made
    with warnings.catch_warnings():
        # the package also has optimizers that torch.jit compiles, which torch itself deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        package = import_module("torch.distributed.optim")
    return package.ZeroRedundancyOptimizer(
        groups,
        optimizer_class=torch.optim.AdamW,
        process_group=processes.group,
        **options,
    )


def local_part(optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer of the weights that this process updates."""
    return optimizer.optim if _is_divided(optimizer) else optimizer


def gather_state(optimizer: Any) -> None:
    """Bring the state of all processes to the first one; all of them call this together."""
    if _is_divided(optimizer):
        optimizer.consolidate_state_dict(to=0)


def states_of(optimizer: Any) -> dict[Tensor, Tensors]:
    """Return the state of every weight; of a divided one, after `gather_state`, in the first
    process."""
    if not _is_divided(optimizer):
        return optimizer.state
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    return {weights[index]: state for index, state in optimizer.state_dict()["state"].items()}


def first_state(optimizer: Any, parameter: nn.Parameter, device: str) -> Tensors:
    """Make the state of a weight before its first update; a frozen one has none."""
    if not parameter.requires_grad:
        return {}
    of_muon = parameter in getattr(optimizer, "matrices", ())
    names = ("momentum_buffer",) if of_muon else ("exp_avg", "exp_avg_sq")
    state = {name: torch.zeros_like(parameter, device=device) for name in names}
    if not of_muon:
        state["step"] = torch.zeros((), device=device)
    if getattr(optimizer, "ema", 0.0):
        state["average"] = parameter.detach().to(device)
    return state


@torch.no_grad()
def move_averages(optimizer: Any, step: int) -> None:
    """Move the averages of all weights that have been updated: m ← d m + (1 - d) w, with d the
    smaller of `ema` and (1 + step) / (10 + step)."""
    decay = min(optimizer.ema, (1 + step) / (10 + step))
    for weight, state in optimizer.state.items():
        if "average" not in state:
            state["average"] = weight.detach().clone()
        state["average"].lerp_(weight, 1 - decay)


def exchange_averages(optimizer: Any) -> None:
    """Put the averages in the place of the weights, or back."""
    for weight, state in local_part(optimizer).state.items():
        if "average" in state:
            weight.data, state["average"] = state["average"], weight.data


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
