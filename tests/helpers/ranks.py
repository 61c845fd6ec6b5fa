"""What processes do that train together: every variant for a step, or the copy task, where one of
them may be lost."""

import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch

# loaded once where processes fork from: optimizers load it when the first one is made
import torch._dynamo
from copy_task import make_exact, make_recipe, make_trainer
from forked import run_command
from safetensors.torch import save_file
from small import random_batch, small_recipe
from torch.distributed.launcher.api import elastic_launch
from torch.distributed.run import config_from_args, parse_args
from variant_cases import DEFAULTS, made

from synmt.errors import SynmtError
from synmt.model.build import variant_class
from synmt.model.placement import option_defaults
from synmt.run_folder import Run
from synmt.training import distributed
from synmt.training.distributed import Processes, join_processes
from synmt.training.optimizer import local_part
from synmt.training.trainer import Trainer

SYSTEMS = {case.id: case.values[0] for case in DEFAULTS}
"""Every variant on each of its sides."""


def systems_of(count):
    """Name the variants that a number of processes train: all, or those with an auxiliary loss."""
    return [name for name, recipe in SYSTEMS.items() if count == 2 or has_loss(recipe)]


def has_loss(recipe):
    return any(variant.learns for variant in made(recipe).variants[recipe["side"]])


def without_dropout(name):
    """Give the options that keep a variant from drawing random numbers, which differ between the
    processes."""
    return {
        option: 0.0 for option in option_defaults(variant_class(name)) if option.endswith("dropout")
    }


def batches_of(model, rank, count):
    """Give a process its batches of a step, of other sizes than those of the others; three
    processes accumulate."""
    each = 2 if count == 3 else 1
    numbers = range(each * rank, each * rank + each)
    return [
        random_batch(model, [3 + number % 4] * (1 + number % 3), seed=number)[1]
        for number in numbers
    ]


def train(name, ranks, count, processes):
    """Train a variant for a step on the batches of some of `count` ranks; returns its weights."""
    model = made({**SYSTEMS[name], **without_dropout(SYSTEMS[name]["name"])})
    recipe = small_recipe(
        training={"clip_norm": 0, "learning_rate": 0.1, "schedule": "constant", "warmup": 0}
    )
    trainer = Trainer(
        Run(Path("nowhere")),
        recipe,
        model,
        train=None,
        valid=None,
        device=torch.device("cpu"),
        processes=processes,
    )
    trainer.optimizer = torch.optim.SGD(model.parameters(), fused=True)
    trainer.update([batch for rank in ranks for batch in batches_of(model, rank, count)])
    return {f"{name}/{own}": weight.detach().clone() for own, weight in model.named_parameters()}


def join(rank, count, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count
    )
    return Processes(rank, count)


def train_variants(rank, count, folder):
    """Train the variants for a step; the last process writes their weights."""
    processes, weights = join(rank, count, folder), {}
    for name in systems_of(count):
        weights |= train(name, [rank], count, processes)
    if rank == count - 1:
        save_file(weights, folder / "weights.safetensors")
    torch.distributed.destroy_process_group()


def share_state(rank, count, folder):
    """Train the copy task with an optimizer that is whole, divided, and both after the other's
    checkpoint."""
    processes = join(rank, count, folder)
    for name, divided in (
        ("whole", False),
        ("divided", True),
        ("whole-divided", True),
        ("divided-whole", False),
    ):
        if "-" in name:
            recipe = make_recipe(max_steps=2, shard_optimizer=not divided, validation_beam_size=0)
            list(of_rank(folder / name, recipe, processes).train())
        recipe = make_recipe(max_steps=4, shard_optimizer=divided, validation_beam_size=0)
        trainer = of_rank(folder / name, recipe, processes)
        trainer.resume()
        list(trainer.train())
        if name == "divided":
            kept = sum(len(state) > 0 for state in local_part(trainer.optimizer).state.values())
            (folder / f"kept-{rank}").write_text(str(kept))
    torch.distributed.destroy_process_group()


def of_rank(folder, recipe, processes):
    trainer = make_trainer(folder, recipe, processes=processes)
    trainer.train_reader = replace(
        trainer.train_reader, rank=processes.rank, processes=processes.count
    )
    processes.wait()
    return trainer


def lose_one(rank, count, folder, how):
    """Let the second process end or hang before its step; the first one writes what it says, and
    ends the other."""
    distributed.STEP = timedelta(seconds=1)
    processes = join(rank, count, folder)
    # both are there, and then connected: what follows loses a process, not a connection that is
    # being made
    processes.wait()
    processes = processes.for_training()
    torch.distributed.barrier(processes.group)
    if rank:
        (folder / "other").write_text(str(os.getpid()))
        if how == "hangs":
            signal.pause()
        os._exit(0)
    try:
        with processes.reporting_lost_processes():
            processes.sum(1)
    except SynmtError as error:
        (folder / "said").write_text(str(error))
    if how == "hangs":
        os.kill(int((folder / "other").read_text()), signal.SIGKILL)
    os._exit(0)


def launch(count, port, work, *arguments):
    """Do what torchrun does, but let the processes fork."""
    options = [
        f"--nproc-per-node={count}",
        f"--master-port={port}",
        "--max-restarts=1",
        "--start-method=fork",
    ]
    elastic_launch(config_from_args(parse_args([*options, "unused"]))[0], work)(*arguments)


def be_command(*arguments):
    """Be the command `synmt`; a process of torchrun has to return, or to fail."""
    try:
        run_command(*arguments)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"exit code {end.code}") from None


def train_twice(folder):
    """Train the copy task twice, with the other processes; the first time, the second one is killed
    once."""
    torch.set_num_threads(1)
    if os.environ["RANK"] == "0":
        # as on a machine that starts its processes again because another machine lost one
        os.environ["TORCHELASTIC_RESTART_COUNT"] = "0"
    processes = join_processes()
    for how in ("killed", "whole"):
        trainer = make_trainer(
            folder / how,
            make_recipe(max_steps=4, batch_tokens=30, log_every=1),
            processes=processes,
        )
        trainer.train_reader = replace(
            trainer.train_reader, rank=processes.rank, processes=processes.count
        )
        make_exact(trainer, momentum=0.9)
        again = trainer.resume()
        # torchrun's store outlives the processes
        assert processes.was_done_before(how) == (again > 0)
        processes.wait()
        processes.note(how)
        for record in trainer.train():
            if how == "killed" and processes.rank == 1 and record.step == 3 and not again:
                (folder / "has been killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        processes.wait()
