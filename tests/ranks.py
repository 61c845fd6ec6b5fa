"""Started by test_several_processes: processes that train every variant for a step, each on batches of its own."""

import multiprocessing
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parent))
from small import random_batch, small_recipe
from test_variants import DEFAULTS, made

from synmt.errors import SynmtError
from synmt.model.build import variant_class
from synmt.model.placement import option_defaults
from synmt.run import Run
from synmt.training import distributed
from synmt.training.distributed import Processes
from synmt.training.trainer import Trainer

SYSTEMS = {case.id: case.values[0] for case in DEFAULTS}
"""Every variant on each of its sides."""


def systems_of(count):
    """Name the variants that so many processes train: all, or those with a loss of their own."""
    return [name for name, recipe in SYSTEMS.items() if count == 2 or has_loss(recipe)]


def has_loss(recipe):
    return any(variant.learns for variant in made(recipe).variants[recipe["side"]])


def without_dropout(name):
    """Give the options that keep a variant from drawing random numbers, which differ between the processes."""
    return {option: 0.0 for option in option_defaults(variant_class(name)) if option.endswith("dropout")}


def batches_of(model, rank, count):
    """Give a process its batches of a step, of other sizes than those of the others; two processes accumulate."""
    each = 2 if count == 2 else 1
    numbers = range(each * rank, each * rank + each)
    return [random_batch(model, [3 + number % 4] * (1 + number % 3), seed=number)[1] for number in numbers]


def train(name, ranks, count, processes):
    """Train a variant for a step on the batches of some of `count` ranks; returns its weights."""
    model = made({**SYSTEMS[name], **without_dropout(SYSTEMS[name]["name"])})
    recipe = small_recipe(training={"clip_norm": 0, "learning_rate": 0.1, "schedule": "constant", "warmup": 0})
    trainer = Trainer(
        Run(Path("nowhere")), recipe, model, train=None, valid=None, device=torch.device("cpu"), processes=processes
    )
    trainer.optimizer = torch.optim.SGD(model.parameters(), fused=True)
    trainer.update([batch for rank in ranks for batch in batches_of(model, rank, count)])
    return {f"{name}/{own}": weight.detach().clone() for own, weight in model.named_parameters()}


def run_rank(rank, count, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    weights = {}
    for name in systems_of(count):
        weights |= train(name, [rank], count, Processes(rank, count))
    if rank == count - 1:
        save_file(weights, folder / "weights.safetensors")
    torch.distributed.destroy_process_group()


def lose_rank(rank, count, folder, how):
    """Let the second process end or hang before its step; the first one writes what it says."""
    torch.set_num_threads(1)
    distributed.STEP = timedelta(seconds=2)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    processes = Processes(rank, count).for_training()
    if rank:
        if how == "hangs":
            signal.pause()
        os._exit(0)
    try:
        with processes.reporting_lost_processes():
            processes.sum(1)
    except SynmtError as error:
        (folder / "said").write_text(str(error))
    os._exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    place, number = Path(sys.argv[1]), int(sys.argv[2])
    if not sys.argv[3:]:
        # a fork does not load again what is there: torch, and what its optimizers load when the first one is made
        train(next(iter(SYSTEMS)), [0], 1, Processes())
    context = multiprocessing.get_context("fork")
    work, more = (lose_rank, sys.argv[3:]) if sys.argv[3:] else (run_rank, [])
    children = [context.Process(target=work, args=(rank, number, place, *more)) for rank in range(number)]
    for child in children:
        child.start()
    if more:
        children[0].join()
        children[1].kill()
    for child in children:
        child.join()
    sys.exit(0 if more else max(abs(child.exitcode or 0) for child in children))
