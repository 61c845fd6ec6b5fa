"""The records that training yields, and the meter that averages steps for one of them."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from synmt.errors import SynmtError
from synmt.recipe.schema import TrainingRecipe


@dataclass(frozen=True)
class StartRecord:
    """The start of training.

    step: the step from which an interrupted run continues; 0 for a new one.
    weights: the number of parameters.
    frozen: how many of them are not trained.
    """

    step: int
    weights: int
    frozen: int
    device: str
    settings: TrainingRecipe


@dataclass(frozen=True)
class StepRecord:
    """The mean over the steps since the last record.

    loss: label-smoothed loss per target piece, in nats; `losses` holds the auxiliary losses, weighted.
    perplexity: without smoothing.
    memory: peak memory so far, in bytes.
    """

    step: int
    loss: float
    perplexity: float
    losses: dict[str, float]
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    memory: int


@dataclass(frozen=True)
class ValidationRecord:
    """One validation.

    loss: per target piece, in nats, without smoothing.
    bleu: of detokenised text; None if the recipe leaves it out.
    decays: how often the schedule `plateau` has lowered the learning rate.
    """

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    best: bool
    decays: int = 0


@dataclass(frozen=True)
class EndRecord:
    """Why training stopped: max_steps, patience, decays, or interrupted."""

    step: int
    reason: str


@dataclass(frozen=True)
class ScoreRecord:
    """The score of the final model on a test set."""

    test: str
    metric: str
    score: float
    signature: str


@dataclass(frozen=True)
class RunRecord:
    """The last record: where the run is, and whether it has finished or was interrupted after some steps."""

    folder: Path
    status: Literal["finished", "interrupted"]
    steps: int


LogRecord = StepRecord | ValidationRecord | EndRecord
"""What the trainer yields and the log stores."""


@dataclass(frozen=True)
class Step:
    """The numbers of one step: means per target piece of this process, and pieces of this and of all processes."""

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

    overflow: whether gradients may be infinite, because the gradient scaler of fp16 skips such steps.
    steps: those whose numbers have been read and that no record covers yet.
    """

    def __init__(self, device: torch.device, *, overflow: bool = False) -> None:
        self.device, self.overflow = device, overflow
        self.steps: list[Step] = []
        self._updates: list[Update] = []
        self.start()

    def start(self) -> None:
        """Start measuring the speed."""
        self.tokens, self.began = 0, time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time of a block from the speed."""
        stopped = time.monotonic()
        yield
        self.began += time.monotonic() - stopped

    def add(self, update: Update) -> None:
        """Add one update."""
        self._updates.append(update)
        self.tokens += update.all_tokens

    def read(self) -> None:
        """Read the numbers of the updates from the device, all at once; raises SynmtError if one is not finite."""
        updates, self._updates = self._updates, []
        tensors = [tensor.detach().double() for update in updates for tensor in update.numbers()]
        numbers: Iterator[float] = iter(torch.stack(tensors).tolist() if tensors else [])
        for update in updates:
            losses = [{name: next(numbers) for name in batch} for batch in update.losses]
            self.steps.append(self._step(update, losses, next(numbers)))

    def _step(self, update: Update, losses: list[dict[str, float]], norm: float) -> Step:
        for batch, lines in zip(losses, update.lines, strict=True):
            if not math.isfinite(batch["loss"]):
                raise _not_finite(update.step, "loss", lines)
        if not math.isfinite(norm) and not self.overflow:
            raise _not_finite(update.step, "gradient", [line for lines in update.lines for line in lines])
        means = {name: sum(batch[name] for batch in losses) / update.tokens for name in losses[0]}
        return Step(means, update.tokens, update.all_tokens, update.learning_rate, norm)

    def record(self, number: int) -> StepRecord:
        """Average the steps since the last record, and start again."""
        self.read()
        seconds = time.monotonic() - self.began
        steps, self.steps = self.steps, []
        tokens = sum(step.tokens for step in steps)
        means = {name: sum(step.means[name] * step.tokens for step in steps) / tokens for name in steps[0].means}
        record = StepRecord(
            step=number,
            loss=means.pop("loss"),
            perplexity=perplexity(means.pop("nll")),
            losses=means,
            learning_rate=steps[-1].learning_rate,
            gradient_norm=steps[-1].gradient_norm,
            tokens_per_second=self.tokens / seconds,
            memory=peak_memory(self.device),
        )
        self.start()
        return record


def _not_finite(step: int, what: str, lines: Sequence[int]) -> SynmtError:
    more = f" and {len(lines) - 20} more" if len(lines) > 20 else ""
    return SynmtError(
        f"the {what} of step {step} is not a finite number",
        where=f"training lines {', '.join(str(line + 1) for line in lines[:20])}{more}",
        do="Look at these lines, or lower training.learning_rate; clip_norm or float32 may help too. "
        "The last checkpoint is kept",
    )


def perplexity(nll: float) -> float:
    """Convert nats per piece into a perplexity, limited to what a float can hold."""
    return math.exp(min(nll, 700.0))


def peak_memory(device: torch.device) -> int:
    """Measure the peak memory so far, in bytes: of the GPU, else of this process; 0 if the system does not tell."""
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
