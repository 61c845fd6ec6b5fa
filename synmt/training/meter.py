"""The meter of training: averages the numbers of the steps since the last record, and counts what
they cost."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from synmt.errors import SynmtError, listed
from synmt.training.distributed import Processes
from synmt.training.records import StepRecord


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
    lines: for each batch, the lines of its sentences, counted from 0.
    tokens, all_tokens: target pieces of this process and of all.
    """

    step: int
    losses: Sequence[dict[str, Tensor]]
    lines: Sequence[Sequence[int]]
    tokens: int
    all_tokens: int
    learning_rate: float
    gradient_norm: Tensor

    def numbers(self) -> list[Tensor]:
        """List the losses of each batch, then the gradient norm."""
        return [*(loss for batch in self.losses for loss in batch.values()), self.gradient_norm]


class Meter:
    """Collects updates until their mean is due.

    overflow: whether gradients may be infinite, because the gradient scaler of fp16 skips such
        steps.
    processes: all that train; each has its meter, and all make their records together.
    steps: those whose numbers have been read and that no record covers yet.
    """

    def __init__(
        self, device: torch.device, *, overflow: bool = False, processes: Processes | None = None
    ) -> None:
        self.device, self.overflow, self._processes = device, overflow, processes or Processes()
        self.steps: list[Step] = []
        self._updates: list[Update] = []
        self.start()

    def start(self, cost: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Start measuring; cost: that of steps that were measured before."""
        self.tokens: int = cost.get("tokens", 0)
        self._seconds: float = cost.get("seconds", 0.0)
        self._processor_seconds: float = cost.get("processor_seconds", 0.0)
        self._go_on()

    def _go_on(self) -> None:
        self._began, self._processor_began = time.monotonic(), time.process_time()

    def _stop(self) -> None:
        self._seconds += time.monotonic() - self._began
        self._processor_seconds += time.process_time() - self._processor_began

    def cost(self) -> dict[str, Any]:
        """Return what the steps that no record covers yet have cost; only while measuring is
        paused."""
        return {
            "tokens": self.tokens,
            "seconds": self._seconds,
            "processor_seconds": self._processor_seconds,
        }

    def unlogged(self) -> dict[str, Any]:
        """Return these steps and their cost, for a checkpoint."""
        steps = [asdict(step) for step in self.steps]
        return {"unlogged": steps, "unlogged_cost": self.cost() if steps else {}}

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a block from the speed."""
        self._stop()
        yield
        self._go_on()

    def add(self, update: Update) -> None:
        """Add one update."""
        self._updates.append(update)
        self.tokens += update.all_tokens

    def read(self) -> None:
        """Read the numbers of the updates from the device, all at once; raises SynmtError if one is
        not finite."""
        updates, self._updates = self._updates, []
        tensors = [tensor.detach() for update in updates for tensor in update.numbers()]
        numbers: Iterator[float] = iter(torch.stack(tensors).tolist() if tensors else [])
        for update in updates:
            losses = [{name: next(numbers) for name in batch} for batch in update.losses]
            self.steps.append(self._step(update, losses, next(numbers)))

    def _step(self, update: Update, losses: list[dict[str, float]], norm: float) -> Step:
        for batch, lines in zip(losses, update.lines, strict=True):
            if not math.isfinite(batch["loss"]):
                raise _not_finite(update.step, "loss", lines)
        if not math.isfinite(norm) and not self.overflow:
            raise _not_finite(
                update.step, "gradient", [line for lines in update.lines for line in lines]
            )
        means = {name: sum(batch[name] for batch in losses) / update.tokens for name in losses[0]}
        return Step(means, update.tokens, update.all_tokens, update.learning_rate, norm)

    def record(self, number: int) -> StepRecord:
        """Average the steps since the last record, and start again."""
        self.read()
        self._stop()
        steps, self.steps = self.steps, []
        tokens = sum(step.tokens for step in steps)
        means = {
            name: sum(step.means[name] * step.tokens for step in steps) / tokens
            for name in steps[0].means
        }
        cost = self.cost()
        if self._processes.count > 1:
            cost["processor_seconds"] = (
                self._processes.sum(round(1e6 * self._processor_seconds))[0] / 1e6
            )
        record = StepRecord(
            step=number,
            loss=means.pop("loss"),
            perplexity=perplexity(means.pop("nll")),
            losses=means,
            learning_rate=steps[-1].learning_rate,
            gradient_norm=steps[-1].gradient_norm,
            tokens_per_second=self.tokens / self._seconds,
            memory=peak_memory(self.device),
            **cost,
        )
        self.start()
        return record


def _not_finite(step: int, what: str, lines: Sequence[int]) -> SynmtError:
    return SynmtError(
        f"the {what} of step {step} is not a finite number",
        where=f"training lines {listed((str(line + 1) for line in lines), 20)}",
        do="Look at these lines, or lower training.learning_rate; clip_norm or float32 may "
        "help too. "
        "The last checkpoint is kept",
    )


def perplexity(nll: float) -> float:
    """Convert nats per piece into a perplexity, limited to what a float can hold."""
    return math.exp(min(nll, 700.0))


def peak_memory(device: torch.device) -> int:
    """Measure the peak memory so far, in bytes: of the GPU, else of this process; 0 if the system
    does not tell."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage on Linux includes the peak of the process that started this one
        return 1024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    try:
        import resource
    except ImportError:
        # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
