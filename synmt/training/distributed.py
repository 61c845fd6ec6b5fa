"""Data-parallel training in several processes, as `torchrun` starts them."""

from __future__ import annotations

import atexit
import datetime
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed
from torch import nn


@dataclass(frozen=True)
class Processes:
    """This process and the number of all processes."""

    rank: int = 0
    count: int = 1

    def sum(self, *values: int) -> list[int]:
        """Sum numbers over all processes."""
        if self.count == 1:
            return list(values)
        total = torch.tensor(values)
        torch.distributed.all_reduce(total)
        return total.tolist()

    def sum_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over all processes, in one message."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Let the first process run a block before the others, for work that writes files."""
        if self.rank:
            self.wait()
        yield
        if not self.rank:
            self.wait()

    def wait(self) -> None:
        """Wait until every process is here."""
        self.sum(0)


def join_processes() -> Processes:
    """Join the other processes that `torchrun` started, if any."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Processes()
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    # gloo on the CPU: the others may wait for days while the first process parses
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    torch.distributed.init_process_group(backend, timeout=datetime.timedelta(days=7))
    atexit.register(torch.distributed.destroy_process_group)
    return Processes(torch.distributed.get_rank(), torch.distributed.get_world_size())
