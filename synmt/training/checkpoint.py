"""Checkpoints: all that training needs to continue from a step, and which of them are kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pydantic import ConfigDict, with_config
from torch import nn
from typing_extensions import TypedDict

from synmt.arrays import Facts
from synmt.files.checksums import RECORD, as_text, hashes
from synmt.files.json_files import Amount, Count, read_json
from synmt.files.writing import remove, reporting_os_errors, write_folder_atomically
from synmt.model.weights import load_checked, load_weights, save_tensors, save_weights
from synmt.recipe.schema import TrainingRecipe
from synmt.run_folder import Run
from synmt.training.meter import Step
from synmt.training.optimizer import first_state, local_part, states_of


class UnloggedCost(TypedDict, total=False):
    """What `Meter.restore` takes; old checkpoints also have joules."""

    tokens: Count
    seconds: Amount
    processor_seconds: Amount
    joules: Amount | None


@with_config(ConfigDict(extra="forbid"))
@dataclass
class TrainingState:
    """The progress of training, as a checkpoint stores it.

    epoch, batch: the position in the training data, over all processes.
    waited: validations since the best one.
    decays: validations that lowered the learning rate of the schedule `plateau`; old checkpoints
        have none.
    scaler: the state of the gradient scaler, for fp16.
    unlogged: the steps since the last record, which the next record covers too.
    unlogged_cost: what they have cost, as `Meter.restore` takes it; old checkpoints do not say it.
    """

    step: Count
    epoch: Count
    batch: Count
    best_step: Count
    best_value: float | None
    waited: Count
    decays: Count = 0
    scaler: dict[str, float] = field(default_factory=dict)
    unlogged: list[Step] = field(default_factory=list)
    unlogged_cost: UnloggedCost = field(default_factory=UnloggedCost)


def save_checkpoint(
    run: Run,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    state: Facts,
) -> None:
    """Write all that training needs to continue from a step; a divided optimizer's state has been
    gathered."""
    states = states_of(optimizer)
    tensors = {
        f"{name}/{key}": tensor
        for name, parameter in model.named_parameters()
        # a weight that no loss has used yet has no state
        for key, tensor in (
            states.get(parameter) or first_state(optimizer, parameter, "cpu")
        ).items()
    }
    with write_folder_atomically(run.checkpoint(step)) as folder:
        save_weights(model, folder / "model.safetensors")
        save_tensors(tensors, folder / "optimizer.safetensors")
        with reporting_os_errors(folder):
            (folder / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
            (folder / RECORD).write_text(as_text(hashes(folder, "*")), encoding="utf-8")


def load_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> TrainingState:
    """Restore weights and optimizer, and return the progress of training."""
    load_weights(folder / "model.safetensors", model)
    parameters = dict(model.named_parameters())
    expected = {
        f"{name}/{key}": tensor
        for name, parameter in parameters.items()
        for key, tensor in first_state(optimizer, parameter, "meta").items()
    }
    local = local_part(optimizer)
    updated = {weight for group in local.param_groups for weight in group["params"]}
    for path, tensor in load_checked(folder / "optimizer.safetensors", expected).items():
        name, _, key = path.rpartition("/")
        if parameters[name] in updated:
            local.state[parameters[name]][key] = tensor.to(parameters[name].device)
    return read_json(folder / "state.json", TrainingState)


def regular_checkpoints(run: Run, settings: TrainingRecipe) -> list[Path]:
    """List the scheduled checkpoints, oldest first, without those that an interruption left."""
    intervals = (settings.save_every, settings.validate_every, max(1, settings.max_steps))
    return [
        folder
        for folder in run.checkpoints()
        if any(int(folder.name.removeprefix("step-")) % interval == 0 for interval in intervals)
    ]


def drop_checkpoints(run: Run, settings: TrainingRecipe, *, best_step: int) -> None:
    """Remove the checkpoints that are no longer needed, and the optimizer of all but the newest."""
    steps = run.checkpoints()
    for folder in steps[:-1]:
        remove(folder / "optimizer.safetensors")
    needed = {
        steps[-1],
        run.checkpoint(best_step),
        *regular_checkpoints(run, settings)[-max(settings.keep, settings.average) :],
    }
    for folder in steps:
        if folder not in needed:
            remove(folder)
