"""The meter of training: averages the numbers of the steps since the last record, and counts what
they cost."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from synmt.arrays import Facts, Values
from synmt.data.batch import Tensors
from synmt.errors import SynmtError, listed
from synmt.training.distributed import Processes
from synmt.training.records import StepRecord

_COST = ("tokens", "seconds", "processor_seconds")
_MOST_SKIPPED = 50
"""Steps in a row that fp16 may skip; a scale of 65,536 is 1 after 16 of them."""


@dataclass(frozen=True)
class Step:
    """The numbers of one step: means per target piece of this process, and pieces of this and of
    all processes."""

    means: dict[str, float]
    tokens: int
    all_tokens: int
    learning_rate: float
    gradient_norm: float


@dataclass(frozen=True)
class Update:
    """One update of the weights, before its numbers are read: reading a number waits for the GPU.

    losses: for each batch, sums over its target pieces by name; `loss` and `nll` are always there.
    lines: of its sentences, counted from 0.
    tokens, all_tokens: target pieces of this process and of all.
    """

    step: int
    losses: Sequence[Tensors]
    lines: Sequence[int]
    tokens: int
    all_tokens: int
    learning_rate: float
    gradient_norm: Tensor


class Meter:
    """Collects updates until their mean is due.

    overflow: whether gradients may be infinite, because the gradient scaler of fp16 skips such
        steps.
    processes: all that train; each has its meter, and all make their records together.
    steps: those whose numbers have been read and that no record covers yet.
    """

    def __init__(
        self, device: torch.device, *, overflow: bool = False, processes: Processes = Processes()
    ) -> None:
        self.device, self.overflow, self._processes = device, overflow, processes
        self._updates: list[Update] = []
        self._skipped = 0
        self.restore([], {})

    def restore(self, steps: Sequence[Step], cost: Facts) -> None:
        """Take over steps that no record covers yet, and what they have cost."""
        self.steps = list(steps)
        self._cost: Values = {name: cost.get(name, 0) for name in _COST}

    def unlogged(self) -> Values:
        """Return what `restore` takes, for a checkpoint."""
        steps = [asdict(step) for step in self.steps]
        return {"unlogged": steps, "unlogged_cost": self._cost if steps else {}}

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Count the time of a block."""
        began, processor_began = time.monotonic(), time.process_time()
        yield
        self._cost["seconds"] += time.monotonic() - began
        self._cost["processor_seconds"] += time.process_time() - processor_began

    def add(self, update: Update) -> None:
        """Add one update."""
        self._updates.append(update)
        self._cost["tokens"] += update.all_tokens

    def read(self) -> None:
        """Read the numbers of the updates from the device; raises SynmtError if one is not
        finite."""
        updates, self._updates = self._updates, []
        for update in updates:
            losses = [
                {name: loss.item() for name, loss in batch.items()} for batch in update.losses
            ]
            norm = update.gradient_norm.item()
            self._skipped = 0 if math.isfinite(norm) else self._skipped + 1
            if self.overflow and self._skipped > _MOST_SKIPPED:
                raise SynmtError(
                    f"fp16 has skipped the last {self._skipped} steps: their gradients were not "
                    f"finite, up to step {update.step}",
                    do="Use `precision: bf16` or float32, or lower training.learning_rate. The "
                    "last checkpoint is kept",
                )
            if not (math.isfinite(norm) or self.overflow) or not all(
                math.isfinite(batch["loss"]) for batch in losses
            ):
                raise SynmtError(
                    f"the loss or the gradient of step {update.step} is not a finite number",
                    where="training lines " + listed((str(line + 1) for line in update.lines), 20),
                    do="Look at these lines, or lower training.learning_rate; clip_norm or float32 "
                    "may help too. The last checkpoint is kept",
                )
            means = {
                name: sum(batch[name] for batch in losses) / update.tokens for name in losses[0]
            }
            self.steps.append(
                Step(means, update.tokens, update.all_tokens, update.learning_rate, norm)
            )

    def record(self, number: int) -> StepRecord:
        """Average the steps since the last record, and start again."""
        self.read()
        tokens = sum(step.tokens for step in self.steps)
        means = {
            name: sum(step.means[name] * step.tokens for step in self.steps) / tokens
            for name in self.steps[0].means
        }
        if self._processes.count > 1:
            [microseconds] = self._processes.sum(round(1e6 * self._cost["processor_seconds"]))
            self._cost["processor_seconds"] = microseconds / 1e6
        record = StepRecord(
            step=number,
            loss=means.pop("loss"),
            perplexity=perplexity(means.pop("nll")),
            losses=means,
            learning_rate=self.steps[-1].learning_rate,
            gradient_norm=self.steps[-1].gradient_norm,
            tokens_per_second=self._cost["tokens"] / max(self._cost["seconds"], 1e-9),
            memory=peak_memory(self.device),
            skipped=sum(not math.isfinite(step.gradient_norm) for step in self.steps),
            **self._cost,
        )
        self.restore([], {})
        return record


def perplexity(nll: float) -> float:
    """Convert nats per piece into a perplexity, limited to what a float can hold."""
    return math.exp(min(nll, 700.0))


def peak_memory(device: torch.device) -> int:
    """Measure the peak memory so far, in bytes: of the GPU, else of this process; 0 except on
    Linux."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # getrusage includes the peak of the process that started this one
    return linux_memory("/proc/self/status", "VmHWM")


def linux_memory(file: str, name: str) -> int:
    """Read an amount of memory in bytes from a file of Linux; 0 on other systems."""
    path = Path(file)
    return 1024 * int(path.read_text().partition(f"{name}:")[2].split()[0]) if path.exists() else 0
