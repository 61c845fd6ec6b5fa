"""Data-parallel training in several processes, as `torchrun` starts them."""

from __future__ import annotations

import atexit
import inspect
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.distributed import PrefixStore, rendezvous  # pyright: ignore[reportPrivateImportUsage]
from torch.nn.parallel import DistributedDataParallel

from synmt.errors import SynmtError
from synmt.parallel.torchrun import started

PREPARATION = timedelta(days=7)
"""How long processes wait for the first one, which may parse for days."""
_ANSWER = timedelta(seconds=1)
"""How long they wait for an answer of the first one before they look whether it has started
again."""
STEP = timedelta(minutes=10)
"""How long they wait for each other in training, where all do the same."""

_NEW = "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters
_KEEP_BUFFERS: dict[str, Any] = {"forward_sync_buffers" if _NEW else "broadcast_buffers": False}
"""The tables of positions are the same everywhere, and grow in each process by themselves."""


@dataclass(frozen=True)
class Processes:
    """This process and the number of all processes.

    group: through which they talk in training; None for that of the preparation.
    store: torchrun's store, which survives restarts of the processes.
    """

    rank: int = 0
    count: int = 1
    group: Any = None
    store: Any = None

    def note(self, what: str) -> None:
        """Write down what these processes have done, for those that torchrun may start in their
        place."""
        if self.store is not None:
            self.store.set(what, "")

    def was_done_before(self, what: str) -> bool:
        """Return whether `note` was called with this before torchrun restarted the processes."""
        return self.store is not None and self.store.check([what])

    def for_training(self) -> Processes:
        """Return the same processes, which no longer wait for days; all of them call this
        together."""
        if self.count == 1:
            return self
        return replace(self, group=torch.distributed.new_group(backend=_backend(), timeout=STEP))

    def sum(self, *values: int) -> list[int]:
        """Sum numbers over all processes."""
        if self.count == 1:
            return list(values)
        total = torch.tensor(values)
        with self.reporting_lost_processes():
            torch.distributed.all_reduce(total, group=self.group)
        return total.tolist()

    def share_gradients(self, module: nn.Module, device: torch.device) -> nn.Module:
        """Wrap a module whose backward pass then averages the gradients of all processes."""
        if self.count == 1:
            return module
        return DistributedDataParallel(
            module,
            process_group=self.group,
            device_ids=[device] if device.type == "cuda" else None,
            # gradients are views of what is sent, not copied
            gradient_as_bucket_view=True,
            **_KEEP_BUFFERS,
        )

    @contextmanager
    def reporting_lost_processes(self) -> Iterator[None]:
        """Raise SynmtError if another process has ended or hangs."""
        try:
            yield
        except RuntimeError as error:
            is_lost = isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
            if self.count == 1 or not is_lost:
                raise
            raise SynmtError(
                f"another of the {self.count} processes has ended, or has not answered for {STEP}",
                do="Look for its message. The same command continues from the last checkpoint",
            ) from error

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Run a block in the first process before the others, for work that writes files."""
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
    this = started()
    if this.count == 1:
        return Processes()
    if torch.cuda.is_available():
        torch.cuda.set_device(this.local_rank)
    store, rank, count = next(rendezvous("env://", timeout=PREPARATION))
    # after a restart, torchrun's store still has the addresses of the processes that are gone
    of_start = PrefixStore(name_of_start(PrefixStore("start", store), rank, count), store)
    torch.distributed.init_process_group(
        _backend(), store=of_start, rank=rank, world_size=count, timeout=PREPARATION
    )
    atexit.register(torch.distributed.destroy_process_group)
    return Processes(rank, count, store=PrefixStore("done", store))


def name_of_start(store: Any, rank: int, count: int) -> str:
    """Agree with the other processes on a name that they had at no earlier start.

    torchrun's count of restarts cannot be used for that: each machine counts for itself, and not
    every start.
    """
    mine = uuid.uuid4().hex
    if rank == 0:
        store.set("name", mine)
        for other in range(1, count):
            # the answer to this process, not to one that is gone
            store.set(f"{mine}/{other}/{store.get(f'{mine}/{other}').decode()}", "")
        return mine
    while True:
        # until the first process has started as well, the name is that of an earlier start, and
        # there is no answer
        name = store.get("name").decode()
        store.set(f"{name}/{rank}", mine)
        with suppress(torch.distributed.DistError):
            store.wait([f"{name}/{rank}/{mine}"], _ANSWER)
            return name


def _backend() -> str:
    # gloo for what is on the CPU: counts of pieces, and the wait for the first process
    return "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
